// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/daemon_link.hpp"
#include "client/info.hpp"

#include <QAbstractListModel>
#include <QList>

namespace bulkhead::gui {

/// The templates that the daemon knows, built or not. It has no signal of the daemon to follow: refresh() when they
/// are about to be shown or chosen from.
class TemplateModel : public QAbstractListModel {
    Q_OBJECT

public:
    explicit TemplateModel(client::DaemonLink& link, QObject* parent = nullptr);

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    [[nodiscard]] const QList<client::TemplateInfo>& templates() const { return m_templates; }
    [[nodiscard]] bool isLoaded() const { return m_isLoaded; }
    /// Of the built template that suits somebody at a window best: one that shows windows if there is one. Empty: none.
    [[nodiscard]] QString preferred() const;
    void refresh();

Q_SIGNALS:
    void loaded();
    void listFailed(const client::Failure& failure);

private:
    client::DaemonLink& m_link;
    QList<client::TemplateInfo> m_templates;
    bool m_isLoaded = false;
};

} // namespace bulkhead::gui

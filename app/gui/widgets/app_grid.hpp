// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/models/session_client.hpp"

#include <QListView>
#include <QSortFilterProxyModel>
#include <QStandardItemModel>

namespace bulkhead::gui {

/// Apps as tiles with the first letter of their name: icons of a guest are pictures that nobody has checked.
class AppGrid : public QListView {
    Q_OBJECT

public:
    explicit AppGrid(QWidget* parent = nullptr);
    void setApps(const QList<AppEntry>& apps);
    void setFilter(const QString& text);
    /// For Enter in the search line.
    void launchFirst();

Q_SIGNALS:
    void launchRequested(const QString& appId);

protected:
    void changeEvent(QEvent* event) override;

private:
    void launch(const QModelIndex& index);
    void drawIcons();

    QList<AppEntry> m_apps;
    QStandardItemModel m_model;
    QSortFilterProxyModel m_filter;
};

} // namespace bulkhead::gui

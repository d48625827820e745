// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"

#include <QDialog>

class QLineEdit;
class QPushButton;
class QTreeWidget;

namespace bulkhead::gui {

class Banner;
struct Desk;
class TextLabel;

/// The removed domains that can be brought back, each with the day on which it goes for good. Deletes itself.
class DeletedDialog : public QDialog {
    Q_OBJECT

public:
    DeletedDialog(Desk& desk, QWidget* parent);

Q_SIGNALS:
    /// `path`: of the domain that is there again.
    void restored(const QString& path);

private:
    void load();
    void fill(const QList<client::DeletedInfo>& domains);
    /// Another one is chosen: it is to come back under its own name.
    void proposeName();
    void refresh();
    void submit();
    /// Null: none is chosen.
    [[nodiscard]] const client::DeletedInfo* chosen() const;

    Desk& m_desk;
    QList<client::DeletedInfo> m_domains;
    bool m_isBusy = false;
    Banner* m_banner;
    QTreeWidget* m_list;
    TextLabel* m_none;
    QWidget* m_naming;
    QLineEdit* m_name;
    TextLabel* m_hint;
    QPushButton* m_restore;
};

} // namespace bulkhead::gui

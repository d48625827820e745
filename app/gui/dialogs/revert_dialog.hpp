// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"

#include <QDialog>

class QCheckBox;
class QPushButton;
class QTreeWidget;

namespace bulkhead::gui {

class Banner;
struct Desk;
class TextLabel;

/// Chooses the snapshot that a domain goes back to, and says what becomes of what is there now. What is chosen is done
/// by the Verbs. Deletes itself.
class RevertDialog : public QDialog {
    Q_OBJECT

public:
    RevertDialog(Desk& desk, const QString& path, QWidget* parent);

private:
    void load();
    void fill(const QList<client::SnapshotInfo>& snapshots);
    void refresh();
    void submit();
    /// Null: none is chosen.
    [[nodiscard]] const client::SnapshotInfo* chosen() const;
    [[nodiscard]] QString effect() const;

    Desk& m_desk;
    QString m_path;
    QString m_name; ///< of the domain; safe to show
    QList<client::SnapshotInfo> m_snapshots;
    Banner* m_banner;
    QTreeWidget* m_list;
    TextLabel* m_none;
    QCheckBox* m_keep;
    QCheckBox* m_boot;
    TextLabel* m_effect;
    QPushButton* m_revert;
};

} // namespace bulkhead::gui

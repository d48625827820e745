// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"

#include <QDialog>

class QComboBox;
class QLineEdit;
class QPushButton;

namespace bulkhead::gui {

class Banner;
struct Desk;
class LabelPicker;
class TextLabel;

/// The form for a domain that begins where another one, or one of its snapshots, stands. Stays open with the reason
/// when it cannot be made, and closes when it is there. Deletes itself.
class ForkDialog : public QDialog {
    Q_OBJECT

public:
    ForkDialog(Desk& desk, const QString& path, QWidget* parent);

Q_SIGNALS:
    void created(const QString& path);

private:
    void load();
    void validate();
    void submit();
    void setBusy(bool isBusy);
    [[nodiscard]] QString problemOfName() const;

    Desk& m_desk;
    QString m_path;
    QLineEdit* m_name;
    TextLabel* m_nameHint;
    QComboBox* m_from;
    LabelPicker* m_label;
    Banner* m_banner;
    QPushButton* m_create;
    bool m_isBusy = false;
};

} // namespace bulkhead::gui

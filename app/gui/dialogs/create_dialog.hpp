// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QDialog>

class QComboBox;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace bulkhead::gui {

class Banner;
struct Desk;
class LabelPicker;
class TextLabel;

/// The form for a new domain. It says what is wrong with the name while it is typed, stays open with the reason when
/// the daemon refuses, and closes when the domain is there. Deletes itself.
class CreateDialog : public QDialog {
    Q_OBJECT

public:
    CreateDialog(Desk& desk, QWidget* parent);

Q_SIGNALS:
    void created(const QString& path);

private:
    void showTemplates();
    void showSizes();
    void validate();
    void submit();
    void setBusy(bool isBusy);
    [[nodiscard]] QString problemOfName() const;

    Desk& m_desk;
    QLineEdit* m_name;
    TextLabel* m_nameHint;
    QComboBox* m_template;
    TextLabel* m_templateHint;
    QComboBox* m_size;
    LabelPicker* m_label;
    QSpinBox* m_home;
    Banner* m_banner;
    QPushButton* m_create;
    bool m_isBusy = false;
};

} // namespace bulkhead::gui

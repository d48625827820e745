// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QComboBox>

namespace bulkhead::gui {

/// Chooses a label; each entry shows its chip and its name.
class LabelPicker : public QComboBox {
    Q_OBJECT

public:
    explicit LabelPicker(QWidget* parent = nullptr);
    [[nodiscard]] QString label() const { return currentData().toString(); }
    void choose(const QString& label);

protected:
    void changeEvent(QEvent* event) override;

private:
    void drawChips();
};

} // namespace bulkhead::gui

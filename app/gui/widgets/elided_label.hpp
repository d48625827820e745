// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/widgets/style.hpp"

namespace bulkhead::gui {

/// One line that widens nothing: what does not fit ends in an ellipsis, and the tool tip has all of it. So has the
/// accessible name, unless another one was set.
class ElidedLabel : public TextLabel {
    Q_OBJECT

public:
    explicit ElidedLabel(Look look, QWidget* parent = nullptr);
    void setFullText(const QString& text);
    [[nodiscard]] QString fullText() const { return m_text; }
    [[nodiscard]] QSize sizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void elide();
    QString m_text;
};

} // namespace bulkhead::gui

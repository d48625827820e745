// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/elided_label.hpp"

#include <QEvent>
#include <QFontMetrics>

namespace bulkhead::gui {

ElidedLabel::ElidedLabel(Look look, QWidget* parent)
    : TextLabel(look, {}, parent) {
    setWordWrap(false);
    setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
}

void ElidedLabel::setFullText(const QString& text) {
    if (accessibleName() == m_text) {
        setAccessibleName(text);
    }
    m_text = text;
    elide();
}

/// Of the whole text: what is shown of it must not decide how much room it gets.
QSize ElidedLabel::sizeHint() const {
    return {fontMetrics().horizontalAdvance(m_text), TextLabel::sizeHint().height()};
}

void ElidedLabel::resizeEvent(QResizeEvent* event) {
    TextLabel::resizeEvent(event);
    elide();
}

void ElidedLabel::changeEvent(QEvent* event) {
    TextLabel::changeEvent(event);
    if (event->type() == QEvent::FontChange) {
        elide();
    }
}

void ElidedLabel::elide() {
    const QString fitting = fontMetrics().elidedText(m_text, Qt::ElideRight, contentsRect().width());
    setText(fitting);
    setToolTip(fitting == m_text ? QString() : m_text);
}

} // namespace bulkhead::gui

// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/banner.hpp"

#include <QHBoxLayout>
#include <QPainter>
#include <QStyle>
#include <QToolButton>

namespace bulkhead::gui {

Banner::Banner(QWidget* parent)
    : QFrame(parent)
    , m_text(new TextLabel(TextLabel::Look::Body))
    , m_dismiss(new QToolButton) {
    auto* icon = new QLabel;
    const int side = style()->pixelMetric(QStyle::PM_SmallIconSize);
    icon->setPixmap(style()->standardIcon(QStyle::SP_MessageBoxWarning).pixmap(side, side));
    icon->setAccessibleName(tr("Warning"));
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_dismiss->setIcon(style()->standardIcon(QStyle::SP_TitleBarCloseButton));
    m_dismiss->setAutoRaise(true);
    m_dismiss->setAccessibleName(tr("Dismiss this message"));
    m_dismiss->setToolTip(tr("Dismiss"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 10, 10, 10);
    layout->setSpacing(10);
    layout->addWidget(icon, 0, Qt::AlignTop);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_dismiss, 0, Qt::AlignTop);
    connect(m_dismiss, &QToolButton::clicked, this, &Banner::dismissed);
    setAccessibleName(tr("Message"));
    hide();
}

void Banner::setText(const QString& text, bool canDismiss) {
    m_text->setText(text);
    m_text->setAccessibleName(text);
    setAccessibleDescription(text);
    m_dismiss->setVisible(canDismiss);
    setVisible(!text.isEmpty());
}

void Banner::paintEvent(QPaintEvent* /*event*/) {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(lineColour(palette()));
    painter.setBrush(palette().brush(QPalette::AlternateBase));
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
}

} // namespace bulkhead::gui

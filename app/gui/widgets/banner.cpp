// SPDX-License-Identifier: Apache-2.0
#include "gui/widgets/banner.hpp"

#include <QHBoxLayout>
#include <QPainter>
#include <QStyle>
#include <QToolButton>

namespace bulkhead::gui {

Banner::Banner(QWidget* parent)
    : QFrame(parent)
    , m_icon(new QLabel)
    , m_text(new TextLabel(TextLabel::Look::Body))
    , m_dismiss(new QToolButton) {
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_dismiss->setIcon(style()->standardIcon(QStyle::SP_TitleBarCloseButton));
    m_dismiss->setAutoRaise(true);
    m_dismiss->setAccessibleName(tr("Dismiss this message"));
    m_dismiss->setToolTip(tr("Dismiss"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 10, 10, 10);
    layout->setSpacing(10);
    layout->addWidget(m_icon, 0, Qt::AlignTop);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_dismiss, 0, Qt::AlignTop);
    connect(m_dismiss, &QToolButton::clicked, this, &Banner::dismissed);
    setAccessibleName(tr("Message"));
    hide();
}

void Banner::setText(const QString& text, bool canDismiss, Kind kind) {
    const bool isWarning = kind == Kind::Warning;
    const int side = style()->pixelMetric(QStyle::PM_SmallIconSize);
    m_icon->setPixmap(style()
                          ->standardIcon(isWarning ? QStyle::SP_MessageBoxWarning : QStyle::SP_MessageBoxInformation)
                          .pixmap(side, side));
    m_icon->setAccessibleName(isWarning ? tr("Warning") : tr("Note"));
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

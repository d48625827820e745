// SPDX-License-Identifier: Apache-2.0
#include "viewer/sound_button.hpp"

#include "widgets/label_paint.hpp"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>

namespace bulkhead::viewer {

SoundButton::SoundButton(QWidget* parent)
    : QAbstractButton(parent) {
    setFocusPolicy(Qt::NoFocus);
    setCursor(Qt::ArrowCursor);
    hide();
}

void SoundButton::setLook(const FrameLook& look) {
    m_look = look;
    const bool isMuted = look.sound == SoundState::Muted;
    setText(isMuted ? tr("Let %1 be heard").arg(look.domain) : tr("Mute %1").arg(look.domain));
    setAccessibleName(text());
    setToolTip(isMuted ? tr("%1 is muted. Click to hear it.").arg(look.domain)
                       : tr("%1 can be heard. Click to mute it.").arg(look.domain));
    update();
}

void SoundButton::paintEvent(QPaintEvent* /*event*/) {
    const client::LabelColours& colours = m_look.label.colours(m_look.theme);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), widgets::toColor(colours.fill));
    const QColor ink = widgets::toColor(colours.ink);
    // On a field of 16 units, in the middle.
    const double unit = std::min(width(), height()) / 24.0;
    painter.translate(width() / 2.0 - 8 * unit, height() / 2.0 - 8 * unit);
    painter.scale(unit, unit);
    QPainterPath body;
    body.moveTo(1, 5.5);
    body.lineTo(4, 5.5);
    body.lineTo(8, 2);
    body.lineTo(8, 14);
    body.lineTo(4, 10.5);
    body.lineTo(1, 10.5);
    body.closeSubpath();
    painter.fillPath(body, ink);
    QPen pen(ink, 1.6, Qt::SolidLine, Qt::RoundCap);
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    if (m_look.sound == SoundState::Muted) {
        painter.drawLine(QPointF(10.5, 5.5), QPointF(15.5, 10.5));
        painter.drawLine(QPointF(15.5, 5.5), QPointF(10.5, 10.5));
        return;
    }
    constexpr int kSixteenths = 16;
    painter.drawArc(QRectF(6.5, 5, 5, 6), -50 * kSixteenths, 100 * kSixteenths);
    painter.drawArc(QRectF(5.5, 2, 9.5, 12), -50 * kSixteenths, 100 * kSixteenths);
}

} // namespace bulkhead::viewer

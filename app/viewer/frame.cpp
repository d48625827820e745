// SPDX-License-Identifier: Apache-2.0
#include "viewer/frame.hpp"

#include "widgets/label_paint.hpp"

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace bulkhead::viewer {
namespace {

constexpr qreal kGap = 8;
constexpr qreal kRadius = 3;
constexpr qreal kPatternWidth = 88;

QFont scaled(QFont font, double factor, QFont::Weight weight) {
    font.setWeight(weight);
    if (font.pointSizeF() > 0) {
        font.setPointSizeF(font.pointSizeF() * factor);
    } else {
        font.setPixelSize(std::max(8, static_cast<int>(std::lround(font.pixelSize() * factor))));
    }
    return font;
}

QString textOf(const client::Label& label) {
    return QString::fromLatin1(label.text.data(), static_cast<qsizetype>(label.text.size()));
}

/// Label and name at the left. Returns how far they reach to the right.
qreal paintName(QPainter& painter, const QRectF& strip, const FrameLook& look, const QFont& font) {
    const client::LabelColours& colours = look.label.colours(look.theme);
    const QFont nameFont = scaled(font, 1.0, QFont::DemiBold);
    const QFont chipFont = scaled(font, 0.82, QFont::Bold);
    const QString chip = textOf(look.label);
    const QRectF pill(strip.left() + kGap / 2, strip.top() + 4, QFontMetricsF(chipFont).horizontalAdvance(chip) + 10,
                      strip.height() - 8);
    painter.setPen(Qt::NoPen);
    painter.setBrush(widgets::toColor(colours.ink));
    painter.drawRoundedRect(pill, kRadius, kRadius);
    painter.setFont(chipFont);
    painter.setPen(widgets::toColor(colours.fill));
    painter.drawText(pill, Qt::AlignCenter, chip);

    const QFontMetricsF metrics(nameFont);
    const qreal left = pill.right() + kGap;
    const QString name = metrics.elidedText(look.domain, Qt::ElideMiddle, std::max(0.0, strip.right() - left - kGap));
    const qreal width = metrics.horizontalAdvance(name);
    painter.setFont(nameFont);
    painter.setPen(widgets::toColor(colours.ink));
    painter.drawText(QRectF(left, strip.top(), width + 2, strip.height()), Qt::AlignVCenter, name);
    return left + width + kGap;
}

/// The state at the right. Returns how far it reaches to the left.
qreal paintState(QPainter& painter, const QRectF& strip, const FrameLook& look, const QFont& font, qreal from) {
    const QFontMetricsF metrics(font);
    const qreal room = strip.right() - from - 2 * kGap;
    if (look.stateWords.isEmpty() || room < metrics.averageCharWidth() * 6) {
        return strip.right();
    }
    const QString text = metrics.elidedText(look.stateWords, Qt::ElideRight, room);
    const QRectF where(strip.right() - metrics.horizontalAdvance(text) - kGap, strip.top(),
                       metrics.horizontalAdvance(text) + 1, strip.height());
    painter.setFont(font);
    painter.setPen(widgets::toColor(look.label.colours(look.theme).ink));
    painter.drawText(where, Qt::AlignVCenter | Qt::AlignRight, text);
    return where.left() - kGap;
}

/// The pattern at a size at which it can be told from the others, which a border of four pixels does not allow.
void paintPatternField(QPainter& painter, const QRectF& strip, const FrameLook& look, const QBrush& pattern, qreal from,
                       qreal to) {
    const qreal width = std::min(kPatternWidth, to - from);
    if (width < kGap || look.label.pattern == client::LabelPattern::Solid) {
        return;
    }
    const QColor edge = widgets::toColor(look.label.colours(look.theme).edge);
    painter.fillRect(QRectF(from, strip.top(), width, strip.height()), pattern);
    painter.fillRect(QRectF(from - 1, strip.top(), 1, strip.height()), edge);
    painter.fillRect(QRectF(from + width, strip.top(), 1, strip.height()), edge);
}

} // namespace

QRect soundSwitchRect(QSize window, SoundState sound) {
    constexpr int kWidth = 28;
    if (sound == SoundState::None || window.width() < 2 * kFrameBorder + 2 * kWidth) {
        return {};
    }
    return {window.width() - kFrameBorder - kWidth, kFrameBorder, kWidth, kFrameStrip - kFrameBorder - 1};
}

void paintFrame(QPainter& painter, QSize window, const FrameLook& look, const QFont& font) {
    const client::LabelColours& colours = look.label.colours(look.theme);
    const QRect all(QPoint(), window);
    const QRect inside = all.marginsRemoved(frameMargins());
    const QBrush pattern =
        widgets::patternBrush(look.label, look.theme, std::max(1.0, painter.deviceTransform().m11()));

    painter.save();
    QPainterPath ring;
    ring.addRect(all);
    ring.addRect(inside);
    ring.setFillRule(Qt::OddEvenFill);
    painter.fillPath(ring, pattern);
    const QRectF strip(inside.left(), kFrameBorder, inside.width(), kFrameStrip - kFrameBorder);
    painter.fillRect(strip, widgets::toColor(colours.fill));
    painter.setPen(QPen(widgets::toColor(colours.edge), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(all).adjusted(0.5, 0.5, -0.5, -0.5));
    painter.drawRect(QRectF(inside).adjusted(-0.5, -0.5, 0.5, 0.5));

    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipRect(strip.adjusted(0, 0, 0, -1));
    const qreal nameEnd = std::floor(paintName(painter, strip, look, font));
    const QRectF beside = strip.adjusted(0, 0, -soundSwitchRect(window, look.sound).width(), 0);
    const qreal stateBegin = std::floor(paintState(painter, beside, look, font, nameEnd));
    paintPatternField(painter, strip, look, pattern, nameEnd, stateBegin);
    painter.restore();
}

} // namespace bulkhead::viewer

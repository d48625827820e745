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

constexpr qreal kPlateMargin = 4;
constexpr qreal kPlatePadding = 8;
constexpr qreal kRadius = 4;

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

/// A plain piece of the label's colour on the pattern, to write on.
void paintPlate(QPainter& painter, const QRectF& where, const client::LabelColours& colours) {
    painter.setPen(QPen(widgets::toColor(colours.edge), 1));
    painter.setBrush(widgets::toColor(colours.fill));
    painter.drawRoundedRect(where.adjusted(0.5, 0.5, -0.5, -0.5), kRadius, kRadius);
}

/// Returns how far the plate reaches to the right.
qreal paintName(QPainter& painter, const FrameLook& look, const QFont& font, qreal most) {
    const client::LabelColours& colours = look.label.colours(look.theme);
    const QFont nameFont = scaled(font, 1.0, QFont::DemiBold);
    const QFont chipFont = scaled(font, 0.82, QFont::Bold);
    const QString chip = textOf(look.label);
    const qreal chipWidth = QFontMetricsF(chipFont).horizontalAdvance(chip) + 10;
    const qreal height = kFrameStrip - 2 * kPlateMargin;
    const qreal room = std::max(0.0, most - chipWidth - 2 * kPlatePadding - kPlateMargin);
    const QString name = QFontMetricsF(nameFont).elidedText(look.domain, Qt::ElideMiddle, room);
    const qreal nameWidth = QFontMetricsF(nameFont).horizontalAdvance(name);
    const QRectF plate(kFrameBorder, kPlateMargin, chipWidth + nameWidth + 2 * kPlatePadding + 2, height);
    paintPlate(painter, plate, colours);

    const QRectF pill(plate.left() + 3, plate.top() + 3, chipWidth, height - 6);
    painter.setPen(Qt::NoPen);
    painter.setBrush(widgets::toColor(colours.ink));
    painter.drawRoundedRect(pill, kRadius - 1, kRadius - 1);
    painter.setFont(chipFont);
    painter.setPen(widgets::toColor(colours.fill));
    painter.drawText(pill, Qt::AlignCenter, chip);

    painter.setFont(nameFont);
    painter.setPen(widgets::toColor(colours.ink));
    painter.drawText(QRectF(pill.right() + kPlatePadding - 1, plate.top(), nameWidth + 2, height), Qt::AlignVCenter,
                     name);
    return plate.right();
}

void paintState(QPainter& painter, const FrameLook& look, const QFont& font, qreal from, qreal to) {
    const QFont words = scaled(font, 0.95, QFont::Normal);
    const QFontMetricsF metrics(words);
    const qreal room = to - from - 2 * kPlatePadding;
    if (look.stateWords.isEmpty() || room < metrics.averageCharWidth() * 6) {
        return;
    }
    const QString text = metrics.elidedText(look.stateWords, Qt::ElideRight, room);
    const qreal width = metrics.horizontalAdvance(text) + 2 * kPlatePadding;
    const QRectF plate(to - width, kPlateMargin, width, kFrameStrip - 2 * kPlateMargin);
    const client::LabelColours& colours = look.label.colours(look.theme);
    paintPlate(painter, plate, colours);
    painter.setFont(words);
    painter.setPen(widgets::toColor(colours.ink));
    painter.drawText(plate, Qt::AlignCenter, text);
}

} // namespace

void paintFrame(QPainter& painter, QSize window, const FrameLook& look, const QFont& font) {
    const client::LabelColours& colours = look.label.colours(look.theme);
    const QRect all(QPoint(), window);
    const QRect inside = all.marginsRemoved(frameMargins());
    const qreal ratio = std::max(1.0, painter.deviceTransform().m11());

    painter.save();
    QPainterPath ring;
    ring.addRect(all);
    ring.addRect(inside);
    ring.setFillRule(Qt::OddEvenFill);
    painter.fillPath(ring, widgets::patternBrush(look.label, look.theme, ratio));
    painter.setPen(QPen(widgets::toColor(colours.edge), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(all).adjusted(0.5, 0.5, -0.5, -0.5));
    painter.drawRect(QRectF(inside).adjusted(-0.5, -0.5, 0.5, 0.5));
    painter.setRenderHint(QPainter::Antialiasing);
    const qreal right = window.width() - kFrameBorder;
    const qreal end = paintName(painter, look, font, right - kFrameBorder);
    paintState(painter, look, font, end + kPlatePadding, right);
    painter.restore();
}

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#include "widgets/label_paint.hpp"

#include <QFontMetricsF>
#include <QImage>
#include <QPainter>
#include <QPainterPath>
#include <QTransform>

#include <algorithm>
#include <cmath>

namespace bulkhead::widgets {
namespace {

constexpr int kTile = 8; ///< logical pixels; every pattern repeats after that many

QFont chipFont(QFont font) {
    font.setBold(true);
    if (font.pointSizeF() > 0) {
        font.setPointSizeF(font.pointSizeF() * 0.85);
    } else {
        font.setPixelSize(std::max(8, font.pixelSize() * 85 / 100));
    }
    font.setLetterSpacing(QFont::PercentageSpacing, 104);
    return font;
}

void drawLine(QPainter& painter, QPointF from, QPointF to, const QColor& colour, qreal width) {
    painter.setPen(QPen(colour, width, Qt::SolidLine, Qt::FlatCap));
    painter.drawLine(from, to);
}

/// Strokes of a diagonal are drawn three times, so that the tile joins its neighbours without a notch.
void drawDiagonals(QPainter& painter, const QColor& colour, qreal width, bool rising) {
    for (const qreal shift : {-1.0, 0.0, 1.0}) {
        const qreal x = shift * kTile;
        const QPointF left(x - 1, rising ? kTile + 1 : -1);
        const QPointF right(x + kTile + 1, rising ? -1 : kTile + 1);
        drawLine(painter, left, right, colour, width);
    }
}

void drawTile(QPainter& painter, client::LabelPattern pattern, const QColor& mark) {
    constexpr qreal kHalf = kTile / 2.0;
    switch (pattern) {
    case client::LabelPattern::Solid:
        break;
    case client::LabelPattern::Slashes:
        drawDiagonals(painter, mark, 2.8, true);
        break;
    case client::LabelPattern::Backslashes:
        drawDiagonals(painter, mark, 2.8, false);
        break;
    case client::LabelPattern::Checks:
        painter.fillRect(QRectF(0, 0, kHalf, kHalf), mark);
        painter.fillRect(QRectF(kHalf, kHalf, kHalf, kHalf), mark);
        break;
    case client::LabelPattern::Dots:
        painter.setPen(Qt::NoPen);
        painter.setBrush(mark);
        painter.drawEllipse(QPointF(2, 2), 1.3, 1.3);
        painter.drawEllipse(QPointF(6, 6), 1.3, 1.3);
        break;
    case client::LabelPattern::Bars:
        painter.fillRect(QRectF(0, 0, 3, kTile), mark);
        break;
    case client::LabelPattern::Lines:
        painter.fillRect(QRectF(0, 1, kTile, 1), mark);
        painter.fillRect(QRectF(0, 5, kTile, 1), mark);
        break;
    case client::LabelPattern::Cross:
        drawDiagonals(painter, mark, 1.2, true);
        drawDiagonals(painter, mark, 1.2, false);
        break;
    case client::LabelPattern::Zigzag:
        painter.setPen(QPen(mark, 1.4));
        painter.setBrush(Qt::NoBrush);
        painter.drawPolyline(QPolygonF{QPointF(-2, 4), QPointF(2, 1), QPointF(6, 6), QPointF(10, 1)});
        break;
    }
}

QImage tileOf(const client::Label& label, client::Theme theme, qreal devicePixelRatio) {
    const int side = std::max(1, static_cast<int>(std::lround(kTile * devicePixelRatio)));
    QImage tile(side, side, QImage::Format_RGB32);
    const client::LabelColours& colours = label.colours(theme);
    tile.fill(toColor(colours.fill));
    QPainter painter(&tile);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(static_cast<qreal>(side) / kTile, static_cast<qreal>(side) / kTile);
    drawTile(painter, label.pattern, toColor(colours.mark));
    return tile;
}

} // namespace

client::Theme themeOf(const QPalette& palette) {
    const int window = palette.color(QPalette::Window).lightness();
    return window < palette.color(QPalette::WindowText).lightness() ? client::Theme::Dark : client::Theme::Light;
}

QColor toColor(client::Rgb colour) {
    return {colour.red, colour.green, colour.blue};
}

QBrush patternBrush(const client::Label& label, client::Theme theme, qreal devicePixelRatio) {
    if (label.pattern == client::LabelPattern::Solid) {
        return QBrush(toColor(label.colours(theme).fill));
    }
    const QImage tile = tileOf(label, theme, devicePixelRatio);
    QBrush brush(tile);
    const qreal back = static_cast<qreal>(kTile) / tile.width();
    brush.setTransform(QTransform::fromScale(back, back));
    return brush;
}

QSize chipSize(const client::Label& label, const QFont& font) {
    const QFontMetricsF metrics(chipFont(font));
    const qreal height = std::ceil(metrics.height()) + 2;
    const QString text = QString::fromLatin1(label.text.data(), static_cast<qsizetype>(label.text.size()));
    // As wide as the widest usual text, so that chips in a column line up.
    const qreal words = std::max(metrics.horizontalAdvance(text), metrics.horizontalAdvance(QStringLiteral("GRN")));
    return {static_cast<int>(std::ceil(height * 0.9 + words + height * 0.6)), static_cast<int>(height)};
}

void paintChip(QPainter& painter, const QRectF& where, const client::Label& label, client::Theme theme,
               const QFont& font) {
    const client::LabelColours& colours = label.colours(theme);
    const QRectF outline = where.adjusted(0.5, 0.5, -0.5, -0.5);
    const qreal radius = std::min(4.0, outline.height() / 4);
    QPainterPath shape;
    shape.addRoundedRect(outline, radius, radius);
    const qreal swatch = std::min(outline.height() * 0.9, outline.width());

    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillPath(shape, toColor(colours.fill));
    painter.setClipPath(shape, Qt::IntersectClip);
    painter.setBrushOrigin(outline.topLeft());
    const qreal ratio = std::max(1.0, painter.deviceTransform().m11());
    painter.fillRect(QRectF(outline.left(), outline.top(), swatch, outline.height()),
                     patternBrush(label, theme, ratio));
    painter.restore();

    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(toColor(colours.edge), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(shape);
    painter.drawLine(QPointF(outline.left() + swatch, outline.top()),
                     QPointF(outline.left() + swatch, outline.bottom()));
    painter.setFont(chipFont(font));
    painter.setPen(toColor(colours.ink));
    painter.drawText(QRectF(outline.left() + swatch, outline.top(), outline.width() - swatch, outline.height()),
                     Qt::AlignCenter,
                     QString::fromLatin1(label.text.data(), static_cast<qsizetype>(label.text.size())));
    painter.restore();
}

QPixmap chipPixmap(const client::Label& label, client::Theme theme, const QFont& font, qreal devicePixelRatio) {
    const QSize size = chipSize(label, font);
    QPixmap pixmap((QSizeF(size) * devicePixelRatio).toSize());
    pixmap.setDevicePixelRatio(devicePixelRatio);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    paintChip(painter, QRectF(QPointF(), QSizeF(size)), label, theme, font);
    return pixmap;
}

QPixmap swatchPixmap(const client::Label& label, client::Theme theme, int side, qreal devicePixelRatio) {
    QPixmap pixmap((QSizeF(side, side) * devicePixelRatio).toSize());
    pixmap.setDevicePixelRatio(devicePixelRatio);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    QPainterPath shape;
    const qreal inset = std::max(0.5, side / 32.0);
    shape.addRoundedRect(QRectF(0, 0, side, side).adjusted(inset, inset, -inset, -inset), side / 6.0, side / 6.0);
    painter.fillPath(shape, patternBrush(label, theme, devicePixelRatio));
    painter.setPen(QPen(toColor(label.colours(theme).edge), std::max(1.0, side / 16.0)));
    painter.drawPath(shape);
    return pixmap;
}

} // namespace bulkhead::widgets

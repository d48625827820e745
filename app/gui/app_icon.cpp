// SPDX-License-Identifier: Apache-2.0
#include "gui/app_icon.hpp"

#include <QPainter>
#include <QPixmap>

namespace bulkhead::gui {
namespace {

/// On a grid of 64: a hull, and in it three compartments, one of them lit.
QPixmap draw(int side) {
    QPixmap pixmap(side, side);
    pixmap.fill(Qt::transparent);
    QPainter painter(&pixmap);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(side / 64.0, side / 64.0);
    painter.setPen(Qt::NoPen);
    painter.setBrush(QColor(0x1d, 0x3b, 0x5c));
    painter.drawRoundedRect(QRectF(4, 4, 56, 56), 14, 14);
    painter.setBrush(QColor(0xe8, 0xee, 0xf5));
    painter.drawRoundedRect(QRectF(13, 13, 16, 38), 4, 4);
    painter.drawRoundedRect(QRectF(35, 13, 16, 16), 4, 4);
    painter.setBrush(QColor(0xf2, 0xa3, 0x3a));
    painter.drawRoundedRect(QRectF(35, 35, 16, 16), 4, 4);
    return pixmap;
}

} // namespace

QIcon appIcon() {
    QIcon icon;
    for (const int side : {16, 22, 24, 32, 48, 64, 128, 256}) {
        icon.addPixmap(draw(side));
    }
    return icon;
}

} // namespace bulkhead::gui

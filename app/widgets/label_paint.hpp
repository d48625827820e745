// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/labels.hpp"

#include <QBrush>
#include <QColor>
#include <QFont>
#include <QPalette>
#include <QPixmap>
#include <QRectF>
#include <QSize>

class QPainter;

/// Draws labels the same way wherever they show: tray, main window, frames of guest windows. GUI thread.
namespace bulkhead::widgets {

/// Which set of colours goes with this palette: Qt 6.4 does not say, so the window's lightness does.
client::Theme themeOf(const QPalette& palette);

QColor toColor(client::Rgb colour);

/// The label's fill with its pattern, as a tile. `devicePixelRatio` keeps it sharp on fine screens.
QBrush patternBrush(const client::Label& label, client::Theme theme, qreal devicePixelRatio);

/// The size that a chip with this font wants, in logical pixels.
QSize chipSize(const client::Label& label, const QFont& font);

/// A chip: a swatch of the pattern, then the short text, rounded, with its edge. Fills `where`.
void paintChip(QPainter& painter, const QRectF& where, const client::Label& label, client::Theme theme,
               const QFont& font);

/// A chip as a pixmap, for item views and menus.
QPixmap chipPixmap(const client::Label& label, client::Theme theme, const QFont& font, qreal devicePixelRatio);

/// A square swatch without text, for icons. `side` in logical pixels.
QPixmap swatchPixmap(const client::Label& label, client::Theme theme, int side, qreal devicePixelRatio);

} // namespace bulkhead::widgets

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QPoint>
#include <QPointF>
#include <QRect>
#include <QRectF>
#include <QSize>

namespace bulkhead::viewer {

/// Where a picture of so many pixels shows on a canvas of so many logical pixels: pixel for pixel where it fits, made
/// smaller as a whole where it does not.
class PictureFit {
public:
    enum class Place { TopLeft, Centre };

    PictureFit() = default;
    PictureFit(QSize picture, QSize canvas, double devicePixelRatio, Place place);

    /// Logical pixels.
    [[nodiscard]] const QRectF& target() const { return m_target; }
    [[nodiscard]] bool isScaled() const { return m_scaled; }
    /// The picture's pixel below a place on the canvas, the nearest one for places beside it.
    [[nodiscard]] QPoint pixelAt(QPointF place) const;
    /// Where a part of the picture shows, with room for the blur of a scaled one.
    [[nodiscard]] QRect shownAt(const QRect& part) const;

private:
    QSize m_picture;
    QRectF m_target;
    double m_scale = 1; ///< logical pixels per pixel of the picture
    bool m_scaled = false;
};

/// The pixels of a canvas of that logical size.
QSize pixelsOf(QSize logical, double devicePixelRatio);

} // namespace bulkhead::viewer

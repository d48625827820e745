// SPDX-License-Identifier: Apache-2.0
#include "viewer/picture_fit.hpp"

#include <algorithm>
#include <cmath>

namespace bulkhead::viewer {

QSize pixelsOf(QSize logical, double devicePixelRatio) {
    return {static_cast<int>(std::lround(logical.width() * devicePixelRatio)),
            static_cast<int>(std::lround(logical.height() * devicePixelRatio))};
}

PictureFit::PictureFit(QSize picture, QSize canvas, double devicePixelRatio, Place place)
    : m_picture(picture) {
    const QSize room = pixelsOf(canvas, devicePixelRatio);
    if (picture.isEmpty() || room.isEmpty()) {
        return;
    }
    m_scaled = picture.width() > room.width() || picture.height() > room.height();
    const double shrink = m_scaled ? std::min(static_cast<double>(room.width()) / picture.width(),
                                              static_cast<double>(room.height()) / picture.height())
                                   : 1;
    m_scale = shrink / devicePixelRatio;
    const QSizeF shown(picture.width() * m_scale, picture.height() * m_scale);
    QPointF corner;
    if (place == Place::Centre) {
        // On a whole device pixel, so that what is shown pixel for pixel stays sharp.
        const auto centred = [devicePixelRatio](double rest) {
            return std::floor(rest * devicePixelRatio / 2) / devicePixelRatio;
        };
        corner = QPointF(centred(canvas.width() - shown.width()), centred(canvas.height() - shown.height()));
    }
    m_target = QRectF(corner, shown);
}

QPoint PictureFit::pixelAt(QPointF place) const {
    if (m_picture.isEmpty()) {
        return {};
    }
    const auto at = [this](double offset, int most) {
        return std::clamp(static_cast<int>(std::floor(offset / m_scale)), 0, most - 1);
    };
    return {at(place.x() - m_target.x(), m_picture.width()), at(place.y() - m_target.y(), m_picture.height())};
}

QRect PictureFit::shownAt(const QRect& part) const {
    const QRectF shown(m_target.x() + part.x() * m_scale, m_target.y() + part.y() * m_scale, part.width() * m_scale,
                       part.height() * m_scale);
    const int blur = m_scaled ? 2 : 0;
    return shown.toAlignedRect().adjusted(-blur, -blur, blur, blur);
}

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#include "viewer/spice_head.hpp"

#include <algorithm>
#include <optional>

namespace bulkhead::viewer {
namespace {

constexpr int kLargestImage = 16384; ///< pixels a side; QEMU's own limit
/// A guest draws its own pointer, and the pointer is the one thing of a guest that may reach over the frame: this keeps
/// it too small to draw another label there.
constexpr int kLargestPointer = 64;
constexpr int kGhostShrink = 16;

SpiceHead& headOf(gpointer head) {
    return *static_cast<SpiceHead*>(head);
}

std::optional<QImage::Format> formatOf(gint surfaceFormat) {
    switch (surfaceFormat) {
    case SPICE_SURFACE_FMT_32_xRGB:
    case SPICE_SURFACE_FMT_32_ARGB: // a screen has nothing behind it
        return QImage::Format_RGB32;
    case SPICE_SURFACE_FMT_16_565:
        return QImage::Format_RGB16;
    case SPICE_SURFACE_FMT_16_555:
        return QImage::Format_RGB555;
    default: // one bit and eight bits: no graphics device of ours has those
        return std::nullopt;
    }
}

QImage ghostOf(const QImage& image) {
    const QSize small(std::max(1, image.width() / kGhostShrink), std::max(1, image.height() / kGhostShrink));
    return image.scaled(small, Qt::IgnoreAspectRatio, Qt::SmoothTransformation)
        .convertToFormat(QImage::Format_Grayscale8);
}

} // namespace

SpiceHead::SpiceHead(std::uint32_t number, PointerSink& sink, QObject* parent)
    : SurfaceSource(parent)
    , m_number(number)
    , m_sink(sink) {}

SpiceHead::~SpiceHead() {
    for (const auto& channel : m_channels) {
        g_signal_handlers_disconnect_by_data(channel.get(), this);
    }
}

void SpiceHead::watch(SpiceChannel* channel, const char* signal, GCallback callback) {
    g_signal_connect_data(channel, signal, callback, this, nullptr, GConnectFlags{});
}

void SpiceHead::attachDisplay(SpiceChannel* channel) {
    m_channels.push_back(GObjectPtr<SpiceChannel>::share(channel));
    watch(channel, "display-primary-create", reinterpret_cast<GCallback>(&SpiceHead::onPrimaryCreate));
    watch(channel, "display-primary-destroy", reinterpret_cast<GCallback>(&SpiceHead::onPrimaryDestroy));
    watch(channel, "display-invalidate", reinterpret_cast<GCallback>(&SpiceHead::onInvalidate));
}

void SpiceHead::attachCursor(SpiceChannel* channel) {
    m_channels.push_back(GObjectPtr<SpiceChannel>::share(channel));
    watch(channel, "cursor-set", reinterpret_cast<GCallback>(&SpiceHead::onCursorSet));
    watch(channel, "cursor-hide", reinterpret_cast<GCallback>(&SpiceHead::onCursorHide));
    watch(channel, "cursor-reset", reinterpret_cast<GCallback>(&SpiceHead::onCursorReset));
}

void SpiceHead::detach() {
    for (const auto& channel : m_channels) {
        g_signal_handlers_disconnect_by_data(channel.get(), this);
    }
    setImage(QImage());
    setPointer(PointerShape());
    m_channels.clear();
}

void SpiceHead::setImage(QImage image) {
    if (!m_image.isNull() && image.isNull()) {
        m_ghost = ghostOf(m_image);
    }
    m_image = std::move(image);
    Q_EMIT imageChanged();
}

void SpiceHead::setPointer(PointerShape shape) {
    m_pointer = std::move(shape);
    Q_EMIT pointerChanged();
}

void SpiceHead::onPrimaryCreate(SpiceChannel* /*channel*/, gint format, gint width, gint height, gint stride,
                                gint /*shmId*/, gpointer data, gpointer head) {
    const auto qtFormat = formatOf(format);
    const bool sane = qtFormat && data != nullptr && width > 0 && height > 0 && width <= kLargestImage &&
                      height <= kLargestImage && stride >= width * (*qtFormat == QImage::Format_RGB32 ? 4 : 2);
    headOf(head).setImage(sane ? QImage(static_cast<const uchar*>(data), width, height, stride, *qtFormat) : QImage());
}

void SpiceHead::onPrimaryDestroy(SpiceChannel* /*channel*/, gpointer head) {
    headOf(head).setImage(QImage());
}

void SpiceHead::onInvalidate(SpiceChannel* /*channel*/, gint x, gint y, gint width, gint height, gpointer head) {
    Q_EMIT headOf(head).damaged(QRect(x, y, width, height).intersected(headOf(head).m_image.rect()));
}

void SpiceHead::onCursorSet(SpiceChannel* /*channel*/, gint width, gint height, gint hotX, gint hotY, gpointer rgba,
                            gpointer head) {
    constexpr int kLargestTaken = 1024;
    if (rgba == nullptr || width <= 0 || height <= 0 || width > kLargestTaken || height > kLargestTaken) {
        return;
    }
    PointerShape shape;
    shape.isDefault = false;
    shape.image = QImage(static_cast<const uchar*>(rgba), width, height, width * 4, QImage::Format_RGBA8888).copy();
    shape.hotSpot = QPoint(std::clamp(hotX, 0, width - 1), std::clamp(hotY, 0, height - 1));
    if (width > kLargestPointer || height > kLargestPointer) {
        const QImage smaller =
            shape.image.scaled(kLargestPointer, kLargestPointer, Qt::KeepAspectRatio, Qt::SmoothTransformation);
        shape.hotSpot =
            QPoint(shape.hotSpot.x() * smaller.width() / width, shape.hotSpot.y() * smaller.height() / height);
        shape.image = smaller;
    }
    headOf(head).setPointer(std::move(shape));
}

void SpiceHead::onCursorHide(SpiceChannel* /*channel*/, gpointer head) {
    PointerShape hidden;
    hidden.isDefault = false;
    headOf(head).setPointer(std::move(hidden));
}

void SpiceHead::onCursorReset(SpiceChannel* /*channel*/, gpointer head) {
    headOf(head).setPointer(PointerShape());
}

void SpiceHead::movePointer(QPoint position) {
    m_sink.sendPosition(m_number, position);
}

void SpiceHead::pressButton(PointerButton button) {
    m_sink.sendButton(button, true);
}

void SpiceHead::releaseButton(PointerButton button) {
    m_sink.sendButton(button, false);
}

void SpiceHead::turnWheel(int notches) {
    m_sink.sendWheel(notches);
}

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/gobject_ptr.hpp"
#include "viewer/surface_source.hpp"

// GLib's headers come with names that Qt's keyword macros would break; QT_NO_KEYWORDS is set for this folder.
#include <spice-client.h>

#include <vector>

namespace bulkhead::viewer {

/// Where a head sends what the user does with the pointer.
class PointerSink {
public:
    PointerSink() = default;
    PointerSink(const PointerSink&) = delete;
    PointerSink& operator=(const PointerSink&) = delete;
    virtual ~PointerSink() = default;

    virtual void sendPosition(std::uint32_t head, QPoint position) = 0;
    virtual void sendButton(PointerButton button, bool down) = 0;
    virtual void sendWheel(int notches) = 0;
};

/// One head (scanout) of the guest's graphics device: a SPICE display channel and the cursor channel with its number.
/// Outlives the connection: detach() and attach again after a reconnect, and whoever shows it need not notice.
class SpiceHead : public SurfaceSource {
    Q_OBJECT

public:
    SpiceHead(std::uint32_t number, PointerSink& sink, QObject* parent = nullptr);
    ~SpiceHead() override;

    [[nodiscard]] std::uint32_t number() const { return m_number; }
    void attachDisplay(SpiceChannel* channel);
    void attachCursor(SpiceChannel* channel);
    void detach();

    [[nodiscard]] const QImage& image() const override { return m_image; }
    [[nodiscard]] const QImage& ghost() const override { return m_ghost; }
    [[nodiscard]] const PointerShape& pointer() const override { return m_pointer; }
    void movePointer(QPoint position) override;
    void pressButton(PointerButton button) override;
    void releaseButton(PointerButton button) override;
    void turnWheel(int notches) override;

private:
    void watch(SpiceChannel* channel, const char* signal, GCallback callback);
    void setImage(QImage image);
    void setPointer(PointerShape shape);

    // What spice-client-glib calls; the last argument is the SpiceHead.
    static void onPrimaryCreate(SpiceChannel* channel, gint format, gint width, gint height, gint stride, gint shmId,
                                gpointer data, gpointer head);
    static void onPrimaryDestroy(SpiceChannel* channel, gpointer head);
    static void onInvalidate(SpiceChannel* channel, gint x, gint y, gint width, gint height, gpointer head);
    static void onCursorSet(SpiceChannel* channel, gint width, gint height, gint hotX, gint hotY, gpointer rgba,
                            gpointer head);
    static void onCursorHide(SpiceChannel* channel, gpointer head);
    static void onCursorReset(SpiceChannel* channel, gpointer head);

    std::uint32_t m_number;
    PointerSink& m_sink;
    std::vector<GObjectPtr<SpiceChannel>> m_channels;
    QImage m_image; ///< a view of spice-client-glib's memory
    QImage m_ghost;
    PointerShape m_pointer;
};

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/picture_fit.hpp"
#include "viewer/scancodes.hpp"
#include "viewer/surface_source.hpp"

#include <QPointer>
#include <QSet>
#include <QTimer>
#include <QWidget>

namespace bulkhead::viewer {

/// Shows a surface and sends what the user does over it to the guest. Whatever was pressed is released when the
/// keyboard goes elsewhere.
class Canvas : public QWidget {
    Q_OBJECT

public:
    Canvas(SurfaceSource& source, KeySink& keys, QWidget* parent);
    ~Canvas() override;

    /// Another head shows this window from now on.
    void setSource(SurfaceSource& source);
    /// While not live nothing is sent to the guest.
    void setLive(bool live);
    void setPlace(PictureFit::Place place);

    [[nodiscard]] QSize pixels() const;
    [[nodiscard]] QSize pictureSize() const;

Q_SIGNALS:
    /// In pixels of the screen: what a picture has to have to fill the canvas.
    void pixelsChanged(QSize pixels);
    void pictureSizeChanged(QSize size);

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void keyReleaseEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    bool focusNextPrevChild(bool next) override;

private:
    void refit();
    void followImage();
    void showPointer();
    void letGo();
    void releaseLost();
    void syncLocks(const QKeyEvent& event);
    /// The guest has something to point at.
    [[nodiscard]] bool hasPlace() const;

    QPointer<SurfaceSource> m_source;
    KeySink& m_keys;
    KeyTracker m_tracker;
    QSet<PointerButton> m_buttons;
    PictureFit m_fit;
    PictureFit::Place m_place = PictureFit::Place::TopLeft;
    QTimer m_pointerTimer;
    QTimer m_heldTimer;
    QSize m_pictureSize;
    QPoint m_wheel; ///< eighths of a degree that are not a notch yet
    bool m_live = false;
    bool m_locksUnknown = true; ///< the host's lock keys may have changed while another window had the keyboard
};

size_t qHash(PointerButton button, size_t seed = 0);

} // namespace bulkhead::viewer

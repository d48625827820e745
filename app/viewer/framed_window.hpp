// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/canvas.hpp"
#include "viewer/frame.hpp"
#include "viewer/pacing.hpp"
#include "viewer/state_overlay.hpp"

#include <QTimer>
#include <QWidget>

#include <vector>

class QTabBar;

namespace bulkhead::viewer {

class SoundButton;

/// What a host window shows besides the picture.
struct WindowView {
    struct Tab {
        std::uint32_t window = 0;
        QString title; ///< cleaned
        bool operator==(const Tab&) const = default;
    };
    QString title;         ///< of the title bar
    QString appClass;      ///< the guest's word for its program: by it the host's icons are looked through
    std::vector<Tab> tabs; ///< more than one: the guest ran out of heads
    std::uint32_t current = 0;
    QSize minimum; ///< pixels of the picture
    bool operator==(const WindowView&) const = default;
};

/// A window on the host's desktop: the frame, in it the picture of a head, over that the state when it does not live.
/// The picture is a child that lies inside the frame, so that nothing of the guest can be painted over the frame.
class FramedWindow : public QWidget {
    Q_OBJECT

public:
    FramedWindow(SurfaceSource& source, KeySink& keys, const FrameLook& look);

    void setSource(SurfaceSource& source) { m_canvas->setSource(source); }
    void setView(const WindowView& view);
    [[nodiscard]] const WindowView& view() const { return m_view; }
    void setLook(const FrameLook& look);
    [[nodiscard]] const FrameLook& look() const { return m_look; }
    void setOverlay(const OverlayText& text);
    [[nodiscard]] const OverlayText& overlay() const { return m_overlay->text(); }
    void setPlace(PictureFit::Place place) { m_canvas->setPlace(place); }

    /// Gives the window the size that this picture needs, within the screen; before it is first shown.
    void sizeFor(QSize pixels);
    /// Closing the window closes it; otherwise only closeAsked() is told.
    void setClosable(bool closable) { m_closable = closable; }
    /// The guest side has forgotten what was asked of it: ask for the size again.
    void repeatResize();

    /// There has been no picture for longer than a change of size takes.
    [[nodiscard]] bool lacksPicture() const { return m_lacksPicture; }
    [[nodiscard]] Canvas& canvas() { return *m_canvas; }

Q_SIGNALS:
    void closeAsked();
    /// Only with setClosable(true).
    void closed();
    void activated();
    /// The guest is to make its picture that large.
    void resizeWanted(QSize pixels);
    /// lacksPicture() changed.
    void pictureChanged();
    void tabChosen(quint32 window);
    void actionChosen();
    void soundSwitched();

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void closeEvent(QCloseEvent* event) override;
    void changeEvent(QEvent* event) override;
    bool event(QEvent* event) override;

private:
    void layOut();
    void showTabs();
    void planResize();
    void drawIcon();
    [[nodiscard]] QMargins margins() const;

    FrameLook m_look;
    WindowView m_view;
    Canvas* m_canvas = nullptr;
    QTabBar* m_tabs = nullptr;
    StateOverlay* m_overlay = nullptr;
    SoundButton* m_soundButton = nullptr;
    ResizePlan m_plan;
    QTimer m_resizeTimer;
    QTimer m_pictureTimer;
    bool m_lacksPicture = false;
    bool m_closable = false;
};

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#include "viewer/canvas.hpp"

#include "viewer/host_settings.hpp"

#include <QCursor>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPixmap>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace bulkhead::viewer {
namespace {

constexpr std::uint32_t kFirstKeycode = 8; ///< X and Wayland number keys from here on
constexpr QColor kAround(32, 34, 37);      ///< where a picture does not fill the window
constexpr int kNotch = 120;                ///< of QWheelEvent::angleDelta()
constexpr int kMostNotches = 10;
constexpr int kHeldInterval = 200;   ///< ms
constexpr int kPointerInterval = 40; ///< ms; a guest may change its pointer as often as it likes
/// Bits of the keyboard's state as X and Wayland tell it, with every usual keyboard map.
constexpr quint32 kCapsBit = 1U << 1U;
constexpr quint32 kNumBit = 1U << 4U;

std::optional<PointerButton> buttonOf(Qt::MouseButton button) {
    if (button == Qt::LeftButton) {
        return PointerButton::Left;
    }
    if (button == Qt::MiddleButton) {
        return PointerButton::Middle;
    }
    if (button == Qt::RightButton) {
        return PointerButton::Right;
    }
    if (button == Qt::BackButton) {
        return PointerButton::Side;
    }
    if (button == Qt::ForwardButton) {
        return PointerButton::Extra;
    }
    return std::nullopt;
}

std::uint32_t keyOf(const QKeyEvent& event) {
    return event.nativeScanCode() > kFirstKeycode ? event.nativeScanCode() - kFirstKeycode : 0;
}

} // namespace

size_t qHash(PointerButton button, size_t seed) {
    return ::qHash(static_cast<int>(button), seed);
}

Canvas::Canvas(SurfaceSource& source, KeySink& keys, QWidget* parent)
    : QWidget(parent)
    , m_keys(keys) {
    setAttribute(Qt::WA_OpaquePaintEvent);
    setAttribute(Qt::WA_NoSystemBackground);
    setAttribute(Qt::WA_InputMethodEnabled, false); // the guest has its own
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Picture of the window"));
    m_pointerTimer.setSingleShot(true);
    m_pointerTimer.setInterval(kPointerInterval);
    connect(&m_pointerTimer, &QTimer::timeout, this, &Canvas::showPointer);
    m_heldTimer.setInterval(kHeldInterval);
    connect(&m_heldTimer, &QTimer::timeout, this, &Canvas::releaseLost);
    setSource(source);
}

Canvas::~Canvas() {
    letGo();
}

void Canvas::setSource(SurfaceSource& source) {
    if (m_source == &source) {
        return;
    }
    if (m_source) {
        letGo();
        disconnect(m_source, nullptr, this, nullptr);
    }
    m_source = &source;
    connect(m_source, &SurfaceSource::imageChanged, this, &Canvas::followImage);
    connect(m_source, &SurfaceSource::damaged, this, [this](const QRect& where) { update(m_fit.shownAt(where)); });
    connect(m_source, &SurfaceSource::pointerChanged, this, [this] {
        if (!m_pointerTimer.isActive()) {
            m_pointerTimer.start();
        }
    });
    followImage();
    showPointer();
}

void Canvas::setLive(bool live) {
    if (m_live != live) {
        letGo();
        m_live = live;
        update();
    }
}

void Canvas::setPlace(PictureFit::Place place) {
    m_place = place;
    refit();
}

QSize Canvas::pixels() const {
    return pixelsOf(size(), devicePixelRatioF());
}

QSize Canvas::pictureSize() const {
    return m_pictureSize;
}

void Canvas::followImage() {
    const QSize now = m_source ? m_source->image().size() : QSize();
    const bool changed = now != m_pictureSize;
    m_pictureSize = now;
    refit();
    if (changed) {
        Q_EMIT pictureSizeChanged(now);
    }
}

void Canvas::refit() {
    m_fit = PictureFit(m_pictureSize, size(), devicePixelRatioF(), m_place);
    update();
}

bool Canvas::event(QEvent* event) {
    if (event->type() == QEvent::ShortcutOverride) {
        event->accept(); // every key is the guest's; the host's window manager has taken its own before
        return true;
    }
    return QWidget::event(event);
}

bool Canvas::focusNextPrevChild(bool /*next*/) {
    return false; // Tab is the guest's
}

void Canvas::paintEvent(QPaintEvent* /*event*/) {
    QPainter painter(this);
    if (!m_source || m_source->image().isNull()) {
        painter.fillRect(rect(), kAround);
        if (m_source && !m_source->ghost().isNull()) {
            painter.setRenderHint(QPainter::SmoothPixmapTransform);
            painter.drawImage(rect(), m_source->ghost());
        }
        return;
    }
    const QRectF target = m_fit.target();
    if (!target.toAlignedRect().contains(rect()) || m_fit.isScaled()) {
        painter.fillRect(rect(), kAround);
    }
    painter.setRenderHint(QPainter::SmoothPixmapTransform, m_fit.isScaled());
    painter.drawImage(target, m_source->image(), QRectF(m_source->image().rect()));
}

void Canvas::resizeEvent(QResizeEvent* /*event*/) {
    refit();
    Q_EMIT pixelsChanged(pixels());
}

void Canvas::showPointer() {
    if (!m_source || m_source->pointer().isDefault) {
        unsetCursor();
        return;
    }
    const PointerShape& shape = m_source->pointer();
    if (shape.image.isNull()) {
        setCursor(Qt::BlankCursor);
        return;
    }
    QPixmap pixmap = QPixmap::fromImage(shape.image);
    const double ratio = devicePixelRatioF();
    pixmap.setDevicePixelRatio(ratio);
    setCursor(
        QCursor(pixmap, static_cast<int>(shape.hotSpot.x() / ratio), static_cast<int>(shape.hotSpot.y() / ratio)));
}

bool Canvas::hasPlace() const {
    return m_live && m_source && !m_pictureSize.isEmpty();
}

void Canvas::mouseMoveEvent(QMouseEvent* event) {
    if (hasPlace()) {
        m_source->movePointer(m_fit.pixelAt(event->position()));
    }
}

void Canvas::mousePressEvent(QMouseEvent* event) {
    mouseMoveEvent(event); // the guest has to know where, first
    const auto button = buttonOf(event->button());
    // Without a picture there is no place to click at: the guest would take it for where the pointer was last, and that
    // is in another window.
    if (button && hasPlace() && !m_buttons.contains(*button)) {
        m_buttons.insert(*button);
        m_source->pressButton(*button);
    }
}

void Canvas::mouseDoubleClickEvent(QMouseEvent* event) {
    mousePressEvent(event); // the guest counts clicks itself
}

void Canvas::mouseReleaseEvent(QMouseEvent* event) {
    mouseMoveEvent(event);
    const auto button = buttonOf(event->button());
    if (button && m_source && m_buttons.remove(*button)) {
        m_source->releaseButton(*button);
    }
}

void Canvas::wheelEvent(QWheelEvent* event) {
    event->accept();
    if (!hasPlace()) {
        return;
    }
    m_wheel += event->angleDelta();
    const int notches = std::clamp(m_wheel.y() / kNotch, -kMostNotches, kMostNotches);
    m_wheel.ry() %= kNotch;
    m_wheel.rx() %= kNotch;
    if (notches != 0) {
        m_source->movePointer(m_fit.pixelAt(event->position()));
        m_source->turnWheel(notches);
    }
}

void Canvas::keyPressEvent(QKeyEvent* event) {
    event->accept();
    if (!m_live || event->isAutoRepeat()) {
        return; // the guest repeats keys itself
    }
    const std::uint32_t key = keyOf(*event);
    if (!isLockKey(key)) {
        syncLocks(*event);
    }
    if (const auto scancode = m_tracker.press(key)) {
        m_keys.pressKey(*scancode);
        m_heldTimer.start();
    }
}

/// A window manager that answers a shortcut takes the keyboard for a moment, and may get the release of a key whose
/// press was ours; Qt does not tell of that. So while keys are held the keyboard itself is asked.
void Canvas::releaseLost() {
    const auto down = hostKeysDown();
    if (down) {
        for (const std::uint32_t key : std::set<std::uint32_t>(m_tracker.held())) {
            if (key >= down->size() || !down->test(key)) {
                if (const auto scancode = m_tracker.release(key)) {
                    m_keys.releaseKey(*scancode);
                }
            }
        }
    }
    if (!down || m_tracker.empty()) {
        m_heldTimer.stop();
    }
}

void Canvas::keyReleaseEvent(QKeyEvent* event) {
    event->accept();
    if (event->isAutoRepeat()) {
        return;
    }
    if (const auto scancode = m_tracker.release(keyOf(*event))) {
        m_keys.releaseKey(*scancode);
    }
}

/// Once after the keyboard came: from then on the guest sees the lock keys pressed itself.
void Canvas::syncLocks(const QKeyEvent& event) {
    if (std::exchange(m_locksUnknown, false)) {
        m_keys.setLocks((event.nativeModifiers() & kCapsBit) != 0, (event.nativeModifiers() & kNumBit) != 0);
    }
}

void Canvas::focusInEvent(QFocusEvent* event) {
    m_locksUnknown = true;
    QWidget::focusInEvent(event);
}

void Canvas::focusOutEvent(QFocusEvent* event) {
    letGo();
    QWidget::focusOutEvent(event);
}

void Canvas::hideEvent(QHideEvent* event) {
    letGo();
    QWidget::hideEvent(event);
}

void Canvas::letGo() {
    for (const std::uint16_t scancode : m_tracker.releaseAll()) {
        m_keys.releaseKey(scancode);
    }
    for (const PointerButton button : std::exchange(m_buttons, {})) {
        if (m_source) {
            m_source->releaseButton(button);
        }
    }
}

} // namespace bulkhead::viewer

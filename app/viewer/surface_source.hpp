// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QImage>
#include <QObject>
#include <QPoint>
#include <QRect>

#include <cstdint>

namespace bulkhead::viewer {

/// What the pointer looks like over a surface.
struct PointerShape {
    QImage image; ///< null: hidden
    QPoint hotSpot;
    bool isDefault = true; ///< nothing was set: the host's own arrow
};

enum class PointerButton { Left, Middle, Right, Side, Extra };

/// Where a guest window's picture comes from and where the pointer over it goes to: a SPICE head today. GUI thread.
class SurfaceSource : public QObject {
    Q_OBJECT

public:
    using QObject::QObject;

    /// The picture; null while there is none. It may be a view of memory that the source owns, so that nobody keeps a
    /// copy of the QImage beyond one turn of the event loop.
    [[nodiscard]] virtual const QImage& image() const = 0;
    /// A small blurred copy of the last picture, for behind the words when there is no picture any more.
    [[nodiscard]] virtual const QImage& ghost() const = 0;
    [[nodiscard]] virtual const PointerShape& pointer() const = 0;

    /// All positions are pixels of the picture.
    virtual void movePointer(QPoint position) = 0;
    virtual void pressButton(PointerButton button) = 0;
    virtual void releaseButton(PointerButton button) = 0;
    /// Positive: away from the user. One notch each.
    virtual void turnWheel(int notches) = 0;

Q_SIGNALS:
    /// The picture was replaced, came or went.
    void imageChanged();
    /// Pixels of the picture changed.
    void damaged(const QRect& where);
    void pointerChanged();
};

/// Where keys go: there is one keyboard for a whole guest.
class KeySink {
public:
    KeySink() = default;
    KeySink(const KeySink&) = delete;
    KeySink& operator=(const KeySink&) = delete;
    virtual ~KeySink() = default;

    virtual void pressKey(std::uint16_t scancode) = 0;
    virtual void releaseKey(std::uint16_t scancode) = 0;
    /// Makes the guest's lock keys agree with the host's.
    virtual void setLocks(bool caps, bool num) = 0;
};

} // namespace bulkhead::viewer

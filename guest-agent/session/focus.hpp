// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/connection.hpp"
#include "session/ewmh.hpp"
#include "session/windows.hpp"

#include <vector>

namespace bulkhead::session {

/// Which windows had the keyboard, most recent last. Values only.
class FocusOrder {
public:
    /// A window came. It does not get the keyboard by that; a dialog gets it together with its window.
    void add(const Window& window, const Windows& windows);
    void remove(XWindow window);
    void use(XWindow window);
    /// The one of this group (a window with a head, and the dialogs on it) that had the keyboard last, or 0.
    [[nodiscard]] XWindow lastOf(XWindow owner, const Windows& windows) const;
    /// The one that had it last, or 0.
    [[nodiscard]] XWindow last() const { return m_order.empty() ? 0 : m_order.back(); }
    [[nodiscard]] const std::vector<XWindow>& order() const { return m_order; }

private:
    std::vector<XWindow> m_order;
};

/// The window that has a head, for a window or a dialog on it.
[[nodiscard]] XWindow ownerOf(const Window& window);

/// The keyboard of the X server: one window has it. Who clicks into another gives it to that one.
class Focus {
public:
    /// How a window wants the keyboard (ICCCM 4.1.7).
    struct Wish {
        bool acceptsInput = true;
        bool takesFocus = false;
    };
    Focus(const Connection& connection, Ewmh& ewmh)
        : m_connection(connection)
        , m_ewmh(ewmh) {}

    [[nodiscard]] XWindow active() const { return m_active; }
    /// Gives it the keyboard.
    void give(XWindow window, Wish wish);
    /// Nobody has it.
    void takeAway();
    /// The server says that this window has it.
    void noteIn(XWindow window);
    /// The server's time, asked for by give().
    void noteTime(xcb_timestamp_t time);
    /// Clicks into a window that has not the keyboard are told of first.
    void watchClicks(XWindow window, bool on);

private:
    const Connection& m_connection;
    Ewmh& m_ewmh;
    XWindow m_active = 0;
    XWindow m_askedToTake = 0;
};

} // namespace bulkhead::session

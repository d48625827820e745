// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/connection.hpp"
#include "session/windows.hpp"

#include <set>
#include <vector>

namespace bulkhead::session {

/// What a window manager writes for programs to read: on the root window, and its states on each window.
class Ewmh {
public:
    explicit Ewmh(const Connection& connection);
    ~Ewmh();
    Ewmh(const Ewmh&) = delete;
    Ewmh& operator=(const Ewmh&) = delete;

    /// A window of ours that says who manages the windows.
    [[nodiscard]] xcb_window_t ourWindow() const { return m_window; }

    void setScreen(Size screen);
    void setActive(XWindow window);
    void setClientList(const std::vector<Window>& windows);
    /// States as _NET_WM_STATE has them.
    void setStates(XWindow window, const std::set<xcb_atom_t>& states);
    /// Properties of a window that is managed from now on.
    void setManaged(XWindow window);
    /// … and not any more.
    void setWithdrawn(XWindow window);
    /// There is no frame.
    void setFrameExtents(XWindow window);
    /// Those of `states` that we know what to do with.
    [[nodiscard]] std::set<xcb_atom_t> knownStates(const std::vector<xcb_atom_t>& states) const;

private:
    void put(xcb_window_t window, xcb_atom_t property, xcb_atom_t type, const std::vector<std::uint32_t>& values);

    const Connection& m_connection;
    xcb_window_t m_window;
    std::vector<std::uint32_t> m_clientList;
    Size m_screen;
    XWindow m_active = 0;
};

} // namespace bulkhead::session

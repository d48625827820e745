// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/connection.hpp"
#include "session/windows.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::session {

/// How a window is treated. What only its program knows how to place (menus, tips) is left where it is.
enum class Treatment { Managed, Free };

/// All that the properties of a window say; read in one round trip, and never more of a property than a limit.
struct Description {
    Facts facts;
    Treatment treatment = Treatment::Managed;
    Size size; ///< wanted: what it measures now
    Point at;
    bool overrideRedirect = false;
    bool isMapped = false;
    bool exists = false;
    bool asksForPlace = false;  ///< its user or program gave it a position
    bool acceptsInput = true;   ///< WM_HINTS.input
    bool takesFocus = false;    ///< WM_TAKE_FOCUS
    bool deletesItself = false; ///< WM_DELETE_WINDOW
    std::vector<xcb_atom_t> states;
};

[[nodiscard]] Description describe(const Connection& connection, xcb_window_t window);

/// Up to `most` 32-bit values of a property; empty when it has another type or format.
[[nodiscard]] std::vector<std::uint32_t> readCardinals(const Connection& connection, xcb_window_t window,
                                                       xcb_atom_t property, xcb_atom_t type, std::uint32_t most);

} // namespace bulkhead::session

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xcb/xcb.h>

/// The atoms that a window manager speaks of. One list makes the members and the names they are asked by.
namespace bulkhead::session {

#define BULKHEAD_SESSION_ATOMS(X)                                                                                      \
    X(UTF8_STRING)                                                                                                     \
    X(WM_S0)                                                                                                           \
    X(WM_STATE)                                                                                                        \
    X(WM_PROTOCOLS)                                                                                                    \
    X(WM_DELETE_WINDOW)                                                                                                \
    X(WM_TAKE_FOCUS)                                                                                                   \
    X(WM_CHANGE_STATE)                                                                                                 \
    X(MANAGER)                                                                                                         \
    X(_NET_SUPPORTED)                                                                                                  \
    X(_NET_SUPPORTING_WM_CHECK)                                                                                        \
    X(_NET_CLIENT_LIST)                                                                                                \
    X(_NET_CLIENT_LIST_STACKING)                                                                                       \
    X(_NET_NUMBER_OF_DESKTOPS)                                                                                         \
    X(_NET_CURRENT_DESKTOP)                                                                                            \
    X(_NET_DESKTOP_GEOMETRY)                                                                                           \
    X(_NET_DESKTOP_VIEWPORT)                                                                                           \
    X(_NET_ACTIVE_WINDOW)                                                                                              \
    X(_NET_WORKAREA)                                                                                                   \
    X(_NET_CLOSE_WINDOW)                                                                                               \
    X(_NET_REQUEST_FRAME_EXTENTS)                                                                                      \
    X(_NET_FRAME_EXTENTS)                                                                                              \
    X(_NET_WM_NAME)                                                                                                    \
    X(_NET_WM_WINDOW_TYPE)                                                                                             \
    X(_NET_WM_WINDOW_TYPE_NORMAL)                                                                                      \
    X(_NET_WM_WINDOW_TYPE_DIALOG)                                                                                      \
    X(_NET_WM_WINDOW_TYPE_UTILITY)                                                                                     \
    X(_NET_WM_WINDOW_TYPE_TOOLBAR)                                                                                     \
    X(_NET_WM_WINDOW_TYPE_SPLASH)                                                                                      \
    X(_NET_WM_WINDOW_TYPE_DOCK)                                                                                        \
    X(_NET_WM_WINDOW_TYPE_DESKTOP)                                                                                     \
    X(_NET_WM_WINDOW_TYPE_MENU)                                                                                        \
    X(_NET_WM_WINDOW_TYPE_DROPDOWN_MENU)                                                                               \
    X(_NET_WM_WINDOW_TYPE_POPUP_MENU)                                                                                  \
    X(_NET_WM_WINDOW_TYPE_TOOLTIP)                                                                                     \
    X(_NET_WM_WINDOW_TYPE_NOTIFICATION)                                                                                \
    X(_NET_WM_WINDOW_TYPE_COMBO)                                                                                       \
    X(_NET_WM_WINDOW_TYPE_DND)                                                                                         \
    X(_NET_WM_STATE)                                                                                                   \
    X(_NET_WM_STATE_MODAL)                                                                                             \
    X(_NET_WM_STATE_FULLSCREEN)                                                                                        \
    X(_NET_WM_STATE_MAXIMIZED_HORZ)                                                                                    \
    X(_NET_WM_STATE_MAXIMIZED_VERT)                                                                                    \
    X(_NET_WM_STATE_DEMANDS_ATTENTION)                                                                                 \
    X(_NET_WM_STATE_FOCUSED)                                                                                           \
    X(_NET_WM_ALLOWED_ACTIONS)                                                                                         \
    X(_NET_WM_ACTION_CLOSE)                                                                                            \
    X(_NET_WM_ACTION_FULLSCREEN)                                                                                       \
    X(_NET_WM_ACTION_MAXIMIZE_HORZ)                                                                                    \
    X(_NET_WM_ACTION_MAXIMIZE_VERT)

struct Atoms {
#define BULKHEAD_SESSION_MEMBER(name) xcb_atom_t name = XCB_ATOM_NONE;
    BULKHEAD_SESSION_ATOMS(BULKHEAD_SESSION_MEMBER)
#undef BULKHEAD_SESSION_MEMBER
};

/// Asks the server for all of them in one round trip. What it does not tell (it went) stays XCB_ATOM_NONE.
[[nodiscard]] Atoms internAtoms(xcb_connection_t* connection);

} // namespace bulkhead::session

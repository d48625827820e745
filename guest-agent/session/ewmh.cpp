// SPDX-License-Identifier: Apache-2.0
#include "session/ewmh.hpp"

#include <array>
#include <string_view>

namespace bulkhead::session {
namespace {

constexpr std::string_view kName = "bulkhead-session";
constexpr std::uint32_t kNormalState = 1; // ICCCM's WM_STATE
constexpr std::uint32_t kWithdrawnState = 0;

/// The arrow, for windows that have no pointer of their own.
void setPointer(const Connection& connection) {
    constexpr std::string_view kFont = "cursor";
    constexpr std::uint16_t kArrow = 68; // XC_left_ptr; its mask follows it
    constexpr std::uint16_t kWhite = 0xFFFF;
    xcb_connection_t* const x = connection.x();
    const xcb_font_t font = xcb_generate_id(x);
    const xcb_cursor_t pointer = xcb_generate_id(x);
    xcb_open_font(x, font, kFont.size(), kFont.data());
    xcb_create_glyph_cursor(x, pointer, font, font, kArrow, kArrow + 1, 0, 0, 0, kWhite, kWhite, kWhite);
    xcb_change_window_attributes(x, connection.root(), XCB_CW_CURSOR, &pointer);
    xcb_free_cursor(x, pointer);
    xcb_close_font(x, font);
}

} // namespace

Ewmh::Ewmh(const Connection& connection)
    : m_connection(connection)
    , m_window(xcb_generate_id(connection.x())) {
    const Atoms& atoms = connection.atoms();
    const std::array<std::uint32_t, 2> values{1, XCB_EVENT_MASK_PROPERTY_CHANGE}; // override-redirect: not for us
    xcb_create_window(connection.x(), XCB_COPY_FROM_PARENT, m_window, connection.root(), -10, -10, 1, 1, 0,
                      XCB_WINDOW_CLASS_INPUT_OUTPUT, connection.visual(), XCB_CW_OVERRIDE_REDIRECT | XCB_CW_EVENT_MASK,
                      values.data());
    put(connection.root(), atoms._NET_SUPPORTING_WM_CHECK, XCB_ATOM_WINDOW, {m_window});
    put(m_window, atoms._NET_SUPPORTING_WM_CHECK, XCB_ATOM_WINDOW, {m_window});
    xcb_change_property(connection.x(), XCB_PROP_MODE_REPLACE, m_window, atoms._NET_WM_NAME, atoms.UTF8_STRING, 8,
                        static_cast<std::uint32_t>(kName.size()), kName.data());
    put(connection.root(), atoms._NET_SUPPORTED, XCB_ATOM_ATOM,
        {atoms._NET_SUPPORTING_WM_CHECK,
         atoms._NET_CLIENT_LIST,
         atoms._NET_CLIENT_LIST_STACKING,
         atoms._NET_NUMBER_OF_DESKTOPS,
         atoms._NET_CURRENT_DESKTOP,
         atoms._NET_DESKTOP_GEOMETRY,
         atoms._NET_DESKTOP_VIEWPORT,
         atoms._NET_ACTIVE_WINDOW,
         atoms._NET_WORKAREA,
         atoms._NET_CLOSE_WINDOW,
         atoms._NET_REQUEST_FRAME_EXTENTS,
         atoms._NET_FRAME_EXTENTS,
         atoms._NET_WM_NAME,
         atoms._NET_WM_WINDOW_TYPE,
         atoms._NET_WM_WINDOW_TYPE_NORMAL,
         atoms._NET_WM_WINDOW_TYPE_DIALOG,
         atoms._NET_WM_WINDOW_TYPE_UTILITY,
         atoms._NET_WM_STATE,
         atoms._NET_WM_STATE_MODAL,
         atoms._NET_WM_STATE_FULLSCREEN,
         atoms._NET_WM_STATE_MAXIMIZED_HORZ,
         atoms._NET_WM_STATE_MAXIMIZED_VERT,
         atoms._NET_WM_STATE_DEMANDS_ATTENTION,
         atoms._NET_WM_STATE_FOCUSED,
         atoms._NET_WM_ALLOWED_ACTIONS});
    setPointer(connection);
    put(connection.root(), atoms._NET_NUMBER_OF_DESKTOPS, XCB_ATOM_CARDINAL, {1});
    put(connection.root(), atoms._NET_CURRENT_DESKTOP, XCB_ATOM_CARDINAL, {0});
    put(connection.root(), atoms._NET_DESKTOP_VIEWPORT, XCB_ATOM_CARDINAL, {0, 0});
    put(connection.root(), atoms._NET_ACTIVE_WINDOW, XCB_ATOM_WINDOW, {0});
    put(connection.root(), atoms._NET_CLIENT_LIST, XCB_ATOM_WINDOW, {});
    put(connection.root(), atoms._NET_CLIENT_LIST_STACKING, XCB_ATOM_WINDOW, {});
}

Ewmh::~Ewmh() {
    xcb_destroy_window(m_connection.x(), m_window);
}

void Ewmh::put(xcb_window_t window, xcb_atom_t property, xcb_atom_t type, const std::vector<std::uint32_t>& values) {
    xcb_change_property(m_connection.x(), XCB_PROP_MODE_REPLACE, window, property, type, 32,
                        static_cast<std::uint32_t>(values.size()), values.data());
}

void Ewmh::setScreen(Size screen) {
    if (screen == m_screen) {
        return;
    }
    m_screen = screen;
    const auto width = static_cast<std::uint32_t>(screen.width);
    const auto height = static_cast<std::uint32_t>(screen.height);
    put(m_connection.root(), m_connection.atoms()._NET_DESKTOP_GEOMETRY, XCB_ATOM_CARDINAL, {width, height});
    put(m_connection.root(), m_connection.atoms()._NET_WORKAREA, XCB_ATOM_CARDINAL, {0, 0, width, height});
}

void Ewmh::setActive(XWindow window) {
    if (window != m_active) {
        m_active = window;
        put(m_connection.root(), m_connection.atoms()._NET_ACTIVE_WINDOW, XCB_ATOM_WINDOW, {window});
    }
}

void Ewmh::setClientList(const std::vector<Window>& windows) {
    std::vector<std::uint32_t> list;
    for (const Window& window : windows) {
        list.push_back(window.xid);
    }
    if (list != m_clientList) {
        put(m_connection.root(), m_connection.atoms()._NET_CLIENT_LIST, XCB_ATOM_WINDOW, list);
        put(m_connection.root(), m_connection.atoms()._NET_CLIENT_LIST_STACKING, XCB_ATOM_WINDOW, list);
        m_clientList = std::move(list);
    }
}

void Ewmh::setStates(XWindow window, const std::set<xcb_atom_t>& states) {
    put(window, m_connection.atoms()._NET_WM_STATE, XCB_ATOM_ATOM, {states.begin(), states.end()});
}

void Ewmh::setManaged(XWindow window) {
    const Atoms& atoms = m_connection.atoms();
    put(window, atoms.WM_STATE, atoms.WM_STATE, {kNormalState, 0});
    put(window, atoms._NET_WM_ALLOWED_ACTIONS, XCB_ATOM_ATOM,
        {atoms._NET_WM_ACTION_CLOSE, atoms._NET_WM_ACTION_FULLSCREEN, atoms._NET_WM_ACTION_MAXIMIZE_HORZ,
         atoms._NET_WM_ACTION_MAXIMIZE_VERT});
    setFrameExtents(window);
}

void Ewmh::setWithdrawn(XWindow window) {
    const Atoms& atoms = m_connection.atoms();
    put(window, atoms.WM_STATE, atoms.WM_STATE, {kWithdrawnState, 0});
    xcb_delete_property(m_connection.x(), window, atoms._NET_WM_STATE);
}

void Ewmh::setFrameExtents(XWindow window) {
    put(window, m_connection.atoms()._NET_FRAME_EXTENTS, XCB_ATOM_CARDINAL, {0, 0, 0, 0});
}

std::set<xcb_atom_t> Ewmh::knownStates(const std::vector<xcb_atom_t>& states) const {
    const Atoms& atoms = m_connection.atoms();
    const std::set<xcb_atom_t> known{atoms._NET_WM_STATE_MODAL, atoms._NET_WM_STATE_FULLSCREEN,
                                     atoms._NET_WM_STATE_MAXIMIZED_HORZ, atoms._NET_WM_STATE_MAXIMIZED_VERT,
                                     atoms._NET_WM_STATE_DEMANDS_ATTENTION};
    std::set<xcb_atom_t> kept;
    for (const xcb_atom_t state : states) {
        if (state != XCB_ATOM_NONE && known.contains(state)) {
            kept.insert(state);
        }
    }
    return kept;
}

} // namespace bulkhead::session

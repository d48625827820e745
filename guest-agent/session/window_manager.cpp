// SPDX-License-Identifier: Apache-2.0
// What the window manager learns: events and the host's commands. settling.cpp has what it does about it.
#include "session/window_manager.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace bulkhead::session {
namespace {

/// Windows that are managed at once. What is beyond stays unmapped: a program gone wild should not make each of the
/// others slow.
constexpr std::size_t kMostManaged = 512;
constexpr std::uint32_t kBorderColour = 0xFF606060;

std::uint8_t typeOf(const xcb_generic_event_t& event) {
    return event.response_type & 0x7FU;
}

/// Made by a program, not by the server. Anything can be claimed in it.
bool wasSent(const xcb_generic_event_t& event) {
    return (event.response_type & 0x80U) != 0;
}

template <class Event> const Event& as(const xcb_generic_event_t& event) {
    return reinterpret_cast<const Event&>(event);
}

} // namespace

Result<std::unique_ptr<WindowManager>> WindowManager::create(const Connection& connection, Heads& heads) {
    const std::uint32_t mask = XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT | XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY;
    const Reply error(
        xcb_request_check(connection.x(), xcb_change_window_attributes_checked(connection.x(), connection.root(),
                                                                               XCB_CW_EVENT_MASK, &mask)));
    if (error) {
        return fail(
            ErrorCode::AlreadyExists,
            "Another window manager manages this display; end it, or give bulkhead-session a display of its own");
    }
    auto manager = std::unique_ptr<WindowManager>(new WindowManager(connection, heads));
    manager->adoptWindows();
    return manager;
}

WindowManager::WindowManager(const Connection& connection, Heads& heads)
    : m_connection(connection)
    , m_heads(heads)
    , m_ewmh(connection)
    , m_focus(connection, m_ewmh)
    , m_windows(heads.count()) {
    // What the first head shows already is as good as any size.
    m_windows.setHeadSizes(heads.rects());
    // The selection says who manages the windows, to those who go by it.
    xcb_set_selection_owner(connection.x(), m_ewmh.ourWindow(), connection.atoms().WM_S0, XCB_CURRENT_TIME);
    m_focus.takeAway();
}

void WindowManager::adoptWindows() {
    xcb_connection_t* const x = m_connection.x();
    const Reply tree(xcb_query_tree_reply(x, xcb_query_tree(x, m_connection.root()), nullptr));
    if (!tree) {
        return;
    }
    const xcb_window_t* const children = xcb_query_tree_children(tree.get());
    const int count = xcb_query_tree_children_length(tree.get());
    for (int i = 0; i < count; ++i) {
        const Description description = describe(m_connection, children[i]);
        if (description.exists && description.isMapped && !description.overrideRedirect &&
            description.treatment == Treatment::Managed) {
            manage(children[i], description);
        }
    }
}

// ---- events --------------------------------------------------------------------------------------------------------

void WindowManager::handle(const xcb_generic_event_t& event) {
    if (wasSent(event) && typeOf(event) != XCB_CLIENT_MESSAGE && typeOf(event) != XCB_UNMAP_NOTIFY) {
        return;
    }
    switch (typeOf(event)) {
    case XCB_MAP_REQUEST:
        onMapRequest(as<xcb_map_request_event_t>(event));
        break;
    case XCB_CONFIGURE_REQUEST:
        onConfigureRequest(as<xcb_configure_request_event_t>(event));
        break;
    case XCB_UNMAP_NOTIFY:
        // Also one that the client sent, as ICCCM asks: it withdrew a window that was not mapped yet.
        forget(as<xcb_unmap_notify_event_t>(event).window, true);
        break;
    case XCB_DESTROY_NOTIFY:
        forget(as<xcb_destroy_notify_event_t>(event).window, false);
        break;
    case XCB_REPARENT_NOTIFY:
        if (as<xcb_reparent_notify_event_t>(event).parent != m_connection.root()) {
            forget(as<xcb_reparent_notify_event_t>(event).window, false);
        }
        break;
    case XCB_PROPERTY_NOTIFY:
        onProperty(as<xcb_property_notify_event_t>(event));
        break;
    case XCB_CLIENT_MESSAGE:
        onMessage(as<xcb_client_message_event_t>(event));
        break;
    case XCB_BUTTON_PRESS:
        onButton(as<xcb_button_press_event_t>(event));
        break;
    case XCB_FOCUS_IN:
        onFocus(as<xcb_focus_in_event_t>(event));
        break;
    default:
        break; // errors of requests too: windows go while we deal with them
    }
}

void WindowManager::onMapRequest(const xcb_map_request_event_t& event) {
    if (m_clients.contains(event.window)) {
        return;
    }
    const Description description = describe(m_connection, event.window);
    if (!description.exists) {
        return;
    }
    if (description.overrideRedirect || description.treatment == Treatment::Free) {
        xcb_map_window(m_connection.x(), event.window);
        return;
    }
    if (m_clients.size() < kMostManaged) {
        manage(event.window, description);
    }
}

void WindowManager::manage(xcb_window_t xid, const Description& description) {
    m_windows.add(xid, description.facts, description.size);
    Client& client = m_clients[xid];
    client.isMapped = description.isMapped;
    client.dialogSize = description.size;
    client.deletesItself = description.deletesItself;
    client.focusWish = {description.acceptsInput, description.takesFocus};
    client.states = m_ewmh.knownStates(description.states);
    client.stateChanged = true;
    xcb_connection_t* const x = m_connection.x();
    const std::array<std::uint32_t, 2> attributes{kBorderColour,
                                                  XCB_EVENT_MASK_PROPERTY_CHANGE | XCB_EVENT_MASK_FOCUS_CHANGE};
    xcb_change_window_attributes(x, xid, XCB_CW_BORDER_PIXEL | XCB_CW_EVENT_MASK, attributes.data());
    const std::uint32_t noBorder = 0;
    xcb_configure_window(x, xid, XCB_CONFIG_WINDOW_BORDER_WIDTH, &noBorder);
    m_ewmh.setManaged(xid);
    m_focus.watchClicks(xid, true);
    becomeUnsettled();
}

void WindowManager::forget(xcb_window_t xid, bool isThere) {
    if (m_clients.erase(xid) == 0) {
        return;
    }
    const Window* const window = m_windows.find(xid);
    const XWindow owner = ownerOf(*window);
    m_windows.remove(xid);
    m_order.remove(xid);
    if (isThere) {
        const std::uint32_t none = 0;
        xcb_change_window_attributes(m_connection.x(), xid, XCB_CW_EVENT_MASK, &none);
        m_focus.watchClicks(xid, false);
        m_ewmh.setWithdrawn(xid);
    }
    if (m_focus.active() == xid) {
        // A dialog gives the keyboard back to its window.
        m_wanted = m_order.lastOf(owner, m_windows);
        if (m_wanted == 0) {
            m_wanted = m_order.last();
        }
        m_focus.takeAway();
    }
    if (m_wanted == xid) {
        m_wanted = 0;
    }
    becomeUnsettled();
}

void WindowManager::onConfigureRequest(const xcb_configure_request_event_t& event) {
    const auto found = m_clients.find(event.window);
    if (found == m_clients.end()) {
        passOn(event);
        return;
    }
    Client& client = found->second;
    Window& window = *m_windows.find(event.window);
    Size size = client.dialogSize;
    if ((event.value_mask & XCB_CONFIG_WINDOW_WIDTH) != 0) {
        size.width = event.width;
    }
    if ((event.value_mask & XCB_CONFIG_WINDOW_HEIGHT) != 0) {
        size.height = event.height;
    }
    if (size != client.dialogSize) {
        client.dialogSize = size;
        m_windows.wish(window, size);
    }
    constexpr std::uint16_t kPlace = XCB_CONFIG_WINDOW_X | XCB_CONFIG_WINDOW_Y;
    if ((event.value_mask & kPlace) == kPlace && client.isMapped) {
        client.asked = Point{event.x, event.y};
    }
    client.wantsAnswer = true;
    becomeUnsettled();
}

/// A window that is not managed goes where it likes.
void WindowManager::passOn(const xcb_configure_request_event_t& event) {
    std::vector<std::uint32_t> values;
    const auto add = [&](std::uint16_t bit, std::uint32_t value) {
        if ((event.value_mask & bit) != 0) {
            values.push_back(value);
        }
    };
    add(XCB_CONFIG_WINDOW_X, static_cast<std::uint32_t>(std::int32_t{event.x}));
    add(XCB_CONFIG_WINDOW_Y, static_cast<std::uint32_t>(std::int32_t{event.y}));
    add(XCB_CONFIG_WINDOW_WIDTH, event.width);
    add(XCB_CONFIG_WINDOW_HEIGHT, event.height);
    add(XCB_CONFIG_WINDOW_BORDER_WIDTH, event.border_width);
    add(XCB_CONFIG_WINDOW_SIBLING, event.sibling);
    add(XCB_CONFIG_WINDOW_STACK_MODE, event.stack_mode);
    xcb_configure_window(m_connection.x(), event.window, event.value_mask, values.data());
}

void WindowManager::onProperty(const xcb_property_notify_event_t& event) {
    if (event.window == m_ewmh.ourWindow()) {
        m_focus.noteTime(event.time);
        return;
    }
    const Atoms& atoms = m_connection.atoms();
    const std::array watched{xcb_atom_t{XCB_ATOM_WM_NAME},
                             xcb_atom_t{XCB_ATOM_WM_CLASS},
                             xcb_atom_t{XCB_ATOM_WM_HINTS},
                             xcb_atom_t{XCB_ATOM_WM_NORMAL_HINTS},
                             xcb_atom_t{XCB_ATOM_WM_TRANSIENT_FOR},
                             atoms._NET_WM_NAME,
                             atoms.WM_PROTOCOLS,
                             atoms._NET_WM_WINDOW_TYPE};
    const auto found = m_clients.find(event.window);
    if (found != m_clients.end() && std::find(watched.begin(), watched.end(), event.atom) != watched.end()) {
        found->second.isStale = true;
        becomeUnsettled();
    }
}

void WindowManager::onMessage(const xcb_client_message_event_t& event) {
    const Atoms& atoms = m_connection.atoms();
    if (event.format != 32) {
        return;
    }
    if (event.type == atoms._NET_REQUEST_FRAME_EXTENTS) {
        m_ewmh.setFrameExtents(event.window);
        return;
    }
    const auto found = m_clients.find(event.window);
    if (found == m_clients.end()) {
        return;
    }
    if (event.type == atoms._NET_WM_STATE) {
        onStateMessage(found->second, event);
    } else if (event.type == atoms._NET_ACTIVE_WINDOW) {
        onActivateMessage(event);
    } else if (event.type == atoms._NET_CLOSE_WINDOW) {
        close(m_windows.find(event.window)->number);
    }
}

/// Full screen and maximised are granted and change nothing: a window fills its head, and how large that is the host
/// says.
void WindowManager::onStateMessage(Client& client, const xcb_client_message_event_t& event) {
    constexpr std::uint32_t kRemove = 0;
    constexpr std::uint32_t kAdd = 1;
    constexpr std::uint32_t kToggle = 2;
    const std::uint32_t action = event.data.data32[0];
    for (const xcb_atom_t state : m_ewmh.knownStates({event.data.data32[1], event.data.data32[2]})) {
        const bool isSet = client.states.contains(state);
        if ((action == kAdd || action == kToggle) && !isSet) {
            client.states.insert(state);
        } else if ((action == kRemove || action == kToggle) && isSet) {
            client.states.erase(state);
        }
    }
    client.stateChanged = true; // answered also when it was so before
    becomeUnsettled();
}

/// A program may move the keyboard among its own windows; towards others it may only ask for attention. Which of the
/// domain's windows the user works with, the host's desktop knows.
void WindowManager::onActivateMessage(const xcb_client_message_event_t& event) {
    const Window& window = *m_windows.find(event.window);
    const Window* const active = m_windows.find(m_focus.active());
    const std::uint32_t idMask = ~xcb_get_setup(m_connection.x())->resource_id_mask;
    const bool isOfActive =
        active == nullptr || ownerOf(*active) == ownerOf(window) || (active->xid & idMask) == (window.xid & idMask);
    constexpr std::uint32_t kFromUser = 2; // a pager, a script: they speak for the user
    if (isOfActive || event.data.data32[0] == kFromUser) {
        m_wanted = event.window;
    } else {
        Client& client = m_clients.at(event.window);
        client.states.insert(m_connection.atoms()._NET_WM_STATE_DEMANDS_ATTENTION);
        client.stateChanged = true;
    }
    becomeUnsettled();
}

void WindowManager::onButton(const xcb_button_press_event_t& event) {
    if (m_clients.contains(event.event)) {
        m_wanted = event.event;
        becomeUnsettled();
    }
    // The pointer waits for this; the click goes on to the window.
    xcb_allow_events(m_connection.x(), XCB_ALLOW_REPLAY_POINTER, XCB_CURRENT_TIME);
}

void WindowManager::onFocus(const xcb_focus_in_event_t& event) {
    const bool isOfGrab = event.mode == XCB_NOTIFY_MODE_GRAB || event.mode == XCB_NOTIFY_MODE_UNGRAB;
    const bool isOfPointer =
        event.detail == XCB_NOTIFY_DETAIL_POINTER || event.detail == XCB_NOTIFY_DETAIL_POINTER_ROOT;
    if (isOfGrab || isOfPointer || !m_clients.contains(event.event) || event.event == m_focus.active()) {
        return;
    }
    m_focus.noteIn(event.event); // a program gave it to one of its windows
    m_order.use(event.event);
    becomeUnsettled();
}

// ---- the host ------------------------------------------------------------------------------------------------------

void WindowManager::close(Number number) {
    const Window* const window = m_windows.findNumber(number);
    if (window == nullptr) {
        return;
    }
    xcb_connection_t* const x = m_connection.x();
    if (!m_clients.at(window->xid).deletesItself) {
        xcb_kill_client(x, window->xid);
        return;
    }
    xcb_client_message_event_t message{};
    message.response_type = XCB_CLIENT_MESSAGE;
    message.format = 32;
    message.window = window->xid;
    message.type = m_connection.atoms().WM_PROTOCOLS;
    message.data.data32[0] = m_connection.atoms().WM_DELETE_WINDOW;
    message.data.data32[1] = XCB_CURRENT_TIME;
    xcb_send_event(x, 0, window->xid, XCB_EVENT_MASK_NO_EVENT, reinterpret_cast<const char*>(&message));
}

void WindowManager::resize(Number number, Size size) {
    Window* const window = m_windows.findNumber(number);
    if (window != nullptr && m_windows.resize(*window, size)) {
        becomeUnsettled();
    }
}

void WindowManager::activate(Number number) {
    if (const Window* const window = m_windows.findNumber(number)) {
        // With the dialog that waits for an answer, if there is one.
        const XWindow last = m_order.lastOf(ownerOf(*window), m_windows);
        m_wanted = last == 0 ? window->xid : last;
        becomeUnsettled();
    }
}

XWindow WindowManager::active() const {
    const Window* const window = m_windows.find(m_focus.active());
    return window == nullptr ? 0 : ownerOf(*window);
}

} // namespace bulkhead::session

// SPDX-License-Identifier: Apache-2.0
#include "session/focus.hpp"

#include <algorithm>

namespace bulkhead::session {

XWindow ownerOf(const Window& window) {
    return window.anchor == 0 ? window.xid : window.anchor;
}

void FocusOrder::add(const Window& window, const Windows& windows) {
    remove(window.xid);
    const XWindow before = lastOf(ownerOf(window), windows);
    const auto at = std::find(m_order.begin(), m_order.end(), before);
    m_order.insert(at == m_order.end() ? m_order.begin() : at + 1, window.xid);
}

void FocusOrder::remove(XWindow window) {
    std::erase(m_order, window);
}

void FocusOrder::use(XWindow window) {
    remove(window);
    m_order.push_back(window);
}

XWindow FocusOrder::lastOf(XWindow owner, const Windows& windows) const {
    const auto found = std::find_if(m_order.rbegin(), m_order.rend(), [&](XWindow xid) {
        const Window* const window = windows.find(xid);
        return window != nullptr && ownerOf(*window) == owner;
    });
    return found == m_order.rend() ? 0 : *found;
}

void Focus::give(XWindow window, Wish wish) {
    xcb_connection_t* const x = m_connection.x();
    if (wish.acceptsInput) {
        xcb_set_input_focus(x, XCB_INPUT_FOCUS_POINTER_ROOT, window, XCB_CURRENT_TIME);
    }
    if (wish.takesFocus) {
        // The message has to carry a time of the server, which it tells with a change of a property.
        m_askedToTake = window;
        xcb_change_property(x, XCB_PROP_MODE_APPEND, m_ewmh.ourWindow(), m_connection.atoms()._NET_WM_NAME,
                            m_connection.atoms().UTF8_STRING, 8, 0, nullptr);
    }
    noteIn(window);
}

void Focus::takeAway() {
    xcb_set_input_focus(m_connection.x(), XCB_INPUT_FOCUS_POINTER_ROOT, m_connection.root(), XCB_CURRENT_TIME);
    noteIn(0);
}

void Focus::noteIn(XWindow window) {
    if (window == m_active) {
        return;
    }
    if (m_active != 0) {
        watchClicks(m_active, true);
    }
    m_active = window;
    if (window != 0) {
        watchClicks(window, false);
    }
    m_ewmh.setActive(window);
}

void Focus::noteTime(xcb_timestamp_t time) {
    if (m_askedToTake == 0) {
        return;
    }
    xcb_client_message_event_t message{};
    message.response_type = XCB_CLIENT_MESSAGE;
    message.format = 32;
    message.window = m_askedToTake;
    message.type = m_connection.atoms().WM_PROTOCOLS;
    message.data.data32[0] = m_connection.atoms().WM_TAKE_FOCUS;
    message.data.data32[1] = time;
    xcb_send_event(m_connection.x(), 0, m_askedToTake, XCB_EVENT_MASK_NO_EVENT,
                   reinterpret_cast<const char*>(&message));
    m_askedToTake = 0;
}

void Focus::watchClicks(XWindow window, bool on) {
    xcb_connection_t* const x = m_connection.x();
    if (on) {
        xcb_grab_button(x, 1, window, XCB_EVENT_MASK_BUTTON_PRESS, XCB_GRAB_MODE_SYNC, XCB_GRAB_MODE_ASYNC, XCB_NONE,
                        XCB_NONE, XCB_BUTTON_INDEX_ANY, XCB_MOD_MASK_ANY);
    } else {
        xcb_ungrab_button(x, XCB_BUTTON_INDEX_ANY, window, XCB_MOD_MASK_ANY);
    }
}

} // namespace bulkhead::session

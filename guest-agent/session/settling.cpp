// SPDX-License-Identifier: Apache-2.0
// What the window manager does, once for all the events that came.
#include "session/window_manager.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace bulkhead::session {

void WindowManager::settle() {
    m_isUnsettled = false;
    for (Window& window : m_windows.all()) {
        Client& client = m_clients.at(window.xid);
        if (std::exchange(client.isStale, false)) {
            refresh(window, client);
        }
        window.demandsAttention = client.states.contains(m_connection.atoms()._NET_WM_STATE_DEMANDS_ATTENTION);
    }
    m_windows.assignHeads();
    arrangeHeads();
    for (Window& window : m_windows.all()) {
        Client& client = m_clients.at(window.xid);
        place(window, client);
        if (!client.isMapped || !client.wasShown) {
            show(window, client);
        }
    }
    settleFocus();
    settleStates();
    m_ewmh.setClientList(m_windows.all());
    m_ewmh.setScreen(m_heads.screen());
    // The host is told next, and what it is told has happened by then.
    const Reply done(xcb_get_input_focus_reply(m_connection.x(), xcb_get_input_focus(m_connection.x()), nullptr));
}

void WindowManager::refresh(Window& window, Client& client) {
    Description description = describe(m_connection, window.xid);
    if (!description.exists) {
        return; // DestroyNotify is on its way
    }
    window.facts = std::move(description.facts);
    client.deletesItself = description.deletesItself;
    client.focusWish = {description.acceptsInput, description.takesFocus};
}

void WindowManager::arrangeHeads() {
    m_heads.apply(arrange(m_heads.rects(), m_windows.headSizes(), m_heads.largestScreen()));
    m_windows.setHeadSizes(m_heads.rects());
}

void WindowManager::place(Window& window, Client& client) {
    const auto& head = m_heads.rects().at(*window.head);
    if (!head) {
        return; // the device did not show it; its window stays where it is
    }
    if (window.ownsHead) {
        tell(window, client, *head, 0);
        return;
    }
    std::optional<Point> asked = client.asked;
    if (!asked && client.told && client.toldHead) {
        // As far from the corner as before, wherever the head went.
        asked = Point{head->at.x + client.told->at.x - client.toldHead->at.x,
                      head->at.y + client.told->at.y - client.toldHead->at.y};
        const bool fitsAsBefore = client.toldHead->size == head->size && client.told->size == client.dialogSize;
        if (!fitsAsBefore) {
            asked.reset(); // one of the two has another size: back to the middle
        }
    }
    client.asked.reset();
    client.toldHead = *head;
    const Size size = client.dialogSize;
    const bool hasRoom = size.width + 2 <= head->size.width && size.height + 2 <= head->size.height;
    const int border = hasRoom ? 1 : 0;
    Rect rect = placeDialog(*head, {size.width + 2 * border, size.height + 2 * border}, asked);
    rect.size.width -= 2 * border;
    rect.size.height -= 2 * border;
    tell(window, client, rect, border);
}

void WindowManager::tell(const Window& window, Client& client, const Rect& rect, int border) {
    xcb_connection_t* const x = m_connection.x();
    const bool asked = std::exchange(client.wantsAnswer, false);
    if (client.told != rect || client.border != border) {
        const bool resized = !client.told || client.told->size != rect.size;
        client.told = rect;
        client.border = border;
        const std::array values{static_cast<std::uint32_t>(rect.at.x), static_cast<std::uint32_t>(rect.at.y),
                                static_cast<std::uint32_t>(rect.size.width),
                                static_cast<std::uint32_t>(rect.size.height), static_cast<std::uint32_t>(border)};
        xcb_configure_window(x, window.xid,
                             XCB_CONFIG_WINDOW_X | XCB_CONFIG_WINDOW_Y | XCB_CONFIG_WINDOW_WIDTH |
                                 XCB_CONFIG_WINDOW_HEIGHT | XCB_CONFIG_WINDOW_BORDER_WIDTH,
                             values.data());
        if (resized && !asked) {
            return; // the server tells it
        }
    } else if (!asked) {
        return;
    }
    // What is true, also when that is not what was asked for (ICCCM 4.1.5).
    xcb_configure_notify_event_t notify{};
    notify.response_type = XCB_CONFIGURE_NOTIFY;
    notify.event = window.xid;
    notify.window = window.xid;
    notify.x = static_cast<std::int16_t>(rect.at.x);
    notify.y = static_cast<std::int16_t>(rect.at.y);
    notify.width = static_cast<std::uint16_t>(rect.size.width);
    notify.height = static_cast<std::uint16_t>(rect.size.height);
    notify.border_width = static_cast<std::uint16_t>(border);
    xcb_send_event(x, 0, window.xid, XCB_EVENT_MASK_STRUCTURE_NOTIFY, reinterpret_cast<const char*>(&notify));
}

void WindowManager::show(Window& window, Client& client) {
    xcb_connection_t* const x = m_connection.x();
    client.isMapped = true;
    client.wasShown = true;
    m_order.add(window, m_windows);
    const Window* const active = m_windows.find(m_focus.active());
    // On a head that is shared a new window does not cover the one that is worked with.
    if (window.ownsHead && window.sharesHead && active != nullptr && active->head == window.head) {
        const std::array<std::uint32_t, 2> below{ownerOf(*active), XCB_STACK_MODE_BELOW};
        xcb_configure_window(x, window.xid, XCB_CONFIG_WINDOW_SIBLING | XCB_CONFIG_WINDOW_STACK_MODE, below.data());
    } else {
        const std::uint32_t above = XCB_STACK_MODE_ABOVE;
        xcb_configure_window(x, window.xid, XCB_CONFIG_WINDOW_STACK_MODE, &above);
    }
    xcb_map_window(x, window.xid);
    const bool isOfActive = active != nullptr && ownerOf(*active) == ownerOf(window);
    const bool isFirst = active == nullptr && !m_clients.contains(m_wanted);
    if (isFirst || isOfActive) {
        m_wanted = window.xid;
    }
}

void WindowManager::settleFocus() {
    const XWindow wanted = std::exchange(m_wanted, 0);
    if (wanted != 0 && m_clients.contains(wanted)) {
        activateWindow(wanted);
    } else if (m_focus.active() == 0 && m_order.last() != 0) {
        activateWindow(m_order.last());
    }
    // Who has the keyboard needs no attention any more.
    Window* const active = m_windows.find(m_focus.active());
    if (active == nullptr) {
        return;
    }
    Client& client = m_clients.at(active->xid);
    if (client.states.erase(m_connection.atoms()._NET_WM_STATE_DEMANDS_ATTENTION) > 0) {
        active->demandsAttention = false;
        client.stateChanged = true;
    }
}

void WindowManager::settleStates() {
    for (auto& [xid, client] : m_clients) {
        const bool isFocused = xid == m_focus.active();
        const bool wasFocused = std::exchange(client.isFocused, isFocused);
        if (!std::exchange(client.stateChanged, false) && isFocused == wasFocused) {
            continue;
        }
        auto states = client.states;
        if (isFocused) {
            states.insert(m_connection.atoms()._NET_WM_STATE_FOCUSED);
        }
        m_ewmh.setStates(xid, states);
    }
}

void WindowManager::activateWindow(XWindow xid) {
    const Window& window = *m_windows.find(xid);
    const Client& client = m_clients.at(xid);
    if (xid == m_focus.active()) {
        return; // raising it again would cover its menus
    }
    raise(ownerOf(window));
    m_order.use(xid);
    if (client.focusWish.acceptsInput || client.focusWish.takesFocus) {
        m_focus.give(xid, client.focusWish);
    }
}

/// The window with a head, and above it its dialogs, those that were used last on top.
void WindowManager::raise(XWindow owner) {
    const std::uint32_t above = XCB_STACK_MODE_ABOVE;
    xcb_configure_window(m_connection.x(), owner, XCB_CONFIG_WINDOW_STACK_MODE, &above);
    for (const XWindow xid : m_order.order()) {
        const Window* const window = m_windows.find(xid);
        if (window != nullptr && window->anchor == owner) {
            xcb_configure_window(m_connection.x(), xid, XCB_CONFIG_WINDOW_STACK_MODE, &above);
        }
    }
}

} // namespace bulkhead::session

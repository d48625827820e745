// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "session/connection.hpp"
#include "session/ewmh.hpp"
#include "session/focus.hpp"
#include "session/heads.hpp"
#include "session/properties.hpp"
#include "session/windows.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>

namespace bulkhead::session {

/// The window manager of the X server. Events only change what is known; settle() then makes X as it is to be, so
/// that however many events come, the work is done once.
class WindowManager {
public:
    /// Fails when there is another one. Takes over the windows that are there. The references must outlive it.
    static Result<std::unique_ptr<WindowManager>> create(const Connection& connection, Heads& heads);

    void handle(const xcb_generic_event_t& event);
    /// What the heads show is not as settle() left it.
    void headsChanged() { becomeUnsettled(); }
    /// True: settle() has something to do.
    [[nodiscard]] bool isUnsettled() const { return m_isUnsettled; }
    void settle();

    /// Asks the program to close it; one that does not know how to is disconnected.
    void close(Number window);
    void resize(Number window, Size size);
    void activate(Number window);

    [[nodiscard]] const Windows& windows() const { return m_windows; }
    /// The window with a head of its own that has the keyboard, or a dialog that has it; 0: none.
    [[nodiscard]] XWindow active() const;
    [[nodiscard]] const Heads& heads() const { return m_heads; }

private:
    /// What X and the program know of a managed window.
    struct Client {
        std::optional<Rect> told;     ///< the place and size that we gave it last
        std::optional<Rect> toldHead; ///< of a dialog: its head then
        std::optional<Point> asked;
        Size dialogSize;
        int border = 0; ///< of a dialog, so that it can be told from its window
        bool isMapped = false;
        bool wasShown = false;    ///< by us; one that was taken over is mapped already
        bool isStale = false;     ///< its properties have changed
        bool wantsAnswer = false; ///< it asked for another place or size
        bool stateChanged = false;
        bool isFocused = false; ///< as its states say
        bool deletesItself = false;
        Focus::Wish focusWish;
        std::set<xcb_atom_t> states;
    };

    WindowManager(const Connection& connection, Heads& heads);
    void adoptWindows();

    void onMapRequest(const xcb_map_request_event_t& event);
    void onConfigureRequest(const xcb_configure_request_event_t& event);
    void onProperty(const xcb_property_notify_event_t& event);
    void onMessage(const xcb_client_message_event_t& event);
    void onStateMessage(Client& client, const xcb_client_message_event_t& event);
    void onActivateMessage(const xcb_client_message_event_t& event);
    void onButton(const xcb_button_press_event_t& event);
    void onFocus(const xcb_focus_in_event_t& event);
    void manage(xcb_window_t xid, const Description& description);
    void forget(xcb_window_t xid, bool isThere);
    void passOn(const xcb_configure_request_event_t& event);
    void becomeUnsettled() { m_isUnsettled = true; }

    void refresh(Window& window, Client& client);
    void arrangeHeads();
    void place(Window& window, Client& client);
    void tell(const Window& window, Client& client, const Rect& rect, int border);
    void show(Window& window, Client& client);
    void settleFocus();
    void settleStates();
    void activateWindow(XWindow xid);
    void raise(XWindow owner);

    const Connection& m_connection;
    Heads& m_heads;
    Ewmh m_ewmh;
    Focus m_focus;
    FocusOrder m_order;
    Windows m_windows;
    std::map<XWindow, Client> m_clients;
    XWindow m_wanted = 0; ///< to get the keyboard when all is settled
    bool m_isUnsettled = true;
};

} // namespace bulkhead::session

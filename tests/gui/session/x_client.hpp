// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/connection.hpp"
#include "session/geometry.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace bulkhead::tests {

/// A program with windows, as good or bad as a test wants it. Speaks the bare protocol.
class XClient {
public:
    /// Fails the program when the display is not there.
    explicit XClient(const std::string& display);

    struct Shape {
        std::string title;
        session::Size size{300, 200};
        session::Point at;
        xcb_window_t transientFor = 0;
        const char* type = nullptr; ///< "_NET_WM_WINDOW_TYPE_…"
        bool overrideRedirect = false;
        bool deletes = true; ///< knows WM_DELETE_WINDOW
    };
    /// Not mapped yet.
    xcb_window_t create(const Shape& shape);
    xcb_window_t show(const Shape& shape) {
        const xcb_window_t window = create(shape);
        map(window);
        return window;
    }
    void map(xcb_window_t window);
    void unmap(xcb_window_t window);
    void destroy(xcb_window_t window);
    void setTitle(xcb_window_t window, const std::string& title);
    void setUrgent(xcb_window_t window, bool urgent);
    void setTransientFor(xcb_window_t window, xcb_window_t parent);
    void askForSize(xcb_window_t window, session::Size size);
    void askForPlace(xcb_window_t window, session::Point at);
    /// Sends a client message about `window` to the root window.
    void message(xcb_window_t window, const char* type, std::uint32_t a, std::uint32_t b = 0, std::uint32_t c = 0);
    void flush() { xcb_flush(x()); }

    /// What the server says now.
    [[nodiscard]] session::Rect geometry(xcb_window_t window);
    [[nodiscard]] bool isMapped(xcb_window_t window);
    [[nodiscard]] xcb_window_t focus();
    [[nodiscard]] std::vector<std::string> states(xcb_window_t window);
    /// The topmost of the children of the root window.
    [[nodiscard]] std::vector<xcb_window_t> stacking();

    /// What the window manager told us, since the last look.
    void look();
    [[nodiscard]] bool isConnected() {
        look();
        return m_connection->isAlive();
    }
    /// The last ConfigureNotify that was sent, not made by the server.
    [[nodiscard]] std::optional<session::Rect> toldGeometry(xcb_window_t window) {
        look();
        const auto found = m_told.find(window);
        return found == m_told.end() ? std::nullopt : std::optional(found->second);
    }
    [[nodiscard]] bool wasAskedToClose(xcb_window_t window) {
        look();
        return m_askedToClose.contains(window);
    }

    [[nodiscard]] xcb_connection_t* x() const { return m_connection->x(); }
    [[nodiscard]] xcb_window_t root() const { return m_connection->root(); }
    [[nodiscard]] xcb_atom_t atom(const std::string& name);

private:
    std::unique_ptr<session::Connection> m_connection;
    std::map<std::string, xcb_atom_t> m_atoms;
    std::map<xcb_window_t, session::Rect> m_told;
    std::set<xcb_window_t> m_askedToClose;
};

} // namespace bulkhead::tests

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "session/atoms.hpp"
#include "session/geometry.hpp"

#include <xcb/xcb.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace bulkhead::session {

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
/// What xcb hands over: events and replies. None: an error, or the server went.
template <class T> using Owned = std::unique_ptr<T, Free>;
/// Deduces T.
template <class T> struct Reply : Owned<T> {
    explicit Reply(T* reply)
        : Owned<T>(reply) {}
};

/// The X server: the connection, its (first) screen, and the atoms. One thread.
class Connection {
public:
    /// `display` as DISPLAY names it; empty: what DISPLAY says.
    static Result<std::unique_ptr<Connection>> open(const std::string& display);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    [[nodiscard]] xcb_connection_t* x() const { return m_x; }
    [[nodiscard]] xcb_window_t root() const { return m_root; }
    [[nodiscard]] xcb_visualid_t visual() const { return m_visual; }
    /// As the server said when we connected.
    [[nodiscard]] Size firstScreenSize() const { return m_firstScreenSize; }
    [[nodiscard]] const Atoms& atoms() const { return m_atoms; }
    [[nodiscard]] int fd() const { return xcb_get_file_descriptor(m_x); }
    /// False: the server went, or broke the protocol.
    [[nodiscard]] bool isAlive() const { return xcb_connection_has_error(m_x) == 0; }

private:
    Connection(xcb_connection_t* x, const xcb_screen_t& screen);

    xcb_connection_t* m_x;
    xcb_window_t m_root;
    xcb_visualid_t m_visual;
    Size m_firstScreenSize;
    Atoms m_atoms;
};

} // namespace bulkhead::session

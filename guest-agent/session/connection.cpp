// SPDX-License-Identifier: Apache-2.0
#include "session/connection.hpp"

#include <fcntl.h>

namespace bulkhead::session {

Result<std::unique_ptr<Connection>> Connection::open(const std::string& display) {
    int number = 0;
    xcb_connection_t* const x = xcb_connect(display.empty() ? nullptr : display.c_str(), &number);
    if (const int error = xcb_connection_has_error(x); error != 0) {
        xcb_disconnect(x);
        const std::string why = error == XCB_CONN_CLOSED_PARSE_ERR ? "it is no name of a display"
                                                                   : "no X server answers there, or it refuses us";
        const char* const named = display.empty() ? std::getenv("DISPLAY") : display.c_str();
        return fail(ErrorCode::Unavailable, std::string("Cannot connect to the display \"") +
                                                (named == nullptr ? "" : named) + "\": " + why +
                                                "; start it, and set DISPLAY and XAUTHORITY");
    }
    ::fcntl(xcb_get_file_descriptor(x), F_SETFD, FD_CLOEXEC);
    xcb_screen_iterator_t screens = xcb_setup_roots_iterator(xcb_get_setup(x));
    for (; number > 0 && screens.rem > 1; --number) {
        xcb_screen_next(&screens);
    }
    return std::unique_ptr<Connection>(new Connection(x, *screens.data));
}

Connection::Connection(xcb_connection_t* x, const xcb_screen_t& screen)
    : m_x(x)
    , m_root(screen.root)
    , m_visual(screen.root_visual)
    , m_firstScreenSize{screen.width_in_pixels, screen.height_in_pixels}
    , m_atoms(internAtoms(x)) {}

Connection::~Connection() {
    xcb_disconnect(m_x);
}

} // namespace bulkhead::session

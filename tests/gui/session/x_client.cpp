// SPDX-License-Identifier: Apache-2.0
#include "x_client.hpp"

#include <QtGlobal>

#include <array>

namespace bulkhead::tests {

using session::Owned;
using session::Point;
using session::Rect;
using session::Reply;
using session::Size;

XClient::XClient(const std::string& display) {
    auto connection = session::Connection::open(display);
    if (!connection) {
        qFatal("%s", connection.error().message.c_str());
    }
    m_connection = std::move(*connection);
}

xcb_atom_t XClient::atom(const std::string& name) {
    auto [entry, isNew] = m_atoms.try_emplace(name);
    if (isNew) {
        const auto cookie = xcb_intern_atom(x(), 0, static_cast<std::uint16_t>(name.size()), name.c_str());
        if (const Reply reply(xcb_intern_atom_reply(x(), cookie, nullptr)); reply) {
            entry->second = reply->atom;
        }
    }
    return entry->second;
}

xcb_window_t XClient::create(const Shape& shape) {
    const xcb_window_t window = xcb_generate_id(x());
    const std::array<std::uint32_t, 3> values{0x808080, shape.overrideRedirect ? 1U : 0U,
                                              XCB_EVENT_MASK_STRUCTURE_NOTIFY};
    xcb_create_window(x(), XCB_COPY_FROM_PARENT, window, root(), static_cast<std::int16_t>(shape.at.x),
                      static_cast<std::int16_t>(shape.at.y), static_cast<std::uint16_t>(shape.size.width),
                      static_cast<std::uint16_t>(shape.size.height), 5, XCB_WINDOW_CLASS_INPUT_OUTPUT,
                      m_connection->visual(), XCB_CW_BACK_PIXEL | XCB_CW_OVERRIDE_REDIRECT | XCB_CW_EVENT_MASK,
                      values.data());
    setTitle(window, shape.title);
    const std::string name("test\0Tester", 12);
    xcb_change_property(x(), XCB_PROP_MODE_REPLACE, window, XCB_ATOM_WM_CLASS, XCB_ATOM_STRING, 8,
                        static_cast<std::uint32_t>(name.size()), name.data());
    if (shape.transientFor != 0) {
        setTransientFor(window, shape.transientFor);
    }
    if (shape.type != nullptr) {
        const xcb_atom_t type = atom(shape.type);
        xcb_change_property(x(), XCB_PROP_MODE_REPLACE, window, atom("_NET_WM_WINDOW_TYPE"), XCB_ATOM_ATOM, 32, 1,
                            &type);
    }
    if (shape.deletes) {
        const xcb_atom_t protocol = atom("WM_DELETE_WINDOW");
        xcb_change_property(x(), XCB_PROP_MODE_REPLACE, window, atom("WM_PROTOCOLS"), XCB_ATOM_ATOM, 32, 1, &protocol);
    }
    return window;
}

void XClient::map(xcb_window_t window) {
    xcb_map_window(x(), window);
    flush();
}

void XClient::unmap(xcb_window_t window) {
    xcb_unmap_window(x(), window);
    // As ICCCM asks, for one that is not mapped yet.
    xcb_unmap_notify_event_t notify{};
    notify.response_type = XCB_UNMAP_NOTIFY;
    notify.event = root();
    notify.window = window;
    xcb_send_event(x(), 0, root(), XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT | XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY,
                   reinterpret_cast<const char*>(&notify));
    flush();
}

void XClient::destroy(xcb_window_t window) {
    xcb_destroy_window(x(), window);
    flush();
}

void XClient::setTitle(xcb_window_t window, const std::string& title) {
    xcb_change_property(x(), XCB_PROP_MODE_REPLACE, window, atom("_NET_WM_NAME"), atom("UTF8_STRING"), 8,
                        static_cast<std::uint32_t>(title.size()), title.data());
    flush();
}

void XClient::setUrgent(xcb_window_t window, bool urgent) {
    const std::array<std::uint32_t, 9> hints{urgent ? 256U : 0U, 0, 0, 0, 0, 0, 0, 0, 0};
    xcb_change_property(x(), XCB_PROP_MODE_REPLACE, window, XCB_ATOM_WM_HINTS, XCB_ATOM_WM_HINTS, 32, hints.size(),
                        hints.data());
    flush();
}

void XClient::setTransientFor(xcb_window_t window, xcb_window_t parent) {
    xcb_change_property(x(), XCB_PROP_MODE_REPLACE, window, XCB_ATOM_WM_TRANSIENT_FOR, XCB_ATOM_WINDOW, 32, 1, &parent);
    flush();
}

void XClient::askForSize(xcb_window_t window, Size size) {
    const std::array values{static_cast<std::uint32_t>(size.width), static_cast<std::uint32_t>(size.height)};
    xcb_configure_window(x(), window, XCB_CONFIG_WINDOW_WIDTH | XCB_CONFIG_WINDOW_HEIGHT, values.data());
    flush();
}

void XClient::askForPlace(xcb_window_t window, Point at) {
    const std::array values{static_cast<std::uint32_t>(at.x), static_cast<std::uint32_t>(at.y)};
    xcb_configure_window(x(), window, XCB_CONFIG_WINDOW_X | XCB_CONFIG_WINDOW_Y, values.data());
    flush();
}

void XClient::message(xcb_window_t window, const char* type, std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    xcb_client_message_event_t event{};
    event.response_type = XCB_CLIENT_MESSAGE;
    event.format = 32;
    event.window = window;
    event.type = atom(type);
    event.data.data32[0] = a;
    event.data.data32[1] = b;
    event.data.data32[2] = c;
    xcb_send_event(x(), 0, root(), XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT | XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY,
                   reinterpret_cast<const char*>(&event));
    flush();
}

Rect XClient::geometry(xcb_window_t window) {
    const Reply reply(xcb_get_geometry_reply(x(), xcb_get_geometry(x(), window), nullptr));
    return reply ? Rect{{reply->x, reply->y}, {reply->width, reply->height}} : Rect{};
}

bool XClient::isMapped(xcb_window_t window) {
    const Reply reply(xcb_get_window_attributes_reply(x(), xcb_get_window_attributes(x(), window), nullptr));
    return reply && reply->map_state != XCB_MAP_STATE_UNMAPPED;
}

xcb_window_t XClient::focus() {
    const Reply reply(xcb_get_input_focus_reply(x(), xcb_get_input_focus(x()), nullptr));
    return reply ? reply->focus : 0;
}

std::vector<std::string> XClient::states(xcb_window_t window) {
    const auto cookie = xcb_get_property(x(), 0, window, atom("_NET_WM_STATE"), XCB_ATOM_ATOM, 0, 64);
    const Reply reply(xcb_get_property_reply(x(), cookie, nullptr));
    std::vector<std::string> names;
    if (!reply) {
        return names;
    }
    const auto* const atoms = static_cast<const xcb_atom_t*>(xcb_get_property_value(reply.get()));
    for (int i = 0; i < xcb_get_property_value_length(reply.get()) / 4; ++i) {
        const Reply name(xcb_get_atom_name_reply(x(), xcb_get_atom_name(x(), atoms[i]), nullptr));
        if (name) {
            names.emplace_back(xcb_get_atom_name_name(name.get()),
                               static_cast<std::size_t>(xcb_get_atom_name_name_length(name.get())));
        }
    }
    return names;
}

std::vector<xcb_window_t> XClient::stacking() {
    const Reply tree(xcb_query_tree_reply(x(), xcb_query_tree(x(), root()), nullptr));
    if (!tree) {
        return {};
    }
    const auto* const children = xcb_query_tree_children(tree.get());
    return {children, children + xcb_query_tree_children_length(tree.get())};
}

void XClient::look() {
    while (const Owned<xcb_generic_event_t> event{xcb_poll_for_event(x())}) {
        const bool wasSent = (event->response_type & 0x80U) != 0;
        if ((event->response_type & 0x7FU) == XCB_CONFIGURE_NOTIFY && wasSent) {
            const auto& notify = reinterpret_cast<const xcb_configure_notify_event_t&>(*event);
            m_told[notify.window] = {{notify.x, notify.y}, {notify.width, notify.height}};
        } else if ((event->response_type & 0x7FU) == XCB_CLIENT_MESSAGE) {
            const auto& message = reinterpret_cast<const xcb_client_message_event_t&>(*event);
            if (message.type == atom("WM_PROTOCOLS") && message.data.data32[0] == atom("WM_DELETE_WINDOW")) {
                m_askedToClose.insert(message.window);
            }
        }
    }
}

} // namespace bulkhead::tests

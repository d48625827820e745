// SPDX-License-Identifier: Apache-2.0
#include "session/properties.hpp"

#include "protocol/session_limits.hpp"
#include "session/text.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace bulkhead::session {
namespace {

using protocol::kMostClass;
using protocol::kMostTitle;

/// What is read of a text (in units of 4 bytes): what cannot be shown is not even asked for.
constexpr std::uint32_t kTextUnits = kMostTitle / 4;
constexpr std::uint32_t kMostAtoms = 64;

using PropertyReply = Reply<xcb_get_property_reply_t>;

xcb_get_property_cookie_t ask(const Connection& connection, xcb_window_t window, xcb_atom_t property, xcb_atom_t type,
                              std::uint32_t units) {
    return xcb_get_property(connection.x(), 0, window, property, type, 0, units);
}

PropertyReply take(const Connection& connection, xcb_get_property_cookie_t cookie) {
    return PropertyReply(xcb_get_property_reply(connection.x(), cookie, nullptr));
}

std::string_view bytesOf(const PropertyReply& reply) {
    if (!reply || reply->format != 8) {
        return {};
    }
    return {static_cast<const char*>(xcb_get_property_value(reply.get())),
            static_cast<std::size_t>(xcb_get_property_value_length(reply.get()))};
}

std::vector<std::uint32_t> cardinalsOf(const PropertyReply& reply, xcb_atom_t type) {
    if (!reply || reply->format != 32 || (type != XCB_ATOM_ANY && reply->type != type)) {
        return {};
    }
    std::vector<std::uint32_t> values(static_cast<std::size_t>(xcb_get_property_value_length(reply.get())) / 4);
    if (!values.empty()) {
        std::memcpy(values.data(), xcb_get_property_value(reply.get()), values.size() * 4);
    }
    return values;
}

std::string textOf(const Connection& connection, const PropertyReply& reply, std::size_t most) {
    const std::string_view bytes = bytesOf(reply);
    return reply && reply->type == connection.atoms().UTF8_STRING ? cleanText(bytes, most) : cleanLatin1(bytes, most);
}

bool contains(const std::vector<std::uint32_t>& values, std::uint32_t value) {
    return value != XCB_ATOM_NONE && std::find(values.begin(), values.end(), value) != values.end();
}

/// The second of WM_CLASS's two strings is the class; the first alone is better than nothing.
std::string classOf(const PropertyReply& reply) {
    const std::string_view bytes = bytesOf(reply);
    const std::size_t end = bytes.find('\0');
    if (end == std::string_view::npos) {
        return cleanLatin1(bytes, kMostClass);
    }
    std::string_view second = bytes.substr(end + 1);
    second = second.substr(0, second.find('\0'));
    return cleanLatin1(second.empty() ? bytes.substr(0, end) : second, kMostClass);
}

void readTypes(const Atoms& atoms, const std::vector<std::uint32_t>& types, Description& description) {
    if (types.empty()) {
        if (description.facts.transientFor != 0 || description.facts.transientForGroup) {
            description.facts.kind = Kind::Dialog;
        }
        return;
    }
    // The first that we know counts.
    for (const xcb_atom_t type : types) {
        if (type == atoms._NET_WM_WINDOW_TYPE_NORMAL) {
            return;
        }
        if (type == atoms._NET_WM_WINDOW_TYPE_DIALOG) {
            description.facts.kind = Kind::Dialog;
            return;
        }
        if (contains({atoms._NET_WM_WINDOW_TYPE_UTILITY, atoms._NET_WM_WINDOW_TYPE_TOOLBAR,
                      atoms._NET_WM_WINDOW_TYPE_SPLASH, atoms._NET_WM_WINDOW_TYPE_DOCK,
                      atoms._NET_WM_WINDOW_TYPE_DESKTOP},
                     type)) {
            description.facts.kind = Kind::Utility;
            return;
        }
        if (contains({atoms._NET_WM_WINDOW_TYPE_MENU, atoms._NET_WM_WINDOW_TYPE_DROPDOWN_MENU,
                      atoms._NET_WM_WINDOW_TYPE_POPUP_MENU, atoms._NET_WM_WINDOW_TYPE_TOOLTIP,
                      atoms._NET_WM_WINDOW_TYPE_NOTIFICATION, atoms._NET_WM_WINDOW_TYPE_COMBO,
                      atoms._NET_WM_WINDOW_TYPE_DND},
                     type)) {
            description.treatment = Treatment::Free;
            return;
        }
    }
}

/// WM_NORMAL_HINTS: flags, four obsolete numbers, least size, …
void readSizeHints(const std::vector<std::uint32_t>& hints, Description& description) {
    constexpr std::uint32_t kUserPosition = 1;
    constexpr std::uint32_t kProgramPosition = 4;
    constexpr std::uint32_t kLeastSize = 16;
    if (hints.size() < 7) {
        return;
    }
    description.asksForPlace = (hints[0] & (kUserPosition | kProgramPosition)) != 0;
    if ((hints[0] & kLeastSize) != 0) {
        const auto side = [](std::uint32_t value) {
            return static_cast<int>(std::min<std::uint32_t>(value, static_cast<std::uint32_t>(kLargestSide)));
        };
        description.facts.least = {side(hints[5]), side(hints[6])};
    }
}

/// WM_HINTS: flags, input, initial state, four for icons, group.
void readHints(const std::vector<std::uint32_t>& hints, Description& description) {
    constexpr std::uint32_t kInput = 1;
    constexpr std::uint32_t kGroup = 64;
    constexpr std::uint32_t kUrgent = 256;
    if (hints.size() < 2) {
        return;
    }
    description.acceptsInput = (hints[0] & kInput) == 0 || hints[1] != 0;
    description.facts.urgent = (hints[0] & kUrgent) != 0;
    if ((hints[0] & kGroup) != 0 && hints.size() > 8) {
        description.facts.group = hints[8];
    }
}

} // namespace

std::vector<std::uint32_t> readCardinals(const Connection& connection, xcb_window_t window, xcb_atom_t property,
                                         xcb_atom_t type, std::uint32_t most) {
    return cardinalsOf(take(connection, ask(connection, window, property, type, most)), type);
}

Description describe(const Connection& connection, xcb_window_t window) {
    const Atoms& atoms = connection.atoms();
    xcb_connection_t* const x = connection.x();
    // All questions first: one round trip, however many there are.
    const auto geometryCookie = xcb_get_geometry(x, window);
    const auto attributesCookie = xcb_get_window_attributes(x, window);
    const auto netNameCookie = ask(connection, window, atoms._NET_WM_NAME, XCB_ATOM_ANY, kTextUnits);
    const auto nameCookie = ask(connection, window, XCB_ATOM_WM_NAME, XCB_ATOM_ANY, kTextUnits);
    const auto classCookie = ask(connection, window, XCB_ATOM_WM_CLASS, XCB_ATOM_ANY, 2 * kMostClass / 4);
    const auto transientCookie = ask(connection, window, XCB_ATOM_WM_TRANSIENT_FOR, XCB_ATOM_WINDOW, 1);
    const auto sizeHintsCookie = ask(connection, window, XCB_ATOM_WM_NORMAL_HINTS, XCB_ATOM_WM_SIZE_HINTS, 18);
    const auto hintsCookie = ask(connection, window, XCB_ATOM_WM_HINTS, XCB_ATOM_WM_HINTS, 9);
    const auto typesCookie = ask(connection, window, atoms._NET_WM_WINDOW_TYPE, XCB_ATOM_ATOM, kMostAtoms);
    const auto protocolsCookie = ask(connection, window, atoms.WM_PROTOCOLS, XCB_ATOM_ATOM, kMostAtoms);
    const auto statesCookie = ask(connection, window, atoms._NET_WM_STATE, XCB_ATOM_ATOM, kMostAtoms);

    Description description;
    if (const Reply geometry(xcb_get_geometry_reply(x, geometryCookie, nullptr)); geometry) {
        description.exists = true;
        description.size = {geometry->width, geometry->height};
        description.at = {geometry->x, geometry->y};
    }
    if (const Reply attributes(xcb_get_window_attributes_reply(x, attributesCookie, nullptr)); attributes) {
        description.overrideRedirect = attributes->override_redirect != 0;
        description.isMapped = attributes->map_state != XCB_MAP_STATE_UNMAPPED;
    }
    const auto netName = take(connection, netNameCookie);
    const auto name = take(connection, nameCookie);
    description.facts.title = textOf(connection, bytesOf(netName).empty() ? name : netName, kMostTitle);
    description.facts.appClass = classOf(take(connection, classCookie));
    const auto transient = take(connection, transientCookie);
    if (const auto values = cardinalsOf(transient, XCB_ATOM_WINDOW); !values.empty()) {
        description.facts.transientForGroup = values[0] == 0 || values[0] == connection.root();
        description.facts.transientFor = description.facts.transientForGroup ? 0 : values[0];
    }
    readSizeHints(cardinalsOf(take(connection, sizeHintsCookie), XCB_ATOM_WM_SIZE_HINTS), description);
    readHints(cardinalsOf(take(connection, hintsCookie), XCB_ATOM_WM_HINTS), description);
    readTypes(atoms, cardinalsOf(take(connection, typesCookie), XCB_ATOM_ATOM), description);
    const auto protocols = cardinalsOf(take(connection, protocolsCookie), XCB_ATOM_ATOM);
    description.takesFocus = contains(protocols, atoms.WM_TAKE_FOCUS);
    description.deletesItself = contains(protocols, atoms.WM_DELETE_WINDOW);
    description.states = cardinalsOf(take(connection, statesCookie), XCB_ATOM_ATOM);
    return description;
}

} // namespace bulkhead::session

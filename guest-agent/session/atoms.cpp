// SPDX-License-Identifier: Apache-2.0
#include "session/atoms.hpp"

#include "session/connection.hpp"

#include <array>
#include <cstring>
#include <vector>

namespace bulkhead::session {

Atoms internAtoms(xcb_connection_t* connection) {
    struct Entry {
        const char* name;
        xcb_atom_t Atoms::*member;
    };
    static constexpr std::array kEntries{
#define BULKHEAD_SESSION_ENTRY(name) Entry{#name, &Atoms::name},
        BULKHEAD_SESSION_ATOMS(BULKHEAD_SESSION_ENTRY)
#undef BULKHEAD_SESSION_ENTRY
    };
    std::vector<xcb_intern_atom_cookie_t> cookies;
    for (const Entry& entry : kEntries) {
        const auto length = static_cast<std::uint16_t>(std::strlen(entry.name));
        cookies.push_back(xcb_intern_atom(connection, 0, length, entry.name));
    }
    Atoms atoms;
    for (std::size_t i = 0; i < kEntries.size(); ++i) {
        if (const Reply reply(xcb_intern_atom_reply(connection, cookies[i], nullptr)); reply) {
            atoms.*kEntries.at(i).member = reply->atom;
        }
    }
    return atoms;
}

} // namespace bulkhead::session

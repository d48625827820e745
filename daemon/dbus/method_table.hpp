// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"

#include <span>
#include <string_view>

namespace bulkhead::dbus {

/// What a method does to whom: what polkit will refine (DESIGN section 15). Until then the rule beside each holds.
enum class Action {
    View,       ///< reads: anybody, about their own things
    Create,     ///< makes something that belongs to the caller: anybody
    UseOwn,     ///< acts on an object: its owner and root
    Administer, ///< changes what all users share: root
};

struct MethodRow {
    std::string_view interface;
    std::string_view method;
    Action action;
};

/// The one table. A method that is not in it is refused; a test compares it with the XML files.
std::span<const MethodRow> methodTable();

/// May `caller` call this at all? Ownership of the object is the door's second question (Door).
Status mayCall(const core::Caller& caller, std::string_view interface, std::string_view method);

} // namespace bulkhead::dbus

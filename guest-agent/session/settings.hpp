// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session.pb.h"
#include "session/connection.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::session {

/// The arguments of setxkbmap for these settings; empty: there is nothing to set. None: a field holds what no XKB name
/// does. A layout without a variant means that layout plain: the variant of the one before makes no sense with it.
[[nodiscard]] std::optional<std::vector<std::string>> keyboardCommand(const Settings& settings);

/// RESOURCE_MANAGER's text with this Xft.dpi.
[[nodiscard]] std::string withDpi(std::string_view resources, std::uint32_t dpi);

/// The locale for the apps of a user who has this one: itself where this system has it, else C.UTF-8, which is in every
/// C library. None: that is no name of a locale.
[[nodiscard]] std::optional<std::string> localeOf(const std::string& name);

/// Makes them true, as far as they are sensible.
void applySettings(const Connection& connection, const Settings& settings);

} // namespace bulkhead::session

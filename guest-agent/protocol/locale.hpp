// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace bulkhead::protocol {

constexpr std::size_t kLongestLocale = 64;

/// True for what can be the name of a locale, as LANG has it ("de_DE.UTF-8", "sr_RS.UTF-8@latin", "C.UTF-8"): letters,
/// digits, _ . @ -, beginning with a letter. No path: the C library looks it up in its own folder.
[[nodiscard]] bool isLocaleName(std::string_view name);

} // namespace bulkhead::protocol

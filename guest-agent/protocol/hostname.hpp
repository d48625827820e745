// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace bulkhead::protocol {

constexpr std::size_t kLongestHostname = 63;

/// True for what can be a machine's name: one label of RFC 1123, that is 1 to 63 letters, digits and hyphens, with no
/// hyphen at either end.
[[nodiscard]] bool isHostname(std::string_view name);

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace bulkhead::protocol {

constexpr std::size_t kLongestTimeZone = 64;

/// True for what can be the name of a time zone ("Europe/Berlin", "Etc/GMT+5", "UTC"): words of letters, digits, _ + -
/// that begin with a letter or digit, with single slashes between them. Such a name is a path below the folder of time
/// zones and nowhere else.
[[nodiscard]] bool isTimeZoneName(std::string_view name);

} // namespace bulkhead::protocol

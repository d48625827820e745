// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

/// A size in bytes.
using Bytes = std::uint64_t;
constexpr Bytes kKiB = 1024;
constexpr Bytes kMiB = 1024 * kKiB;
constexpr Bytes kGiB = 1024 * kMiB;

/// Reads "512MiB", "2GiB", "64KiB" or a plain number of bytes. Units are binary; there is no "MB", which people read
/// in two ways. Fails with InvalidArgument that shows the accepted forms.
Result<Bytes> parseBytes(std::string_view text);
/// "1.5 GiB", "512 MiB", "17 B": three significant digits at most, for people.
std::string formatBytes(Bytes size);

} // namespace bulkhead

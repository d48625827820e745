// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace bulkhead::cli {

/// Reads "500ms", "90s", "15m", "1h30m", "2d", or a plain number of seconds. None for anything else, for zero and for
/// more than ten years.
std::optional<std::chrono::milliseconds> parseDuration(std::string_view text);

} // namespace bulkhead::cli

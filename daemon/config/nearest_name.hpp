// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::config {

/// The one of `names` that `text` was probably meant to be; none when nothing is near.
std::optional<std::string> nearestName(std::string_view text, const std::vector<std::string>& names);

} // namespace bulkhead::config

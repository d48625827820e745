// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"

#include <string>
#include <string_view>

namespace bulkhead::config {

/// `text` as a TOML basic string with its quotes.
std::string tomlQuoted(std::string_view text);
/// The shortest form that parseBytes() reads back as exactly `size`: "2GiB", "1536MiB", "1000".
std::string exactBytes(Bytes size);

} // namespace bulkhead::config

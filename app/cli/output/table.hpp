// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bulkhead::cli {

/// Rows of foreign text in aligned columns, two spaces apart, without trailing spaces; an empty cell shows as "-".
std::string tableText(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

using KeyValues = std::vector<std::pair<std::string, std::string>>;
/// "Key:    value" lines, values aligned; pairs with an empty value are left out.
std::string keyValueText(const KeyValues& pairs);

} // namespace bulkhead::cli

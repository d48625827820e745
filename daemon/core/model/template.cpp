// SPDX-License-Identifier: Apache-2.0
#include "core/model/template.hpp"

#include "base/escaping.hpp"

#include <algorithm>

namespace bulkhead::core {

namespace {

constexpr std::size_t kLongestPackageName = 128;

bool isLowerOrDigit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

} // namespace

Status checkPackageName(std::string_view name) {
    const bool good = name.size() >= 2 && name.size() <= kLongestPackageName && isLowerOrDigit(name.front()) &&
                      std::all_of(name.begin(), name.end(),
                                  [](char c) { return isLowerOrDigit(c) || c == '+' || c == '.' || c == '-'; });
    if (!good) {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + escapeUntrusted(name, 80) +
                        "\" is not the name of a Debian package (lower-case letters, digits, + . -)");
    }
    return {};
}

} // namespace bulkhead::core

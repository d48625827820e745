// SPDX-License-Identifier: Apache-2.0
#include "protocol/locale.hpp"

#include <algorithm>

namespace bulkhead::protocol {

bool isLocaleName(std::string_view name) {
    const auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !name.empty() && name.size() <= kLongestLocale && isLetter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) {
               return isLetter(c) || (c >= '0' && c <= '9') ||
                      std::string_view("_.@-").find(c) != std::string_view::npos;
           });
}

} // namespace bulkhead::protocol

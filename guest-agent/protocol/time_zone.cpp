// SPDX-License-Identifier: Apache-2.0
#include "protocol/time_zone.hpp"

#include <algorithm>

namespace bulkhead::protocol {

namespace {

bool isLetterOrDigit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool isWord(std::string_view word) {
    return !word.empty() && isLetterOrDigit(word.front()) && std::all_of(word.begin(), word.end(), [](char c) {
        return isLetterOrDigit(c) || c == '_' || c == '+' || c == '-';
    });
}

} // namespace

bool isTimeZoneName(std::string_view name) {
    if (name.size() > kLongestTimeZone) {
        return false;
    }
    for (;;) {
        const std::size_t slash = name.find('/');
        if (!isWord(name.substr(0, slash))) {
            return false;
        }
        if (slash == std::string_view::npos) {
            return true;
        }
        name.remove_prefix(slash + 1);
    }
}

} // namespace bulkhead::protocol

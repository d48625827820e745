// SPDX-License-Identifier: Apache-2.0
#include "protocol/hostname.hpp"

#include <algorithm>

namespace bulkhead::protocol {

bool isHostname(std::string_view name) {
    const auto isFine = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    };
    return !name.empty() && name.size() <= kLongestHostname && name.front() != '-' && name.back() != '-' &&
           std::ranges::all_of(name, isFine);
}

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// What session.proto promises of its values: bulkhead-session keeps to it, and bulkhead-channel refuses the rest.
namespace bulkhead::protocol {

// Texts, in bytes.
constexpr std::size_t kMostTitle = 512;
constexpr std::size_t kMostClass = 128;
constexpr std::size_t kMostAppId = 128;
constexpr std::size_t kMostAppName = 256;
constexpr std::size_t kMostCategories = 256;
constexpr std::size_t kMostComment = 512;

/// A window's width and height, in pixels.
constexpr std::uint32_t kSmallestSide = 64;
constexpr std::uint32_t kLargestSide = 4096;
constexpr std::uint32_t kMostHeads = 16;
constexpr std::uint32_t kLeastDpi = 48;
constexpr std::uint32_t kMostDpi = 480;

/// What an app's id may be, from either side: [A-Za-z0-9._-], 1 to kMostAppId bytes, not beginning with a dot.
[[nodiscard]] inline bool isAppId(std::string_view id) {
    const auto isFine = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    return !id.empty() && id.size() <= kMostAppId && id.front() != '.' && std::ranges::all_of(id, isFine);
}

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session_limits.hpp"

#include <algorithm>
#include <cstdint>

/// Places and sizes in pixels of the X screen.
namespace bulkhead::session {

struct Point {
    int x = 0;
    int y = 0;
    bool operator==(const Point&) const = default;
};

struct Size {
    int width = 0;
    int height = 0;
    bool operator==(const Size&) const = default;
    [[nodiscard]] std::int64_t area() const { return std::int64_t{width} * height; }
};

struct Rect {
    Point at;
    Size size;
    bool operator==(const Rect&) const = default;
    [[nodiscard]] int right() const { return at.x + size.width; }
    [[nodiscard]] int bottom() const { return at.y + size.height; }
    [[nodiscard]] bool overlaps(const Rect& other) const {
        return at.x < other.right() && other.at.x < right() && at.y < other.bottom() && other.at.y < bottom();
    }
    [[nodiscard]] bool contains(Point point) const {
        return point.x >= at.x && point.x < right() && point.y >= at.y && point.y < bottom();
    }
};

/// What a head may measure, as session.proto says.
constexpr int kSmallestSide = protocol::kSmallestSide;
constexpr int kLargestSide = protocol::kLargestSide;
/// All heads together, on X's screen: what virtio-gpu takes.
constexpr Size kLargestScreen{8192, 8192};

[[nodiscard]] inline Size clampToHead(Size size) {
    return {std::clamp(size.width, kSmallestSide, kLargestSide), std::clamp(size.height, kSmallestSide, kLargestSide)};
}

} // namespace bulkhead::session

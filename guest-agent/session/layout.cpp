// SPDX-License-Identifier: Apache-2.0
#include "session/layout.hpp"

#include <algorithm>
#include <numeric>

namespace bulkhead::session {
namespace {

/// How many times larger than its heads the screen may be: its memory is the guest's, and again the host's.
constexpr std::int64_t kMostWaste = 2;
/// Below this, waste does not matter (pixels).
constexpr std::int64_t kSmallScreen = std::int64_t{4096} * 2048;

bool isWithin(const Rect& rect, Size most) {
    return rect.at.x >= 0 && rect.at.y >= 0 && rect.right() <= most.width && rect.bottom() <= most.height;
}

bool isFree(const Rect& rect, const HeadRects& others) {
    return std::none_of(others.begin(), others.end(),
                        [&](const auto& other) { return other && other->overlaps(rect); });
}

std::int64_t areaOf(const HeadRects& heads) {
    return std::accumulate(heads.begin(), heads.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& head) { return sum + (head ? head->size.area() : 0); });
}

/// The free place beside the others that makes the screen grow least.
std::optional<Point> placeFor(const HeadRects& others, Size size, Size most) {
    std::vector<int> columns{0};
    std::vector<int> rows{0};
    for (const auto& other : others) {
        if (other) {
            columns.push_back(other->right());
            rows.push_back(other->bottom());
        }
    }
    const Size screen = screenFor(others);
    std::optional<Point> best;
    std::int64_t bestArea = 0;
    for (const int y : rows) {
        for (const int x : columns) {
            const Rect candidate{{x, y}, size};
            if (!isWithin(candidate, most) || !isFree(candidate, others)) {
                continue;
            }
            const Size grown{std::max(screen.width, candidate.right()), std::max(screen.height, candidate.bottom())};
            if (!best || grown.area() < bestArea) {
                best = candidate.at;
                bestArea = grown.area();
            }
        }
    }
    return best;
}

/// Everything from the beginning, tall heads first. None: it does not fit.
std::optional<HeadRects> pack(const HeadSizes& sizes, Size most) {
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return sizes[a].value_or(Size{}).height > sizes[b].value_or(Size{}).height;
    });
    HeadRects heads(sizes.size());
    for (const std::size_t i : order) {
        if (!sizes[i]) {
            continue;
        }
        const auto place = placeFor(heads, *sizes[i], most);
        if (!place) {
            return std::nullopt;
        }
        heads[i] = Rect{*place, *sizes[i]};
    }
    return heads;
}

/// What can stay stays, the others go where there is room.
std::optional<HeadRects> adapt(const HeadRects& now, const HeadSizes& sizes, Size most) {
    HeadRects heads(sizes.size());
    const auto keep = [&](std::size_t i) {
        const Rect rect{now[i]->at, *sizes[i]};
        if (isWithin(rect, most) && isFree(rect, heads)) {
            heads[i] = rect;
        }
    };
    for (const bool unchanged : {true, false}) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (sizes[i] && i < now.size() && now[i] && (now[i]->size == *sizes[i]) == unchanged) {
                keep(i);
            }
        }
    }
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] && !heads[i]) {
            const auto place = placeFor(heads, *sizes[i], most);
            if (!place) {
                return std::nullopt;
            }
            heads[i] = Rect{*place, *sizes[i]};
        }
    }
    const std::int64_t screen = screenFor(heads).area();
    if (screen > kSmallScreen && screen > kMostWaste * areaOf(heads)) {
        return std::nullopt;
    }
    return heads;
}

/// Takes a quarter from those whose size is new; when all have the least size, from all. False: nothing is left to
/// take.
bool shrink(HeadSizes& sizes, const HeadRects& now, bool all) {
    bool shrunk = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        const bool isNew = sizes[i] && (i >= now.size() || !now[i] || now[i]->size != *sizes[i]);
        if (sizes[i] && (all || isNew)) {
            const Size smaller = clampToHead({sizes[i]->width * 3 / 4, sizes[i]->height * 3 / 4});
            shrunk = shrunk || smaller != *sizes[i];
            sizes[i] = smaller;
        }
    }
    return shrunk;
}

} // namespace

Size screenFor(const HeadRects& heads) {
    Size screen;
    for (const auto& head : heads) {
        if (head) {
            screen.width = std::max(screen.width, head->right());
            screen.height = std::max(screen.height, head->bottom());
        }
    }
    return screen;
}

Size roomyScreenFor(const HeadRects& heads, Size now, Size most) {
    constexpr int kStep = 256;
    const Size needed = screenFor(heads);
    const auto roundUp = [](int side, int limit) { return std::min((side + kStep - 1) / kStep * kStep, limit); };
    const Size roomy{roundUp(needed.width, most.width), roundUp(needed.height, most.height)};
    const bool isEnough = now.width >= needed.width && now.height >= needed.height;
    return isEnough && now.area() <= kMostWaste * roomy.area() ? now : roomy;
}

HeadRects arrange(const HeadRects& now, const HeadSizes& wanted, Size most) {
    HeadSizes sizes = wanted;
    for (auto& size : sizes) {
        if (size) {
            size =
                Size{std::min(clampToHead(*size).width, most.width), std::min(clampToHead(*size).height, most.height)};
        }
    }
    for (;;) {
        if (auto heads = adapt(now, sizes, most)) {
            return *heads;
        }
        if (auto heads = pack(sizes, most)) {
            return *heads;
        }
        if (!shrink(sizes, now, false) && !shrink(sizes, now, true)) {
            return HeadRects(sizes.size()); // a screen too small for the smallest heads: none is shown
        }
    }
}

} // namespace bulkhead::session

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/geometry.hpp"

#include <optional>
#include <vector>

namespace bulkhead::session {

/// One entry per head, in their order; none: the head is off.
using HeadRects = std::vector<std::optional<Rect>>;
using HeadSizes = std::vector<std::optional<Size>>;

/// Where the heads go on the screen, without overlap and within `most`. A head stays where it is (`now`) as long as it
/// can, because moving it moves windows; all are packed anew when the screen has become much larger than what is shown
/// on it. When all together are too large, those whose size is new get a smaller one.
[[nodiscard]] HeadRects arrange(const HeadRects& now, const HeadSizes& wanted, Size most = kLargestScreen);

/// The smallest screen that holds all heads; 0×0 when all are off.
[[nodiscard]] Size screenFor(const HeadRects& heads);

/// The screen to have for these heads, when there is one already: another size costs a new frame buffer and drawing
/// everything anew, so it has some room to grow, and is made smaller only when much of it is of no use.
[[nodiscard]] Size roomyScreenFor(const HeadRects& heads, Size now, Size most = kLargestScreen);

} // namespace bulkhead::session

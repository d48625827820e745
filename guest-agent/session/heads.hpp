// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/layout.hpp"

namespace bulkhead::session {

/// What shows parts of the X screen: the scanouts of the graphics device.
class Heads {
public:
    virtual ~Heads() = default;
    /// At least 1.
    [[nodiscard]] virtual unsigned count() const = 0;
    /// All heads together fit into this.
    [[nodiscard]] virtual Size largestScreen() const = 0;
    /// What they show now.
    [[nodiscard]] virtual const HeadRects& rects() const = 0;
    /// Makes the screen and the heads as `wanted` (as many entries as heads) says, as far as the device does it;
    /// rects() tells what became of it.
    virtual void apply(const HeadRects& wanted) = 0;
    [[nodiscard]] virtual Size screen() const = 0;
};

} // namespace bulkhead::session

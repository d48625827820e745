// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"

#include <chrono>

namespace bulkhead::process {

/// core::Clock from the host's clock.
class SystemClock final : public core::Clock {
public:
    std::int64_t now() override {
        return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    }
};

} // namespace bulkhead::process

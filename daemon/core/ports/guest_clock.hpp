// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"

namespace bulkhead::core {

/// Clocks of guests that run. Thread-safe; calls block.
class GuestClock {
public:
    virtual ~GuestClock() = default;
    /// Sets clock and time zone to the host's. Success when the guest's agent has said that they are. Errors: TimedOut,
    /// Busy (a picture of it is being taken), GuestFailure, Unavailable (there is no line to it now: whoever makes one
    /// sets the clock).
    virtual Status setToHosts(const InstanceId& instance) = 0;
};

} // namespace bulkhead::core

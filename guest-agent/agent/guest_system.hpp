// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/system.hpp"

namespace bulkhead::agent {

/// The machine whose first process the agent is.
class GuestSystem final : public System {
public:
    [[nodiscard]] bool canChangeAccount() const override { return true; }
    int setClock(std::int64_t realtimeNs) override;
    /// TERM to all, KILL after `grace`, sync, unmount, power off. Does not return.
    void powerOff(std::chrono::milliseconds grace) override;
};

} // namespace bulkhead::agent

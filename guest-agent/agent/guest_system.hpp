// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/idleness.hpp"
#include "agent/system.hpp"

namespace bulkhead::agent {

/// The machine that the agent is root of.
class GuestSystem : public System {
public:
    [[nodiscard]] bool canChangeAccount() const override { return true; }
    int setClock(std::int64_t realtimeNs) override;
    int setTimeZone(const std::string& name) override;
    int quiesce() override;
    int rejuvenate(const RejuvenateRequest& request) override;
    int settleDisks(bool standStill) override;
    void releaseDisks() override;
    int setHostname(const std::string& name) override;
    /// TERM to all, KILL after `grace`, sync, unmount, power off. Does not return.
    void powerOff(std::chrono::milliseconds grace) override;

private:
    Idleness m_idleness;
};

/// The same where the agent is one of systemd's units.
class UnitSystem final : public GuestSystem {
public:
    /// Also waits for the graphical session.
    int quiesce() override;
    /// Asks systemd, which ends this process, too. When it does not in a while: sync and power off. Does not return.
    void powerOff(std::chrono::milliseconds grace) override;
};

} // namespace bulkhead::agent

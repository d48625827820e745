// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/agent.pb.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace bulkhead::agent {

/// What the agent may do to the machine it runs on. Two implementations: a guest whose first process it is, and an
/// ordinary process (tests), which touches nothing outside itself.
class System {
public:
    virtual ~System() = default;
    /// True: programs run as the account that the request names (`user` when it names none). False: only as the
    /// account this process has.
    [[nodiscard]] virtual bool canChangeAccount() const = 0;
    /// 0 or an errno.
    virtual int setClock(std::int64_t realtimeNs) = 0;
    /// 0 or an errno; see installTimeZone().
    virtual int setTimeZone(const std::string& name) = 0;
    /// Writes everything to the disks. 0, or an errno: EAGAIN while the machine is busy with its start.
    virtual int quiesce() = 0;
    /// Makes this machine another one than those that were begun from the same memory image. 0 or an errno.
    virtual int rejuvenate(const RejuvenateRequest& request) = 0;
    /// Writes everything to the disks, and with `standStill` then has the file systems stand still until
    /// releaseDisks(): all or none. Called in a process of its own, since it may hang in the kernel for long. 0 or an
    /// errno.
    virtual int settleDisks(bool standStill) = 0;
    /// File systems go on; nothing when they do not stand still. Also called in a process of its own.
    virtual void releaseDisks() = 0;
    /// What the machine calls itself, see protocol::isHostname(). 0 or an errno.
    virtual int setHostname(const std::string& name) = 0;
    /// Ends everything. Returns only where there is no machine to power off.
    virtual void powerOff(std::chrono::milliseconds grace) = 0;
};

/// Memory, processes and file systems of this machine.
StatusReply readStatus();

} // namespace bulkhead::agent

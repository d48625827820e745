// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::core {

/// An emulator of ours as the hypervisor sees it now.
struct ObservedInstance {
    InstanceId id;
    pid_t pid = 0;
    bool isPaused = false;
    /// Paused because the host's disk was full when the guest wrote; isPaused is set too. It goes on by resume(), and
    /// writes again what was refused: nobody else resumes it.
    bool isPausedByFullDisk = false;
};

/// Starts and ends emulators. Blocking; called from worker threads; thread-safe. An instance is known to the hypervisor
/// by its id alone. Errors: Unavailable when the hypervisor cannot be reached (it is tried again on the next call).
class Hypervisor {
public:
    virtual ~Hypervisor() = default;
    /// Starts a transient domain; when this returns the emulator runs (one with a memory image waits for
    /// Machines::load()). Gives its process id.
    virtual Result<pid_t> start(const InstanceSpec& spec) = 0;
    /// Cuts the power. Success means that no process of the emulator is left; an instance that does not exist is
    /// success.
    virtual Status destroy(const InstanceId& id) = 0;
    /// All emulators that carry our mark, whatever our records say.
    virtual Result<std::vector<ObservedInstance>> list() = 0;
    /// Lets the guest stand still, with all its memory; one that does already is success. NotFound.
    virtual Status pause(const InstanceId& id) = 0;
    /// Lets a paused emulator go on.
    virtual Status resume(const InstanceId& id) = 0;
};

} // namespace bulkhead::core

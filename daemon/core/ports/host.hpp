// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/domain.hpp"
#include "core/model/finding.hpp"
#include "core/model/instance.hpp"
#include "core/model/template.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <sys/types.h>
#include <vector>

/// Small ports to the rest of the host.
namespace bulkhead::core {

class Clock {
public:
    virtual ~Clock() = default;
    /// Seconds since the epoch.
    virtual std::int64_t now() = 0;
};

/// Tells when an emulator process ends (a pidfd knows within milliseconds, libvirt's event only after 0.2–2 s).
class EmulatorWatch {
public:
    virtual ~EmulatorWatch() = default;
    /// Calls `gone` once, from a thread of its own. A process that is gone already: called soon. NotFound never.
    virtual Status watch(const InstanceId& instance, pid_t pid, std::function<void()> gone) = 0;
    virtual void forget(const InstanceId& instance) = 0;
};

/// Finds out once which acceleration boots a stock kernel, and remembers it.
class AccelerationProbe {
public:
    struct Outcome {
        Acceleration acceleration = Acceleration::Emulation;
        bool isKnown = false; ///< false: not tested yet (no template's kernel to test with); Emulation is used
        std::string reason;   ///< for people: why this one
    };
    virtual ~AccelerationProbe() = default;
    /// The remembered answer for this host (QEMU version, kernel, CPU); tests when there is none, at most 10 s.
    /// `kernel` and `initrd` are those of an installed template.
    virtual Outcome determine(const std::filesystem::path& kernel, const std::filesystem::path& initrd,
                              bool refresh) = 0;
    /// The remembered answer only.
    virtual Outcome remembered() = 0;
};

/// A number that is remembered until the machine boots again, also over a restart of the daemon. Thread-safe.
class BootCounter {
public:
    virtual ~BootCounter() = default;
    /// None: nothing was written since the machine booted.
    virtual Result<std::optional<std::uint64_t>> read() = 0;
    /// In place as a whole when this returns.
    virtual Status write(std::uint64_t value) = 0;
};

/// Which line a guest that starts now gets to its agent. Thread-safe.
class TransportProbe {
public:
    struct Outcome {
        Transport transport = Transport::VirtioSerial;
        std::string reason; ///< for people: why this one
    };
    virtual ~TransportProbe() = default;
    /// Looks afresh each time: the kernel's module may come and go. Unavailable when the one that the administrator
    /// asked for is not possible, with the way to get it.
    virtual Result<Outcome> choose() = 0;
    /// False when some emulator of this host has the address already, whoever's it is.
    virtual bool isCidFree(std::uint32_t cid) = 0;
};

/// One examiner of the host for `bulkhead doctor`.
class HostProbe {
public:
    virtual ~HostProbe() = default;
    virtual std::vector<Finding> examine(bool refresh) = 0;
};

/// Progress of a long operation. Called from the worker thread.
using ProgressSink = std::function<void(const std::string& phase, double fraction)>;

class TemplateBuilder {
public:
    virtual ~TemplateBuilder() = default;
    /// The hash of everything that a build of this definition depends on.
    virtual Result<std::string> definitionHash(const TemplateDefinition& definition) = 0;
    /// Builds as the unprivileged build user. On failure nothing is left and the message has the tool's last lines.
    virtual Result<BuiltTemplate> build(const TemplateDefinition& definition, const ProgressSink& progress,
                                        std::stop_token cancel) = 0;
    /// Deletes the build's folder (after install, or after a crash: all of them).
    virtual void discard(const BuiltTemplate& built) = 0;
    virtual void removeLeftovers() = 0;
};

/// Memory of the host.
class HostMemory {
public:
    virtual ~HostMemory() = default;
    struct Amount {
        Bytes total = 0;
        Bytes available = 0;
    };
    virtual Amount memory() = 0;
};

/// Where changes are told. Called from any thread: hand over and return.
class EventSink {
public:
    virtual ~EventSink() = default;
    virtual void domainStateChanged(const DomainId& id, DomainState state) = 0;
    virtual void domainsChanged() = 0;
    /// Nodes of this domain came, went or say something else, or it stands somewhere else in its lineage.
    virtual void snapshotsChanged(const DomainId& id) = 0;
    virtual void jobProgress(const JobId& id, double fraction) = 0;
    virtual void jobFinished(const JobId& id) = 0;
};

} // namespace bulkhead::core

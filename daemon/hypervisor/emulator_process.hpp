// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <filesystem>
#include <optional>
#include <sys/types.h>

namespace bulkhead::hypervisor {

/// The process behind an instance, found and checked.
struct EmulatorProcess {
    pid_t pid = 0;
    uid_t uid = 0;  ///< the effective one
    UniqueFd pidfd; ///< readable when the process has ended
};

/// Reads libvirt's pid file (`pidDirectory`/bh-ID.pid, root-owned: no other process can claim to be the emulator) and
/// makes sure that the number still means that QEMU: its arguments hold the instance's id. None: there is no such
/// process (never was, or it has ended).
std::optional<EmulatorProcess> findEmulator(const std::filesystem::path& pidDirectory, const InstanceId& id);

/// Users that emulators run as.
struct UidRange {
    uid_t first = 0;
    uid_t last = 0;
};

/// Looks through all processes, for an emulator whose pid file is lost: a QEMU by its name and arguments, which runs as
/// one of our users (anybody may write anything into the arguments of a process of his own).
std::optional<EmulatorProcess> searchEmulator(const UidRange& users, const InstanceId& id);

/// SIGKILL. Success when the process has ended already; it may take a moment to end.
Status killProcess(const UniqueFd& pidfd);

/// True when the process has ended, collected or not.
bool hasEnded(const UniqueFd& pidfd);

} // namespace bulkhead::hypervisor

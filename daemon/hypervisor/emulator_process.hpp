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

/// True when the process has ended, collected or not.
bool hasEnded(const UniqueFd& pidfd);

} // namespace bulkhead::hypervisor

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <sys/types.h>

namespace bulkhead::memcap {

/// Closes all descriptors above `lastFd`: whatever the daemon may have left open by mistake. First thing of all.
Status closeInherited(int lastFd);

/// Asks for the processor before all others until giveUpReading(): the guest stands still for this program. Where that
/// is not allowed, it goes on as it is. Before giveUpPrivileges().
void hurry();

/// Gives up everything but reading the memory of process `emulator`: new privileges, being traced, core files, all
/// capabilities but CAP_SYS_PTRACE, and all system calls but those of Capturer. Irreversible. Open everything before.
/// Who has no CAP_SYS_PTRACE goes on without: the kernel then decides as for any process.
Status giveUpPrivileges(pid_t emulator, Bytes ram);

/// Gives up CAP_SYS_PTRACE and the hurry too, once the memory has been copied.
Status giveUpReading();

} // namespace bulkhead::memcap

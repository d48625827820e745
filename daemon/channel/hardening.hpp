// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace bulkhead::channel {

/// Closes all descriptors above `lastFd`: whatever the daemon may have left open by mistake. First thing of all.
Status closeInherited(int lastFd);

/// Gives up everything that the program does not need: capabilities, new privileges, being traced, core files, many
/// descriptors, much memory; and at last all system calls but those of the event loop. Irreversible. Open everything
/// before, read nothing of the guest before. On failure the program must end.
Status giveUpPrivileges();

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

namespace bulkhead::agent {

/// Makes the mounted ext4 file system at `mountPoint` as large as its disk, which the host may have made larger since.
/// The host never does that itself: it reads nothing of what a guest wrote. Success when it fills the disk already.
Status fillDisk(const char* disk, const char* mountPoint);

} // namespace bulkhead::agent

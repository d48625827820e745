// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <string>

namespace bulkhead::inspect {

/// The kernel's name of the disk with this serial number, such as "vdc"; empty: there is none. `blocks`: where the
/// kernel lists them.
std::string findDisk(const std::string& serial, const std::string& blocks = "/sys/block");

/// A folder of this process's own, in a mount space of its own: everything in it goes with the process.
Result<std::string> makePrivateFolder();

struct MountedDisk {
    UniqueFd top;
    bool isWithoutJournal = false;
};
/// Mounts the disk below the private folder, read-only and so that nothing on it is a device, a program or more than
/// it was. Its journal is replayed; one that cannot be is passed over. `why`: the errno of a failure.
Result<MountedDisk> mountDisk(const std::string& folder, const std::string& name, int& why);

} // namespace bulkhead::inspect

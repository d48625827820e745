// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/kvm_device.hpp"

#include <fmt/format.h>

#include <sys/stat.h>

namespace bulkhead::hypervisor {

KvmDevice examineKvmDevice(const std::filesystem::path& device, gid_t emulatorGid) {
    struct stat status {};
    if (::stat(device.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) {
        return {KvmDevice::Access::Absent, "absent", fmt::format("{} does not exist", device.string()),
                "enable virtualisation (VT-x or AMD-V) in the firmware and load kvm_intel or kvm_amd"};
    }
    KvmDevice found{KvmDevice::Access::Ok,
                    fmt::format("{:x}/{:o}/{}:{}", status.st_rdev, status.st_mode, status.st_uid, status.st_gid), "",
                    ""};
    constexpr mode_t groupBoth = S_IRGRP | S_IWGRP;
    constexpr mode_t otherBoth = S_IROTH | S_IWOTH;
    const bool byGroup = status.st_gid == emulatorGid && (status.st_mode & groupBoth) == groupBoth;
    // The group's bits are all that counts for a member of the group.
    const bool byOthers = status.st_gid != emulatorGid && (status.st_mode & otherBoth) == otherBoth;
    if (!byGroup && !byOthers) {
        found.access = KvmDevice::Access::RootOnly;
        found.reason = fmt::format("{} may not be opened by the group kvm (mode {:o}, group {})", device.string(),
                                   status.st_mode & 07777U, status.st_gid);
        found.fix = fmt::format("chgrp kvm {0}; chmod 660 {0}", device.string());
    }
    return found;
}

} // namespace bulkhead::hypervisor

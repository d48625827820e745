// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <sys/types.h>

namespace bulkhead::hypervisor {

/// What can be said of /dev/kvm without opening it. (That it opens proves nothing: see AccelerationSelfTest.)
struct KvmDevice {
    enum class Access {
        Absent,
        RootOnly, ///< neither the group that emulators run with nor everybody may open it
        Ok,
    };
    Access access = Access::Absent;
    std::string identity; ///< device number, mode and owner: part of the key under which a self-test is remembered
    std::string reason;   ///< for people, when not Ok
    std::string fix;      ///< a command or an advice, when not Ok
};

/// Looks whether a process with `emulatorGid` (and a user of its own) may open the device.
KvmDevice examineKvmDevice(const std::filesystem::path& device, gid_t emulatorGid);

} // namespace bulkhead::hypervisor

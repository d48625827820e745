// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/services/instance_launcher.hpp"

namespace bulkhead::core {

/// What the emulator of a start has; inside InstanceLauncher only.
struct InstanceLauncher::Started {
    InstanceFiles files;
    pid_t emulator = 0;
};

/// One start, from what was wished to what was made; inside InstanceLauncher only.
struct InstanceLauncher::Plan {
    InstanceRecord record;
    InstancePlan files;
    std::filesystem::path kernel;
    std::filesystem::path initrd;
    std::optional<DomainId> keptHome;
    std::string label;    ///< its warm image is that label's; empty: any
    std::string hostname; ///< what the guest calls itself; empty: as its template says
    /// What it begins in instead of booting.
    struct Memory {
        std::filesystem::path image;
        std::filesystem::path devices;
        bool isNode = false; ///< otherwise a warm image
    };
    std::optional<Memory> memory;
    std::optional<WarmImage> warm; ///< where the memory is from
    std::optional<Started> shell;  ///< an emulator that has waited for it
    bool isForImage = false;
    bool hasLoaded = false;     ///< the emulator has it, or has tried; of a shell: has it
    bool isImageBroken = false; ///< the failure is the image's: nobody shall begin from it again
    bool isUndone = true;       ///< nothing is left of a failed try
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "core/model/instance.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace bulkhead::core {

/// What a memory image of a template is bound to. A machine that differs in any of it reads the image wrongly, so an
/// image is used for equal keys only.
struct WarmImageKey {
    std::string templateName;
    std::string templateVersion;
    std::string size; ///< its name; memory and processors may have been redefined since
    Bytes memory = 0;
    unsigned vcpus = 1;
    unsigned heads = 0;
    Audio audio = Audio::Off;
    Acceleration acceleration = Acceleration::Emulation;
    Transport transport = Transport::VirtioSerial;
    std::string machine; ///< Machines::version()
    /// Whose domains begin from the image: emulators that map one file can tell from timing what another has read of
    /// it. Empty: nobody's yet.
    std::string label;

    bool operator==(const WarmImageKey&) const = default;
};

/// A template that has been started already: the memory, the state of the devices, and what was written to the system
/// disk until then. Files that never change; many guests are begun from them at once.
struct WarmImage {
    WarmImageKey key;
    std::filesystem::path memory;
    std::string memoryDigest; ///< see MemoryImageRef
    std::filesystem::path devices;
    DiskLayer system;            ///< above the template's root.img
    std::int64_t madeAt = 0;     ///< seconds since the epoch
    std::int64_t lastUsedAt = 0; ///< the same; 0: never
    Bytes sizeOnDisk = 0;
};

} // namespace bulkhead::core

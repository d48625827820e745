// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "process/run.hpp"
#include "support/contract/snapshot_store_contract.hpp"
#include "support/fakes/fake_host.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

/// Disks as emulators have them, written and read by QEMU's own tool.
namespace bulkhead::tests {

namespace fs = std::filesystem;

inline constexpr uid_t kEmulatorUid = 1'900'000'000;
inline constexpr gid_t kEmulatorGroup = 4712;
/// Within the home, behind what mke2fs writes at its begin.
inline constexpr Bytes kPlaces = 40 * kMiB;

class StoppedClock final : public core::Clock {
public:
    std::int64_t now() override { return 1'700'000'000; }
};

inline std::string io(const std::string& format, const fs::path& file, const std::string& command, bool isReadOnly) {
    process::ProcessSpec spec;
    spec.program = "/usr/bin/qemu-io";
    spec.arguments = {"-f", format, "-c", command, file.string()};
    if (isReadOnly) {
        spec.arguments.insert(spec.arguments.begin(), "-r");
    }
    spec.environment = process::toolEnvironment();
    const auto result = process::runChecked(spec);
    if (!result) {
        qWarning("%s", result.error().message.c_str());
    }
    return result ? result->output : std::string();
}

inline std::string placeOf(int place) {
    return std::to_string(kPlaces + static_cast<Bytes>(place) * 64 * kKiB);
}

inline void writeLayer(const core::DiskLayer& layer, int place, int value) {
    io(std::string(nameOf(layer.format)), layer.path,
       "write -P " + std::to_string(value) + " " + placeOf(place) + " 4k", false);
}

/// By the names in the headers, which are right too.
inline int readDisk(const core::Disk& disk, int place) {
    const auto& top = disk.layers.front();
    const std::string out = io(std::string(nameOf(top.format)), top.path, "read -v " + placeOf(place) + " 1", true);
    const auto colon = out.find(':');
    return colon == std::string::npos ? -1 : std::stoi(out.substr(colon + 1, 4), nullptr, 16);
}

/// A template that nobody can boot.
inline core::InstalledTemplate installSample(core::TemplateStore& templates, const fs::path& root) {
    const fs::path folder = root / "build";
    fs::create_directory(folder);
    for (const char* name : {"root.img", "vmlinuz", "initrd.img", "packages.txt"}) {
        std::ofstream(folder / name) << name;
    }
    fs::resize_file(folder / "root.img", 128 * kMiB);
    for (const auto& entry : fs::directory_iterator(folder)) {
        [[maybe_unused]] const int given = ::chown(entry.path().c_str(), 4713, 4713);
    }
    [[maybe_unused]] const int given = ::chown(folder.c_str(), 4713, 4713);
    auto made = templates.install(sampleTemplate(), {folder, "hash"}, {});
    if (!made) {
        qWarning("%s", made.error().message.c_str());
    }
    return made.value_or(core::InstalledTemplate());
}

} // namespace bulkhead::tests

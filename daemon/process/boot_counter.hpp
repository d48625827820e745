// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"

#include <filesystem>

namespace bulkhead::process {

/// core::BootCounter in a file that also names the boot it belongs to, so that it counts only while that lasts,
/// wherever the file lies. Replaced by a rename; not synced to a disk: what a power cut loses is of another boot
/// afterwards.
class FileBootCounter final : public core::BootCounter {
public:
    explicit FileBootCounter(std::filesystem::path file,
                             std::filesystem::path bootIdFile = "/proc/sys/kernel/random/boot_id")
        : m_file(std::move(file))
        , m_bootIdFile(std::move(bootIdFile)) {}

    /// HostFailure when the file exists but does not hold what write() writes: it was changed by somebody else.
    Result<std::optional<std::uint64_t>> read() override;
    Status write(std::uint64_t value) override;

private:
    std::filesystem::path m_file;
    std::filesystem::path m_bootIdFile;
};

} // namespace bulkhead::process

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"

#include <filesystem>

namespace bulkhead::process {

/// core::HostMemory from /proc/meminfo.
class ProcHostMemory final : public core::HostMemory {
public:
    explicit ProcHostMemory(std::filesystem::path file = "/proc/meminfo")
        : m_file(std::move(file)) {}
    /// Both 0 when the file cannot be read.
    Amount memory() override;

private:
    std::filesystem::path m_file;
};

} // namespace bulkhead::process

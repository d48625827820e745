// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/memory_images.hpp"

#include <filesystem>

namespace bulkhead::imaging {

/// core::MemoryCapturer by the program bulkhead-memcap, which alone reads an emulator's memory (imaging/memory).
class ProcessMemoryCapturer final : public core::MemoryCapturer {
public:
    explicit ProcessMemoryCapturer(std::filesystem::path program)
        : m_program(std::move(program)) {}

    /// Leaves the list of the image's chunks beside it (memory::chunksPath()).
    Result<std::string> captureWhole(pid_t pid, Bytes size, const std::filesystem::path& file) override;
    Result<std::unique_ptr<core::RunningCapture>> prepare(const CaptureRequest& request) override;
    /// What the kernel tells everybody: RssAnon and VmSwap, so the emulator's own heap counts as well.
    Result<Bytes> privateMemory(pid_t emulator) override;

private:
    std::filesystem::path m_program;
};

} // namespace bulkhead::imaging

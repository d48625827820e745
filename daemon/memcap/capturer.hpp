// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memcap/emulator.hpp"
#include "memcap/page_buffer.hpp"
#include "memcap/parent_image.hpp"
#include "memory/capture_lines.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bulkhead::memcap {

struct CaptureTask {
    Bytes ram = 0;
    Bytes maxPrivate = 0;
    std::string parent;               ///< digest
    std::optional<MappedFile> mapped; ///< none: the emulator was booted cold
};

/// The three phases of one capture, in this order and once each. All calls may be made with the system calls of
/// hardening.hpp only.
class Capturer {
public:
    /// `output`: a new, empty file.
    Capturer(Emulator emulator, ParentImage parent, UniqueFd output, CaptureTask task);

    Result<memory::PreparedCapture> prepare();
    /// The emulator is paused. This is the time that the guest loses.
    Result<memory::CapturedPages> capture();
    Result<memory::FinishedCapture> finish();

private:
    Result<memory::PreparedCapture> makeReady();
    Result<memory::CapturedPages> copyPages();
    /// The better reason for a failure, if there is one.
    Error reasonFor(const Error& error) const;
    Result<std::uint64_t> findAddress() const;
    Status checkSize(std::uint64_t pages) const;
    /// Drops what the parent has already.
    Result<memory::DeltaIndex> compare();
    Status compareRun(const PageRun& run, const char* pages, memory::DeltaIndex& index);
    /// Pages between `first` and `end` are not private. Booted cold, they are zero now, whatever the parent says.
    Status compareGap(std::uint64_t first, std::uint64_t end, memory::DeltaIndex& index);
    Result<memory::WrittenDelta> write(const memory::DeltaIndex& index);

    Emulator m_emulator;
    ParentImage m_parent;
    UniqueFd m_output;
    CaptureTask m_task;
    std::uint64_t m_address = 0;
    std::vector<PageRun> m_runs; ///< captured
    PageBuffer m_buffer;         ///< their bytes, one behind the other
    std::uint64_t m_samePages = 0;
};

} // namespace bulkhead::memcap

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace bulkhead::agent {

/// Processor time since the start, in the kernel's ticks; from the first line of /proc/stat.
struct ProcessorTime {
    std::uint64_t busy = 0;
    std::uint64_t idle = 0; ///< also waiting for disks
};
/// None: not of that form.
std::optional<ProcessorTime> parseProcessorTime(std::string_view statText);

/// Whether a machine has come to rest, told from what its processors did between two looks.
class Idleness {
public:
    /// One look. True: since the last look, which was at least half a second ago, they were idle for nine tenths of the
    /// time. A look that comes sooner says what the last one said.
    bool look(const ProcessorTime& now, std::chrono::steady_clock::time_point at);

private:
    std::optional<ProcessorTime> m_last;
    std::chrono::steady_clock::time_point m_lastAt;
    bool m_isIdle = false;
};

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/idleness.hpp"

#include <array>
#include <cstddef>
#include <sstream>
#include <string>

namespace bulkhead::agent {
namespace {

constexpr std::chrono::milliseconds kLeast{500};

} // namespace

std::optional<ProcessorTime> parseProcessorTime(std::string_view statText) {
    std::istringstream line(std::string(statText.substr(0, statText.find('\n'))));
    std::string name;
    // user nice system idle iowait irq softirq steal; proc(5)
    std::array<std::uint64_t, 8> ticks{};
    line >> name;
    for (std::uint64_t& value : ticks) {
        line >> value;
    }
    if (!line || name != "cpu") {
        return std::nullopt;
    }
    constexpr std::size_t kIdle = 3;
    constexpr std::size_t kWaiting = 4;
    ProcessorTime time;
    time.idle = ticks[kIdle] + ticks[kWaiting];
    for (const std::uint64_t value : ticks) {
        time.busy += value;
    }
    time.busy -= time.idle;
    return time;
}

bool Idleness::look(const ProcessorTime& now, std::chrono::steady_clock::time_point at) {
    if (m_last && at - m_lastAt < kLeast) {
        return m_isIdle;
    }
    if (m_last) {
        const std::uint64_t busy = now.busy - m_last->busy;
        const std::uint64_t idle = now.idle - m_last->idle;
        m_isIdle = busy * 10 <= busy + idle;
    }
    m_last = now;
    m_lastAt = at;
    return m_isIdle;
}

} // namespace bulkhead::agent

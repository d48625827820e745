// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

namespace bulkhead::agent {

/// Lets `burst` things through at once, and after that one each `interval`.
class RateLimit {
public:
    using Clock = std::chrono::steady_clock;
    RateLimit(unsigned burst, Clock::duration interval)
        : m_burst(burst)
        , m_interval(interval)
        , m_left(burst) {}

    /// False: not now.
    bool take(Clock::time_point now = Clock::now()) {
        const auto earned = (now - m_since) / m_interval;
        if (earned > 0) {
            m_left = static_cast<unsigned>(std::min<Clock::rep>(m_burst, m_left + earned));
            m_since = m_left == m_burst ? now : m_since + earned * m_interval;
        }
        if (m_left == 0) {
            return false;
        }
        --m_left;
        return true;
    }

private:
    unsigned m_burst;
    Clock::duration m_interval;
    unsigned m_left;
    Clock::time_point m_since = Clock::now();
};

} // namespace bulkhead::agent

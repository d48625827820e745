// SPDX-License-Identifier: Apache-2.0
#include "channel/liveness.hpp"

#include <chrono>
#include <utility>

namespace bulkhead::channel {

namespace {
constexpr std::chrono::seconds kPingAfter{10};
constexpr std::chrono::seconds kSilentAfter{50}; ///< the question
} // namespace

void Liveness::heard(TimePoint now) {
    m_lastHeard = now;
    m_isWatching = true;
    m_hasPinged = false;
    m_isBack = m_isBack || m_isSilent;
    m_isSilent = false;
}

Liveness::Act Liveness::turn(TimePoint now) {
    if (std::exchange(m_isBack, false)) {
        return Act::Back;
    }
    if (!m_isWatching) {
        return Act::Nothing;
    }
    if (!m_hasPinged && now >= m_lastHeard + kPingAfter) {
        m_hasPinged = true;
        m_pinged = now;
        return Act::Ping;
    }
    if (m_hasPinged && !m_isSilent && now >= m_pinged + kSilentAfter) {
        m_isSilent = true;
        return Act::Silent;
    }
    return Act::Nothing;
}

TimePoint Liveness::nextDeadline() const {
    if (!m_isWatching || m_isSilent) {
        return TimePoint::max();
    }
    return m_hasPinged ? m_pinged + kSilentAfter : m_lastHeard + kPingAfter;
}

} // namespace bulkhead::channel

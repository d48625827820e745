// SPDX-License-Identifier: Apache-2.0
#include "viewer/pacing.hpp"

#include <algorithm>
#include <cmath>

namespace bulkhead::viewer {
namespace {

constexpr int kMostAsks = 2;
constexpr std::chrono::milliseconds kFirstDelay{250};
constexpr std::chrono::milliseconds kLongestDelay{5000};
constexpr int kMostDoublings = 5;

} // namespace

void ResizePlan::want(QSize size, Instant now) {
    if (size == m_wanted) {
        return;
    }
    m_wanted = size;
    m_asked = 0;
    m_due = now + kResizeDelay;
}

void ResizePlan::arrived(QSize size) {
    m_actual = size;
    if (!pending()) {
        m_due.reset();
    }
}

std::optional<QSize> ResizePlan::take(Instant now) {
    if (!m_due || now < *m_due) {
        return std::nullopt;
    }
    m_due.reset();
    if (!pending()) {
        return std::nullopt;
    }
    ++m_asked;
    if (m_asked < kMostAsks) {
        m_due = now + kResizePatience;
    }
    return m_wanted;
}

std::optional<Instant> ResizePlan::due() const {
    return m_due;
}

void ResizePlan::forget() {
    m_asked = 0;
    m_actual = QSize();
    if (m_wanted.isValid()) {
        m_due = Instant{};
    }
}

std::chrono::milliseconds Backoff::next() {
    const int doublings = std::min(m_attempts++, kMostDoublings);
    return std::min(kFirstDelay * (1 << doublings), kLongestDelay);
}

double RateLimit::permitsAt(Instant now) const {
    const std::chrono::duration<double> passed = now - m_since;
    return std::min(m_burst, m_permits + std::max(0.0, passed.count()) * m_perSecond);
}

bool RateLimit::take(Instant now) {
    m_permits = permitsAt(now);
    m_since = now;
    if (m_permits < 1) {
        return false;
    }
    m_permits -= 1;
    return true;
}

std::chrono::milliseconds RateLimit::wait(Instant now) const {
    const double missing = 1 - permitsAt(now);
    return std::chrono::milliseconds(missing <= 0 ? 0 : static_cast<int>(std::ceil(missing / m_perSecond * 1000)));
}

} // namespace bulkhead::viewer

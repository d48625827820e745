// SPDX-License-Identifier: Apache-2.0
#include "channel/window_watch.hpp"

namespace bulkhead::channel {

WindowsState WindowWatch::turn(bool isUp, std::size_t windows, TimePoint now) {
    if (m_isCarriedByProgram) {
        return m_state;
    }
    if (!isUp || windows > 0) {
        m_deadline = TimePoint::max();
        if (windows > 0) {
            m_state = WindowsState::Open;
        }
    } else if (m_state == WindowsState::Open && m_deadline == TimePoint::max()) {
        m_deadline = now + kGrace;
    } else if (m_state == WindowsState::Open && now >= m_deadline) {
        m_deadline = TimePoint::max();
        m_state = WindowsState::Closed;
    }
    return m_state;
}

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#include "core/services/uid_leases.hpp"

#include <string>

namespace bulkhead::core {

Result<unsigned> UidLeases::lease() {
    const std::lock_guard lock(m_mutex);
    for (unsigned tried = 0; tried < kSlots; ++tried) {
        const unsigned slot = m_next;
        m_next = (m_next + 1) % kSlots;
        if (m_taken.insert(slot).second) {
            return slot;
        }
    }
    return fail(ErrorCode::LimitExceeded, "all " + std::to_string(kSlots) + " places for running domains are taken");
}

void UidLeases::claim(unsigned slot) {
    const std::lock_guard lock(m_mutex);
    m_taken.insert(slot);
    m_next = (slot + 1) % kSlots;
}

void UidLeases::release(unsigned slot) {
    const std::lock_guard lock(m_mutex);
    m_taken.erase(slot);
}

} // namespace bulkhead::core

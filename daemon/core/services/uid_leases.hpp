// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <mutex>
#include <set>
#include <sys/types.h>

namespace bulkhead::core {

/// Leases slots of two uids to running instances: one for the emulator, one for the channel process, so that neither
/// can touch another domain's (resources/doc/decisions/001-uids.md). Slots go round, so that a freed one rests as long
/// as possible. Thread-safe.
class UidLeases {
public:
    /// Far from people's accounts, from the ranges of subuid(5), and from those that systemd hands out (up to
    /// 1879048191, systemd's UIDS-GIDS page).
    static constexpr uid_t kBase = 1'900'000'000;
    static constexpr unsigned kSlots = 4096;

    static uid_t emulatorUid(unsigned slot) { return kBase + 2 * slot; }
    static uid_t channelUid(unsigned slot) { return kBase + 2 * slot + 1; }

    /// LimitExceeded when all are taken.
    Result<unsigned> lease();
    /// Marks a slot as taken (found in a record at start).
    void claim(unsigned slot);
    void release(unsigned slot);

private:
    std::mutex m_mutex;
    std::set<unsigned> m_taken;
    unsigned m_next = 0;
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_clock.hpp"
#include "core/services/domain_table.hpp"

#include <chrono>
#include <map>
#include <mutex>

namespace bulkhead::core {

class WorkerPool;

/// Guests follow the host's clock: after the host slept, after its clock or time zone was set, and after a guest was
/// paused. The question is the check of its channel, too: a guest that does not answer is asked again and spoken of in
/// the log, and lives on, since after a sleep whatever answers late may be well. Paused guests are not asked: they get
/// the time when they go on. Thread-safe.
class GuestClocks {
public:
    struct Patience {
        /// Until a guest that did not answer is asked again.
        std::chrono::milliseconds retry{5000};
        /// How often one is asked at most.
        unsigned tries = 6;
        /// An answer that took longer came to a time that was over: it is set once more.
        std::chrono::milliseconds fresh{1000};
    };

    /// `workers`: where guests are waited for.
    GuestClocks(GuestClock& clocks, DomainTable& table, WorkerPool& workers, Patience patience)
        : m_clocks(clocks)
        , m_table(table)
        , m_workers(workers)
        , m_patience(patience) {}

    /// Soon, of every guest that runs. Returns at once; what an earlier call still waits for is replaced.
    void setAllSoon();
    /// Soon, of this one.
    void setSoon(const InstanceId& instance);

private:
    void set(const InstanceId& instance, unsigned call, unsigned tries);
    [[nodiscard]] bool isLast(const InstanceId& instance, unsigned call);
    void forget(const InstanceId& instance, unsigned call);

    GuestClock& m_clocks;
    DomainTable& m_table;
    WorkerPool& m_workers;
    Patience m_patience;
    std::mutex m_mutex;
    unsigned m_calls = 0;
    std::map<InstanceId, unsigned> m_last; ///< the last call for it that is not done yet
};

} // namespace bulkhead::core

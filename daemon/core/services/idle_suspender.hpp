// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_links.hpp"
#include "core/services/domain_table.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace bulkhead::core {

class SnapshotService;
class WorkerPool;

/// Suspends app domains that were not used for as long as their definition says (DomainDefinition::idleSuspend), as
/// `domain suspend` does.
///
/// In use is a domain while a program runs in it that was begun through us (`run`, `exec`), or while a window is open
/// in it. Its start, the beginning and the end of a program, and each client that asks for its session or its windows
/// are uses as well: the time counts from the last of them. What runs in it by itself, and shows no window, is no use;
/// it is suspended with the domain, and goes on with it. A guest that we do not know anything of is taken to be in use.
///
/// Thread-safe. Time is that of a clock that stands still while the host sleeps.
class IdleSuspender {
public:
    using TimePoint = std::chrono::steady_clock::time_point;
    struct Patience {
        /// Between two looks; a domain is suspended so much late at most.
        std::chrono::milliseconds look{std::chrono::seconds(20)};
        /// Until a suspension that failed is tried again.
        std::chrono::milliseconds retry{std::chrono::minutes(10)};
    };
    IdleSuspender(DomainTable& table, GuestUses& uses, SnapshotService& snapshots, std::function<TimePoint()> now,
                  Patience patience)
        : m_table(table)
        , m_uses(uses)
        , m_snapshots(snapshots)
        , m_now(std::move(now))
        , m_patience(patience) {}

    /// Looks now and every Patience::look from a thread of `workers`.
    void begin(WorkerPool& workers);
    /// One look. Returns at once: suspensions are jobs of the domains' owners.
    void look();

private:
    struct Watched {
        std::uint64_t uses = 0;
        TimePoint usedAt;
        TimePoint notBefore; ///< the next try
        bool hasFailed = false;
        bool isSeen = false; ///< by the look that is under way
    };
    void lookAt(const DomainEntry& entry, TimePoint now);
    void suspend(const DomainEntry& entry, std::uint64_t uses);
    void onEnded(const DomainId& domain, const InstanceId& instance, const Status& suspended);

    DomainTable& m_table;
    GuestUses& m_uses;
    SnapshotService& m_snapshots;
    std::function<TimePoint()> m_now;
    Patience m_patience;
    std::mutex m_mutex; ///< guards m_watched
    std::map<InstanceId, Watched> m_watched;
};

} // namespace bulkhead::core

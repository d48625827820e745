// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/model/snapshot.hpp"
#include "core/ports/guest_links.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

namespace bulkhead::core {

class EmulatorMonitor;
class InstanceLauncher;
class LineageTable;
class WorkerPool;

/// Start, stop, disposables, and what is done when an emulator, a channel or a client goes away. Thread-safe.
///
/// What users ask for runs as jobs. What must happen all the same (clean-up after a death, removal of a disposable)
/// runs on a pool of its own and never waits there for anybody: a domain that is busy is looked at again a moment
/// later, so that one user's slow guests keep nobody else's from being cleaned up.
class LifecycleService final : public GuestLinkEvents {
public:
    struct StopOptions {
        bool force = false;
        std::chrono::milliseconds grace{10'000};
    };
    struct Patience {
        /// How long a channel that ended waits for the word that its emulator ended, which explains it.
        std::chrono::milliseconds settle{2000};
        /// Until a clean-up that failed is tried again.
        std::chrono::milliseconds retry{3000};
        /// Until a domain that is busy is looked at again.
        std::chrono::milliseconds lookAgain{100};
        /// How long a start or a forced stop waits for another operation on its domain.
        std::chrono::milliseconds busy{30'000};
        /// How long a guest that lives may take to answer on a new channel.
        std::chrono::milliseconds reconnect{10'000};
        /// A channel that is lost again within this is not made anew.
        std::chrono::milliseconds rest{10'000};
    };

    struct Pools {
        WorkerPool& cleanUps; ///< where nothing waits for guests
        WorkerPool& linkWork; ///< where lost channels are made anew: a guest may let that wait for Patience::reconnect
    };
    LifecycleService(DomainTable& table, DomainRepository& domains, InstanceRepository& instances, GuestLinks& links,
                     InstanceLauncher& launcher, EmulatorMonitor& monitor, LineageTable& lineage, JobService& jobs,
                     Pools pools, Patience patience);

    /// Called after a start that had to boot, though it was not asked to: for whoever makes warm images. From a job's
    /// thread. To be set before the first start.
    void whenBooted(std::function<void(const InstanceRecord&, const std::string& templateName)> told) {
        m_whenBooted = std::move(told);
    }

    /// What becomes of kept disposables; see KeptDisposables. To be set before the first start, and before the
    /// reconciler runs.
    struct Keeping {
        /// Soon, if still nothing runs in it then.
        std::function<void(const DomainId&)> suspend;
        /// What was kept of it, before its record goes.
        std::function<Status(const DomainId&)> forget;
    };
    void setKeeping(Keeping keeping) { m_keeping = std::move(keeping); }

    /// Takes a snapshot of a domain that does not run, for this reason; the caller holds its operation.
    using TakeSnapshot = std::function<Result<SnapshotId>(const DomainId&, std::string_view reason, const JobContext&)>;
    /// Who takes those that nobody asks for: of what a stop leaves, where the definition says so, and before a home is
    /// run with another version of its template for the first time. To be set before the first start.
    void setTakeSnapshot(TakeSnapshot take) { m_takeSnapshot = std::move(take); }

    /// `isCold`: boots, whatever memory there is to begin in. The job's result: StartResult.
    Result<JobId> start(const Caller& caller, const DomainId& id, bool isCold = false);
    /// The job's result: StopResult.
    Result<JobId> stop(const Caller& caller, const DomainId& id, StopOptions options);
    /// Begins to start a disposable that is in the table already (DomainService::createDisposable).
    Result<JobId> startDisposable(const Caller& caller, const DomainId& id, bool isCold = false);
    /// Ends the domain's instance now, if there is one; of a suspended one the memory is dropped (it stays in its
    /// snapshot). The caller holds the operation.
    Status endInstance(const DomainEntry& entry, StopOptions options);
    /// Ends an emulator whose last moment is the domain's head, in which it is suspended from now on; the caller holds
    /// the operation.
    Status endSuspended(const DomainEntry& entry);
    /// Starts the domain; the caller holds the operation. From its head's memory when it is suspended.
    Result<StartResult> startHeld(const DomainId& id, bool isCold, const JobContext& job);
    /// As startHeld(), from a node; `isCold`: without its memory.
    Result<StartResult> startFrom(const DomainId& id, const SnapshotRecord& node, bool isCold, const JobContext& job);
    /// Removes a disposable (instance, record, entry), soon and until it is done; a start that is under way is
    /// cancelled.
    void removeDisposable(const DomainId& id, const std::string& why);
    /// Something is about to be run in it: from now on a kept disposable is worth keeping.
    void noteUse(const DomainEntry& entry);
    /// Nothing runs in a disposable any more: it is removed, or suspended if it is to be kept.
    void endUse(const DomainEntry& entry, const std::string& why);
    /// For what could not be ended now (libvirtd away, a full disk): again and again, until it is done.
    void cleanUpLater(const DomainId& id);

    // Events: called from other threads, handled on the clean-up pool.
    void onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) override;
    void onWindowsChanged(const InstanceId& instance, bool areOpen) override;
    void onLinkLost(const InstanceId& instance, const LinkLoss& loss) override;
    void onEmulatorGone(const InstanceId& instance);
    /// A connection left the bus: its disposables that have run nothing yet go.
    void onClientLeft(const std::string& busName);

private:
    Result<JobResult> runStart(const DomainId& id, bool isCold, const JobContext& job);
    Result<StartResult> launch(const DomainEntry& entry, const std::optional<SnapshotRecord>& node, bool isCold,
                               const JobContext& job);
    void handleLostLink(const InstanceId& instance, const LinkLoss& loss);
    Status reconnect(const InstanceId& instance, const LinkLoss& loss);
    Result<JobResult> runStop(const DomainId& id, StopOptions options, const JobContext& job);
    Result<StartResult> launchPrepared(const DomainEntry& domain, const std::optional<SnapshotRecord>& node,
                                       bool isCold, const JobContext& job);
    std::string prepareVersion(const DomainEntry& domain, const std::optional<SnapshotRecord>& node,
                               const JobContext& job);
    void rememberVersion(const DomainEntry& domain, const TemplateVersion& version);
    [[nodiscard]] StopResult keepWhatIsLeft(const DomainId& id, const JobContext& job);
    void keepWhatIsLeftSoon(const DomainEntry& entry);
    void markSuspect(const SnapshotId& node, const std::string& why);
    void afterFailedStart(const DomainId& id, const Error& error);
    void cancelStart(const DomainId& id);

    /// `unlessItLives`: a kept one whose suspension was finished meanwhile stays.
    void tryToRemove(const DomainId& id, const std::string& why, bool unlessItLives);
    void beginRemoval(const DomainId& id, const std::string& why, bool unlessItLives);
    void tryToCleanUp(const DomainId& id);
    void goBack(const DomainEntry& entry);
    void failRunning(const InstanceId& instance, DomainEvent event, const std::string& reason);
    /// Ends what is left of an instance whose domain no longer runs; the caller holds the operation.
    Status cleanUp(const DomainEntry& entry);
    void rememberFailure(const DomainId& id, const std::string& reason);

    DomainTable& m_table;
    DomainRepository& m_domains;
    InstanceRepository& m_instances;
    GuestLinks& m_links;
    InstanceLauncher& m_launcher;
    EmulatorMonitor& m_monitor;
    LineageTable& m_lineage;
    JobService& m_jobs;
    WorkerPool& m_cleanUps;
    WorkerPool& m_linkWork;
    Patience m_patience;
    std::function<void(const InstanceRecord&, const std::string&)> m_whenBooted;
    Keeping m_keeping;
    TakeSnapshot m_takeSnapshot;
    std::mutex m_mutex; ///< guards the three below
    std::map<DomainId, std::stop_source> m_starts;
    std::set<DomainId> m_removals; ///< disposables whose removal is under way: asked for twice, done once
    std::map<InstanceId, std::chrono::steady_clock::time_point> m_reconnected;
};

} // namespace bulkhead::core

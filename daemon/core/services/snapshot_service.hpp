// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/model/definition_change.hpp"
#include "core/model/lineage.hpp"
#include "core/model/snapshot.hpp"
#include "core/ports/repositories.hpp"
#include "core/ports/snapshot_store.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"
#include "core/services/snapshot_taker.hpp"

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::core {

class DomainService;
class LifecycleService;
class LineageTable;

/// Snapshots as the owners of domains see them: take, list, remove, go back, fork, suspend. Every call checks the
/// caller; what belongs to others is NotFound. Thread-safe, blocking.
class SnapshotService {
public:
    struct Options {
        bool isDiskOnly = false; ///< of a running domain; a stopped one has no memory anyway
        std::string reason;      ///< the user's words; empty: "manual"
        std::string label;
    };
    struct RevertOptions {
        bool keepsPresent = true; ///< takes a snapshot of what is there now first
        bool isDiskOnly = false;  ///< leaves the memory of a full node out: the domain boots
    };
    struct ForkOptions {
        std::optional<std::string> label;  ///< none: as the source has it
        std::optional<std::string> egress; ///< none: as the source has it
        bool isDiskOnly = false;
    };

    SnapshotService(SnapshotStore& store, DomainTable& table, DomainService& domains, LifecycleService& lifecycle,
                    LineageTable& lineage, SnapshotTaker& taker, JobService& jobs);

    /// The job's result: SnapshotResult.
    Result<JobId> create(const Caller& caller, const DomainId& domain, const Options& options);
    /// The caller's, the oldest first; also those of domains that are gone. Root: everybody's.
    Result<std::vector<SnapshotRecord>> list(const Caller& caller);
    Result<SnapshotRecord> find(const Caller& caller, const SnapshotId& id);
    Result<SnapshotRecord> setPinned(const Caller& caller, const SnapshotId& id, bool isPinned);
    Result<SnapshotRecord> setLabel(const Caller& caller, const SnapshotId& id, const std::string& label);
    /// `isCascade`: with all below it. See nodesToRemove().
    Result<JobId> remove(const Caller& caller, const SnapshotId& id, bool isCascade);
    /// Makes the node's domain what it was then. One that runs goes on from there; one that is stopped is suspended in
    /// the node's memory, or stays stopped. The job's result: RevertResult.
    Result<JobId> revert(const Caller& caller, const SnapshotId& id, const RevertOptions& options);
    /// A new domain that begins where the node, or the domain as it is now, stands. It is not started. The job's
    /// result: its DomainId.
    Result<JobId> fork(const Caller& caller, const SnapshotId& from, const std::string& name,
                       const ForkOptions& options);
    Result<JobId> forkNow(const Caller& caller, const DomainId& from, const std::string& name,
                          const ForkOptions& options);
    struct DisposableOptions {
        bool isDiskOnly = false; ///< leaves the memory of a full node out: it boots
        bool isKept = false;     ///< see KeptDisposables
    };
    /// A disposable that begins where the node stands, which stays for as long; LifecycleService starts it.
    Result<DomainId> forkDisposable(const Caller& caller, const SnapshotId& from, const DisposableOptions& options);
    /// A disposable of the template "minimal" that has the disks of both nodes, as far as they differ, to look into;
    /// LifecycleService starts it. What it finds only it can say: the caller runs a program in it. The nodes stay for
    /// as long. InvalidArgument when they have nothing in common.
    Result<DomainId> inspect(const Caller& caller, const SnapshotId& first, const SnapshotId& second);
    /// A full snapshot, and the domain is stopped; its next start goes on from there. WrongState unless it runs, and
    /// for disposables that are not to be kept.
    Result<JobId> suspend(const Caller& caller, const DomainId& domain);
    /// Of a kept disposable, as its owner would, unless something runs in it by then.
    Result<JobId> suspendUnused(const DomainId& disposable);
    /// True: nothing is done in the domain now.
    using IsUnused = std::function<bool(const DomainEntry&)>;
    /// Of a domain that was not used for a while, as its owner would, if `isUnused` still says so then; no program
    /// begins in it meanwhile. `ended` is told what came of it.
    Result<JobId> suspendIdle(const DomainId& domain, const IsUnused& isUnused,
                              std::function<void(const Status&)> ended);
    /// Removes what nobody needs any more, also of disposables that are gone. After domains were removed; `leaving`:
    /// one that is about to be.
    void collect(const std::optional<DomainId>& leaving = {});
    /// Removes what a kept disposable was suspended in, unless somebody else needs or wants it.
    Status forget(const DomainId& disposable);
    /// One that nobody asked for, of the home of a domain that does not run; the caller holds the operation. Older ones
    /// go, see overRetention().
    Result<SnapshotId> keepHome(const DomainId& domain, std::string_view reason, const JobContext& job);
    /// Ends the domain at once and goes back to its last snapshot, without keeping what is there now. WrongState when
    /// there is none.
    Result<JobId> discard(const Caller& caller, const DomainId& domain);

private:
    Result<DomainEntry> owned(const Caller& caller, const DomainId& domain);
    Result<SnapshotRecord> usable(const SnapshotId& id, bool needsMemory);
    Result<SnapshotTaker::Taken> takeNow(const DomainId& domain, const SnapshotTaker::Wish& wish,
                                         const JobContext& job);
    std::size_t depthOf(const DomainEntry& entry);
    [[nodiscard]] std::vector<SnapshotId> suspendedIn() const;
    [[nodiscard]] std::vector<SnapshotId> livedIn() const;
    [[nodiscard]] std::vector<SnapshotId> heads(const std::optional<DomainId>& butOf) const;
    void forgetGone(const std::optional<DomainId>& leaving = {});
    void prune(const DomainId& domain, const std::optional<SnapshotId>& kept = {});
    Status moveTo(const SnapshotRecord& node, bool inMemory, RevertResult& result, const JobContext& job);
    Result<JobResult> runCreate(const DomainId& domain, const Options& options, const JobContext& job);
    Result<JobResult> runRevert(const SnapshotId& id, const RevertOptions& options, const JobContext& job);
    Result<JobResult> runFork(const Caller& caller, const SnapshotId& from, const std::string& name,
                              const ForkOptions& options, const JobContext& job);
    Result<JobResult> runSuspend(const DomainId& domain, const IsUnused& isUnused, const JobContext& job);

    SnapshotStore& m_store;
    DomainTable& m_table;
    DomainService& m_domains;
    LifecycleService& m_lifecycle;
    LineageTable& m_lineage;
    SnapshotTaker& m_taker;
    JobService& m_jobs;
    RetentionRule m_retention;
    /// What is to go is found out and taken out of sight in one piece. Never held while files are erased: calls of
    /// users wait for it.
    std::mutex m_removing;
    /// Disposables that this daemon has removed. Of others it may be the database that was lost.
    std::set<DomainId> m_gone;
};

} // namespace bulkhead::core

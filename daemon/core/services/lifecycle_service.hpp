// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/ports/guest_links.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <string>

namespace bulkhead::core {

class EmulatorMonitor;
class InstanceLauncher;
class WorkerPool;

/// How long LifecycleService waits for what.
struct LifecyclePatience {
    /// How long a channel that ended waits for the word that its emulator ended, which explains it.
    std::chrono::milliseconds settle = std::chrono::seconds(2);
    /// How long a guest that lives may take to answer on a new channel.
    std::chrono::milliseconds reconnect = std::chrono::seconds(10);
    /// A channel that is lost again within this is not made anew.
    std::chrono::milliseconds rest = std::chrono::seconds(10);
};

/// Start, stop, disposables, and what is done when an emulator, a channel or a client goes away. Thread-safe.
class LifecycleService final : public GuestLinkEvents {
public:
    struct StopOptions {
        bool force = false;
        std::chrono::milliseconds grace{10'000};
    };

    LifecycleService(DomainTable& table, DomainRepository& domains, InstanceRepository& instances, GuestLinks& links,
                     InstanceLauncher& launcher, EmulatorMonitor& monitor, JobService& jobs, WorkerPool& workers,
                     LifecyclePatience patience = {});

    Result<JobId> start(const Caller& caller, const DomainId& id);
    Result<JobId> stop(const Caller& caller, const DomainId& id, StopOptions options);
    /// Begins to start a disposable that is in the table already (DomainService::createDisposable).
    JobId startDisposable(const Caller& caller, const DomainId& id);
    /// Ends the domain's instance now, if there is one; the caller holds the operation.
    Status endInstance(const DomainEntry& entry, StopOptions options);
    /// Removes a disposable: instance, record, entry.
    void removeDisposable(const DomainId& id, const std::string& why);

    // Events: called from other threads, handled on a worker.
    void onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) override;
    void onLinkLost(const InstanceId& instance, const LinkLoss& loss) override;
    void onEmulatorGone(const InstanceId& instance);
    /// A connection left the bus: its disposables that have run nothing yet go.
    void onClientLeft(const std::string& busName);

private:
    Result<JobResult> runStart(const DomainId& id, const JobContext& job);
    void handleLostLink(const InstanceId& instance, const LinkLoss& loss);
    Status reconnect(const DomainId& id, const InstanceId& instance, const LinkLoss& loss);
    void failRunning(const InstanceId& instance, DomainEvent event, const std::string& reason);

    DomainTable& m_table;
    DomainRepository& m_domains;
    InstanceRepository& m_instances;
    GuestLinks& m_links;
    InstanceLauncher& m_launcher;
    EmulatorMonitor& m_monitor;
    JobService& m_jobs;
    WorkerPool& m_workers;
    LifecyclePatience m_patience;
    std::mutex m_mutex;
    std::map<InstanceId, std::chrono::steady_clock::time_point> m_reconnected;
};

} // namespace bulkhead::core

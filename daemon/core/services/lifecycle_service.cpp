// SPDX-License-Identifier: Apache-2.0
#include "core/services/lifecycle_service.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/kept_disposables.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/worker_pool.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

constexpr std::chrono::milliseconds kFirstLook{200};
/// What the guest may need behind its grace: the last KILL, the sync of what it had not written, the power off.
constexpr std::chrono::seconds kPowerOffTime{30};

} // namespace

LifecycleService::LifecycleService(DomainTable& table, DomainRepository& domains, InstanceRepository& instances,
                                   GuestLinks& links, InstanceLauncher& launcher, EmulatorMonitor& monitor,
                                   LineageTable& lineage, JobService& jobs, Pools pools, Patience patience)
    : m_table(table)
    , m_domains(domains)
    , m_instances(instances)
    , m_links(links)
    , m_launcher(launcher)
    , m_monitor(monitor)
    , m_lineage(lineage)
    , m_jobs(jobs)
    , m_cleanUps(pools.cleanUps)
    , m_linkWork(pools.linkWork)
    , m_patience(patience) {}

// ---- what users ask for --------------------------------------------------------------------------------------------

Result<JobId> LifecycleService::start(const Caller& caller, const DomainId& id, bool isCold) {
    const auto entry = m_table.find(id);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (entry->state == DomainState::Running) {
        return m_jobs.finished("start", caller.uid, id);
    }
    return m_jobs.begin("start", caller.uid,
                        [this, id, isCold](const JobContext& job) { return runStart(id, isCold, job); });
}

Result<JobId> LifecycleService::startDisposable(const Caller& caller, const DomainId& id, bool isCold) {
    auto job = m_jobs.begin("start-disposable", caller.uid, [this, id, isCold](const JobContext& context) {
        auto started = runStart(id, isCold, context);
        if (!started) {
            removeDisposable(id, "its start failed");
        }
        return started;
    });
    if (!job) {
        removeDisposable(id, "too many jobs of its owner");
    }
    return job;
}

Result<JobResult> LifecycleService::runStart(const DomainId& id, bool isCold, const JobContext& job) {
    // A stop or a clean-up that is under way ends soon; whoever wants a start wants it after that.
    const auto operation = m_table.beginOperation(id, "start", m_patience.busy);
    if (!operation) {
        return fail(operation.error());
    }
    return startHeld(id, isCold, job).map([](StartResult&& result) { return JobResult(std::move(result)); });
}

Result<StartResult> LifecycleService::startHeld(const DomainId& id, bool isCold, const JobContext& job) {
    const auto entry = m_table.find(id);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    const bool isDisposable = entry->record.kind == DomainKind::Disposable;
    if (!entry->head.isSuspended && !entry->head.isAtVersion && !(isDisposable && entry->head.node)) {
        return launch(*entry, std::nullopt, isCold, job);
    }
    const auto node = entry->head.node ? m_lineage.find(*entry->head.node) : std::nullopt;
    if (!node && isDisposable) {
        return fail(ErrorCode::NotFound, "the snapshot that it was to begin in is gone");
    }
    if (entry->head.isAtVersion &&
        (!node || node->templateName != entry->definition.templateName || !m_launcher.hasVersionOf(*node))) {
        auto started = launch(*entry, std::nullopt, isCold, job);
        if (started) {
            started->note += std::string(started->note.empty() ? "" : "; ") +
                             "the version of its template that it was to start with is gone, so it started with the "
                             "newest";
        }
        return started;
    }
    if (node && !entry->head.isSuspended) {
        return launch(*entry, node, true, job); // a disposable has no home of its own above the node's
    }
    if (!node) {
        // Its home lies above the node's layers, which are there as long as it does.
        auto started = launch(*entry, std::nullopt, isCold, job);
        if (started) {
            started->note = "the snapshot that it was suspended in is gone, so it booted";
        }
        return started;
    }
    if (node->suspect.empty() || isCold) {
        return launch(*entry, node, isCold, job);
    }
    auto booted = launch(*entry, node, true, job);
    if (booted) {
        booted->note = "its snapshot cannot be trusted (" + node->suspect + "), so it booted";
    }
    return booted;
}

Result<StartResult> LifecycleService::startFrom(const DomainId& id, const SnapshotRecord& node, bool isCold,
                                                const JobContext& job) {
    const auto entry = m_table.find(id);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    return launch(*entry, node, isCold, job);
}

Result<StartResult> LifecycleService::launch(const DomainEntry& domain, const std::optional<SnapshotRecord>& node,
                                             bool isCold, const JobContext& job) {
    const DomainId& id = domain.record.id;
    if (domain.state == DomainState::Running) {
        return StartResult{id, false, {}};
    }
    const std::string name = "domain \"" + domain.record.name + "\"";
    if (domain.record.phase != DomainRecord::Phase::Present) {
        return fail(ErrorCode::WrongState, name + " is being removed");
    }
    if (!domain.definitionProblem.empty()) {
        return fail(ErrorCode::InvalidArgument, name + " cannot start: " + domain.definitionProblem);
    }
    if (domain.instance && !hasEmulator(domain.state)) {
        if (auto cleaned = cleanUp(domain); !cleaned) {
            return fail(cleaned.error().in("what is left of the last run of " + name));
        }
    }
    if (!nextState(domain.state, DomainEvent::StartRequested)) {
        const bool isHeld = domain.instance && domain.instance->isHeld;
        return fail(ErrorCode::WrongState,
                    name + " is " + std::string(nameOf(domain.state)) +
                        (isHeld ? "; let it go on: bulkhead domain unpause " + domain.record.name : std::string()));
    }
    const std::string note = prepareVersion(domain, node, job);
    if (job.cancelToken().stop_requested()) {
        return fail(ErrorCode::Cancelled, "cancelled");
    }
    const auto prepared = m_table.find(id); // its head may have moved
    if (!prepared) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    return launchPrepared(*prepared, node, isCold, job).map([&](StartResult&& result) {
        result.note += result.note.empty() || note.empty() ? note : "; " + note;
        return std::move(result);
    });
}

/// Before a home is run with another version of its template than it was run with last: it is kept as it is, and what
/// it is run with is recorded before it is, since its programs may have changed it when a start fails.
std::string LifecycleService::prepareVersion(const DomainEntry& domain, const std::optional<SnapshotRecord>& node,
                                             const JobContext& job) {
    const auto version = m_launcher.versionFor(domain, node);
    const TemplateVersion& ran = domain.record.ranWith;
    if (!version || *version == ran || domain.record.kind == DomainKind::Disposable) {
        return {};
    }
    std::string note;
    // From a node it begins as that is.
    if (!node && !ran.version.empty() && m_takeSnapshot) {
        job.report("Keeping its home as it is before the upgrade");
        if (const auto taken = m_takeSnapshot(domain.record.id, kReasonBeforeUpgrade, job); !taken) {
            log::warning("a domain is upgraded without a snapshot of what it was",
                         {{"DOMAIN", domain.record.id.text()}, {"ERROR", taken.error().message}});
            note = "it starts with a newer template, and what it was before could not be kept (" +
                   taken.error().message + ")";
        }
    }
    if (!job.cancelToken().stop_requested()) {
        rememberVersion(domain, *version);
    }
    return note;
}

void LifecycleService::rememberVersion(const DomainEntry& domain, const TemplateVersion& version) {
    const DomainId& id = domain.record.id;
    if (auto noted = m_domains.setRanWith(id, version); !noted) {
        log::warning("it cannot be recorded which template a domain runs with",
                     {{"DOMAIN", id.text()}, {"ERROR", noted.error().message}});
    }
    m_table.setRanWith(id, version);
}

/// The domain is as prepareVersion() left it.
Result<StartResult> LifecycleService::launchPrepared(const DomainEntry& domain,
                                                     const std::optional<SnapshotRecord>& node, bool isCold,
                                                     const JobContext& job) {
    const DomainId& id = domain.record.id;
    const std::string name = "domain \"" + domain.record.name + "\"";
    if (auto applied = m_table.apply(id, DomainEvent::StartRequested); !applied) {
        return fail(applied.error());
    }

    // Cancelled by the job's owner, or because the domain is to go.
    std::stop_source cancel;
    const std::stop_callback byJob(job.cancelToken(), [&cancel] { cancel.request_stop(); });
    {
        const std::lock_guard lock(m_mutex);
        m_starts[id] = cancel;
    }
    const ScopeGuard forget([&] {
        const std::lock_guard lock(m_mutex);
        m_starts.erase(id);
    });
    const auto launched = m_launcher.launch(domain, {.mayUseImage = !isCold, .node = node},
                                            JobContext(cancel.get_token(), job.progress()));
    if (node && launched && launched->isImageBroken) {
        markSuspect(node->id, launched->imageFailure->message);
    }
    if (!launched) {
        afterFailedStart(id, launched.error());
        return fail(launched.error());
    }
    // Only now, since until now nobody was told that it runs: a daemon that dies before begins from the node again.
    if (domain.head.isSuspended || domain.head.isAtVersion) {
        if (auto cleared = m_lineage.setHead(id, {domain.head.node, false}); !cleared) {
            // Were it to run, its next start would go back to the node, and what it had written would be lost.
            if (const auto now = m_table.find(id); now && now->instance) {
                [[maybe_unused]] const auto ended = cleanUp(*now); // else later: afterFailedStart()
            }
            afterFailedStart(id, cleared.error());
            return fail(cleared.error().in("it cannot be recorded that " + name + " runs"));
        }
    }
    if (auto applied = m_table.apply(id, DomainEvent::AgentReady); !applied) {
        return fail(applied.error());
    }
    if (!domain.record.lastFailure.empty()) {
        rememberFailure(id, {});
    }
    StartResult result{id, launched->isWarm, {}};
    if (launched->imageFailure) {
        result.note =
            std::string(node ? "it did not go on in its snapshot's memory" : "it did not start from its warm image") +
            ", so it booted (" + launched->imageFailure->message + ")";
    }
    if (!launched->isWarm && !isCold && !node && m_whenBooted) {
        if (const auto now = m_table.find(id); now && now->instance) {
            m_whenBooted(*now->instance, domain.definition.templateName);
        }
    }
    return result;
}

void LifecycleService::markSuspect(const SnapshotId& node, const std::string& why) {
    const auto marked =
        m_lineage.edit(node, [&](SnapshotRecord& record) { record.suspect = std::string(kSuspectMemory) + why; });
    if (!marked) {
        log::warning("a snapshot cannot be marked as suspect",
                     {{"SNAPSHOT", node.text()}, {"ERROR", marked.error().message}});
    }
}

void LifecycleService::afterFailedStart(const DomainId& id, const Error& error) {
    // A start that was taken back is no failure of the domain's.
    if (error.code == ErrorCode::Cancelled) {
        [[maybe_unused]] const auto told = m_table.apply(id, DomainEvent::StartCancelled);
    } else {
        [[maybe_unused]] const auto told = m_table.apply(id, DomainEvent::StartFailed, error.message);
        rememberFailure(id, error.message);
    }
    // Its memory is still there for the next try.
    if (const auto now = m_table.find(id); now && now->head.isSuspended && now->state == DomainState::Stopped) {
        [[maybe_unused]] const auto kept = m_table.apply(id, DomainEvent::MemoryKept);
    }
    if (const auto entry = m_table.find(id); entry && entry->instance) {
        cleanUpLater(id);
    }
}

void LifecycleService::cancelStart(const DomainId& id) {
    std::stop_source cancel(std::nostopstate);
    {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_starts.find(id); found != m_starts.end()) {
            cancel = found->second;
        }
    }
    // Outside the lock: stop callbacks run here, in this thread.
    cancel.request_stop();
}

Result<JobId> LifecycleService::stop(const Caller& caller, const DomainId& id, StopOptions options) {
    const auto entry = m_table.find(id);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (entry->state == DomainState::Stopped) {
        return m_jobs.finished("stop", caller.uid, StopResult{id, {}, {}});
    }
    return m_jobs.begin("stop", caller.uid,
                        [this, id, options](const JobContext& job) { return runStop(id, options, job); });
}

Result<JobResult> LifecycleService::runStop(const DomainId& id, StopOptions options, const JobContext& job) {
    job.report("Shutting down");
    if (options.force) {
        cancelStart(id);
    }
    {
        const auto operation =
            m_table.beginOperation(id, "stop", options.force ? m_patience.busy : std::chrono::milliseconds(0));
        if (!operation) {
            return fail(operation.error());
        }
        const auto entry = m_table.find(id);
        if (!entry) {
            return fail(ErrorCode::NotFound, "no such domain");
        }
        if (!options.force && entry->instance && entry->instance->isHeld &&
            entry->record.kind != DomainKind::Disposable) {
            return fail(
                ErrorCode::WrongState,
                "domain \"" + entry->record.name +
                    "\" is paused, so it cannot shut down in order; let it go on first (bulkhead domain unpause " +
                    entry->record.name + "), or cut its power (bulkhead domain stop --force " + entry->record.name +
                    "), which loses what it has not written to its disks");
        }
        if (entry->record.kind != DomainKind::Disposable) {
            if (auto ended = endInstance(*entry, options); !ended) {
                return fail(ended.error());
            }
            return JobResult(options.force || !entry->instance ? StopResult{id, {}, {}} : keepWhatIsLeft(id, job));
        }
    }
    removeDisposable(id, "stopped by its owner");
    return JobResult(id);
}

/// After its instance has ended, unless somebody wanted that at any price. A failure does not undo the stop.
StopResult LifecycleService::keepWhatIsLeft(const DomainId& id, const JobContext& job) {
    StopResult result{id, {}, {}};
    const auto now = m_table.find(id);
    if (!now || now->instance || now->record.kind != DomainKind::App || !now->definition.snapshotOnStop ||
        !m_takeSnapshot) {
        return result;
    }
    const auto taken = m_takeSnapshot(id, kReasonOnStop, job);
    if (taken) {
        result.snapshot = *taken;
    } else {
        log::warning("a domain has stopped, but its home could not be kept",
                     {{"DOMAIN", id.text()}, {"ERROR", taken.error().message}});
        result.note =
            "it is stopped, but the snapshot that each stop leaves was not taken (" + taken.error().message + ")";
    }
    return result;
}

Status LifecycleService::endInstance(const DomainEntry& entry, StopOptions options) {
    const DomainId& id = entry.record.id;
    if (entry.state == DomainState::Failed) {
        rememberFailure(id, {});
    }
    if (!entry.instance) {
        if (entry.head.isSuspended) {
            if (auto dropped = m_lineage.setHead(id, {entry.head.node, false}); !dropped) {
                return dropped;
            }
        }
        if (entry.state == DomainState::Failed) {
            return m_table.apply(id, DomainEvent::FailureDismissed);
        }
        return entry.state == DomainState::Suspended ? m_table.apply(id, DomainEvent::MemoryDropped) : Status{};
    }
    const InstanceRecord instance = *entry.instance;
    if (entry.head.isSuspended) {
        // It has run since, so its next start must not go back; the record was not to be had when it began.
        if (auto cleared = m_lineage.setHead(id, {entry.head.node, false}); !cleared) {
            log::error("it cannot be recorded that a domain is not suspended any more",
                       {{"DOMAIN", id.text()}, {"ERROR", cleared.error().message}});
            m_table.setHead(id, {entry.head.node, false});
        }
    }
    // The intent first: a daemon that dies now goes on with it at its next start. But a full disk must not keep
    // anything from being stopped: what is recorded as running and does not run is settled by the reconciler as well.
    if (auto recorded = m_instances.setPhase(instance.id, InstancePhase::Stopping); !recorded) {
        log::warning("a stop cannot be recorded", {{"DOMAIN", id.text()}, {"ERROR", recorded.error().message}});
    }
    if (entry.state == DomainState::Running || entry.state == DomainState::Paused) {
        if (auto applied = m_table.apply(id, DomainEvent::StopRequested); !applied) {
            return applied;
        }
    }
    // A disposable's disks are thrown away: nothing to shut down in order for. A paused guest cannot.
    const bool isOrderly =
        !options.force && entry.record.kind != DomainKind::Disposable && entry.state == DomainState::Running;
    if (isOrderly) {
        if (auto asked = m_links.shutdown(instance.id, options.grace); !asked) {
            log::warning("the guest could not be asked to power off; cutting the power",
                         {{"DOMAIN", id.text()}, {"ERROR", asked.error().message}});
        } else if (!m_monitor.waitGone(instance.id, options.grace + kPowerOffTime)) {
            log::warning("the guest did not power off in time; cutting the power", {{"DOMAIN", id.text()}});
        }
    }
    if (auto ended = cleanUp(entry); !ended) {
        cleanUpLater(id);
        return fail(ended.error().in("stopping domain \"" + entry.record.name + "\""));
    }
    return m_table.apply(id, entry.state == DomainState::Failed ? DomainEvent::FailureDismissed
                                                                : DomainEvent::EmulatorGone);
}

Status LifecycleService::endSuspended(const DomainEntry& entry) {
    const DomainId& id = entry.record.id;
    if (auto recorded = m_instances.setPhase(entry.instance->id, InstancePhase::Stopping); !recorded) {
        log::warning("a stop cannot be recorded", {{"DOMAIN", id.text()}, {"ERROR", recorded.error().message}});
    }
    if (auto applied = m_table.apply(id, DomainEvent::StopRequested); !applied) {
        return applied;
    }
    if (auto ended = cleanUp(entry); !ended) {
        cleanUpLater(id);
        return fail(ended.error().in("suspending domain \"" + entry.record.name + "\""));
    }
    return m_table.apply(id, DomainEvent::EmulatorGone).and_then([&] {
        return m_table.apply(id, DomainEvent::MemoryKept);
    });
}

// ---- what must happen all the same ---------------------------------------------------------------------------------

Status LifecycleService::cleanUp(const DomainEntry& entry) {
    if (auto ended = m_launcher.tearDown(*entry.instance, InstanceLauncher::keptHomeOf(entry)); !ended) {
        return ended;
    }
    m_table.setInstance(entry.record.id, std::nullopt);
    return {};
}

void LifecycleService::rememberFailure(const DomainId& id, const std::string& reason) {
    if (auto kept = m_domains.setLastFailure(id, reason); !kept) {
        log::error("cannot record why a domain failed", {{"DOMAIN", id.text()}, {"ERROR", kept.error().message}});
    }
}

void LifecycleService::removeDisposable(const DomainId& id, const std::string& why) {
    beginRemoval(id, why, false);
}

void LifecycleService::beginRemoval(const DomainId& id, const std::string& why, bool unlessItLives) {
    {
        const std::lock_guard lock(m_mutex);
        if (!m_removals.insert(id).second) {
            return;
        }
    }
    m_cleanUps.post([this, id, why, unlessItLives] { tryToRemove(id, why, unlessItLives); });
}

void LifecycleService::tryToRemove(const DomainId& id, const std::string& why, bool unlessItLives) {
    const auto again = [&](std::chrono::milliseconds delay) {
        m_cleanUps.postAfter(delay, [this, id, why, unlessItLives] { tryToRemove(id, why, unlessItLives); });
    };
    const auto done = [&] {
        const std::lock_guard lock(m_mutex);
        m_removals.erase(id);
    };
    cancelStart(id);
    const auto operation = m_table.beginOperation(id, "removal");
    if (!operation) {
        return operation.error().code == ErrorCode::NotFound ? done() : again(m_patience.lookAgain);
    }
    const auto entry = m_table.find(id);
    if (!entry) {
        return done();
    }
    if (unlessItLives && outlivesEmulator(*entry, m_lineage)) {
        if (entry->instance) {
            m_cleanUps.post(
                [this, instance = entry->instance->id, why] { failRunning(instance, DomainEvent::EmulatorGone, why); });
        }
        return done();
    }
    m_table.markRemoving(id);
    if (auto marked = m_domains.setPhase(id, DomainRecord::Phase::Removing); !marked) {
        log::warning("a removal cannot be recorded", {{"DOMAIN", id.text()}, {"ERROR", marked.error().message}});
    }
    const auto removed = (entry->instance ? cleanUp(*entry) : Status{})
                             .and_then([&] { return m_keeping.forget ? m_keeping.forget(id) : Status{}; })
                             .and_then([&] { return m_domains.remove(id); });
    if (!removed) {
        log::error("a disposable could not be removed whole; it is tried again",
                   {{"DOMAIN", id.text()}, {"ERROR", removed.error().message}});
        return again(m_patience.retry);
    }
    log::info("disposable removed", {{"DOMAIN", id.text()}, {"WHY", why}});
    m_table.erase(id);
    done();
}

void LifecycleService::noteUse(const DomainEntry& entry) {
    if (entry.record.isKept && entry.record.ranWith.version.empty() && entry.instance) {
        rememberVersion(entry, {entry.definition.templateName, entry.instance->templateVersion});
    }
}

void LifecycleService::endUse(const DomainEntry& entry, const std::string& why) {
    if (!entry.record.isKept) {
        removeDisposable(entry.record.id, why);
    } else if (m_keeping.suspend) {
        m_keeping.suspend(entry.record.id);
    }
}

/// Before its instance ends: what that wrote is lost with it, and the next start goes on where it was suspended last.
void LifecycleService::goBack(const DomainEntry& entry) {
    const DomainId& id = entry.record.id;
    if (auto back = m_lineage.setHead(id, {entry.head.node, true}); !back) {
        log::error("it cannot be recorded that a kept disposable goes back to its snapshot",
                   {{"DOMAIN", id.text()}, {"ERROR", back.error().message}});
        m_table.setHead(id, {entry.head.node, true});
    }
}

void LifecycleService::cleanUpLater(const DomainId& id) {
    m_cleanUps.postAfter(m_patience.retry, [this, id] { tryToCleanUp(id); });
}

void LifecycleService::tryToCleanUp(const DomainId& id) {
    const auto operation = m_table.beginOperation(id, "clean-up");
    if (!operation) {
        if (operation.error().code != ErrorCode::NotFound) {
            m_cleanUps.postAfter(m_patience.lookAgain, [this, id] { tryToCleanUp(id); });
        }
        return;
    }
    const auto entry = m_table.find(id);
    const bool isLeftOver =
        entry && entry->instance && (entry->state == DomainState::Stopping || !hasEmulator(entry->state));
    if (!isLeftOver) {
        return;
    }
    if (auto ended = cleanUp(*entry); !ended) {
        cleanUpLater(id);
        return;
    }
    log::notice("what was left of a domain is cleaned up", {{"DOMAIN", id.text()}});
    if (entry->state == DomainState::Stopping) {
        [[maybe_unused]] const auto told = m_table.apply(id, DomainEvent::EmulatorGone);
        if (entry->head.isSuspended) {
            [[maybe_unused]] const auto kept = m_table.apply(id, DomainEvent::MemoryKept);
        }
    }
}

void LifecycleService::failRunning(const InstanceId& instance, DomainEvent event, const std::string& reason) {
    const auto found = m_table.findByInstance(instance);
    if (!found) {
        return;
    }
    const DomainId id = found->record.id;
    const bool isGone = found->record.kind == DomainKind::Disposable && !outlivesEmulator(*found, m_lineage);
    // A start may go on without that emulator; it is asked for again.
    if (isGone && found->state != DomainState::Starting) {
        beginRemoval(id, reason, true);
        return;
    }
    const auto operation = m_table.beginOperation(id, "clean-up");
    if (!operation) {
        m_cleanUps.postAfter(m_patience.lookAgain,
                             [this, instance, event, reason] { failRunning(instance, event, reason); });
        return;
    }
    const auto entry = m_table.find(id);
    // An operation that was under way (a stop, a failed start) has dealt with it.
    if (!entry || !entry->instance || entry->instance->id != instance) {
        return;
    }
    if (entry->record.kind == DomainKind::Disposable && !outlivesEmulator(*entry, m_lineage)) {
        beginRemoval(id, reason, true);
        return;
    }
    if (entry->state == DomainState::Running || entry->state == DomainState::Paused) {
        log::warning("domain failed", {{"DOMAIN", id.text()}, {"INSTANCE", instance.text()}, {"REASON", reason}});
        rememberFailure(id, reason);
        [[maybe_unused]] const auto told = m_table.apply(id, event, reason);
    }
    if (outlivesEmulator(*entry, m_lineage)) {
        goBack(*entry);
    }
    if (auto ended = cleanUp(*entry); !ended) {
        log::error("cleaning up after a failed domain did not end well; it is tried again",
                   {{"DOMAIN", id.text()}, {"ERROR", ended.error().message}});
        cleanUpLater(id);
        return;
    }
    // A guest that powered off cannot be told from one that crashed; what it leaves is its owner's either way.
    if (event == DomainEvent::EmulatorGone && entry->definition.snapshotOnStop) {
        keepWhatIsLeftSoon(*entry);
    }
}

/// As a job of the owner's: it reads what was written since the last snapshot, and nothing here waits for that.
void LifecycleService::keepWhatIsLeftSoon(const DomainEntry& entry) {
    const auto job = m_jobs.begin("snapshot", entry.record.owner,
                                  [this, id = entry.record.id](const JobContext& context) -> Result<JobResult> {
                                      const auto operation = m_table.beginOperation(id, "snapshot", m_patience.busy);
                                      if (!operation) {
                                          return fail(operation.error());
                                      }
                                      return JobResult(keepWhatIsLeft(id, context));
                                  });
    if (!job) {
        log::warning("the home of a domain that ended by itself could not be kept",
                     {{"DOMAIN", entry.record.id.text()}, {"ERROR", job.error().message}});
    }
}

// ---- events --------------------------------------------------------------------------------------------------------

void LifecycleService::onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) {
    const auto entry = m_table.findByInstance(instance);
    if (!entry || entry->record.kind != DomainKind::Disposable || remaining > 0 || entry->hasWindows) {
        return; // one that its windows carry ends with those
    }
    log::info("program ended", {{"INSTANCE", instance.text()}, {"EXEC", std::to_string(exec)}});
    endUse(*entry, "its program ended");
}

void LifecycleService::onWindowsChanged(const InstanceId& instance, bool areOpen) {
    const auto entry = m_table.findByInstance(instance);
    if (!entry || entry->record.kind != DomainKind::Disposable) {
        return;
    }
    m_table.setHasWindows(entry->record.id, areOpen);
    if (areOpen && entry->record.isKept) {
        m_cleanUps.post([this, entry = *entry] { noteUse(entry); });
    }
    // A program that still runs is waited for: onExecFinished().
    if (!areOpen && m_links.runningExecs(instance) == 0) {
        endUse(*entry, "its last window was closed");
    }
}

void LifecycleService::onLinkLost(const InstanceId& instance, const LinkLoss& loss) {
    // A line that ended because the emulator ended is told by onEmulatorGone(), mostly at once.
    m_linkWork.postAfter(std::min(m_patience.settle, kFirstLook),
                         [this, instance, loss] { handleLostLink(instance, loss); });
}

void LifecycleService::handleLostLink(const InstanceId& instance, const LinkLoss& loss) {
    const auto found = m_table.findByInstance(instance);
    if (!found || !m_monitor.isAlive(instance)) {
        return;
    }
    const DomainId& id = found->record.id;
    std::string reason = loss.reason;
    if (!loss.isViolation && found->instance && found->instance->isHeld) {
        // A guest that stands still cannot answer on a new one. Its owner lets it go on, or ends it.
        m_linkWork.postAfter(m_patience.settle, [this, instance, loss] { handleLostLink(instance, loss); });
        return;
    }
    if (!loss.isViolation) {
        const bool hadPrograms = m_links.runningExecs(instance) > 0;
        if (found->record.kind == DomainKind::Disposable && hadPrograms && !found->record.isKept) {
            removeDisposable(id, "the channel to its program was lost: " + loss.reason);
            return;
        }
        const auto operation = m_table.beginOperation(id, "a new channel");
        if (!operation) {
            m_linkWork.postAfter(m_patience.lookAgain, [this, instance, loss] { handleLostLink(instance, loss); });
            return;
        }
        const auto entry = m_table.find(id);
        if (!entry || !entry->instance || entry->instance->id != instance || !hasEmulator(entry->state)) {
            return; // another operation has ended it
        }
        const auto reconnected = reconnect(instance, loss);
        if (reconnected) {
            if (entry->record.isKept && hadPrograms) {
                endUse(*entry, "the channel to its program was lost"); // the guest lives, and so may the program
            }
            return;
        }
        reason = reconnected.error().message;
    }
    m_cleanUps.postAfter(m_patience.settle, [this, instance, reason] {
        if (m_monitor.isAlive(instance)) {
            failRunning(instance, DomainEvent::ChannelLost, reason);
        }
    });
}

/// The caller holds the operation.
Status LifecycleService::reconnect(const InstanceId& instance, const LinkLoss& loss) {
    const auto now = std::chrono::steady_clock::now();
    {
        const std::lock_guard lock(m_mutex);
        std::erase_if(m_reconnected, [&](const auto& last) { return now - last.second > m_patience.rest; });
        if (m_reconnected.contains(instance)) {
            return fail(ErrorCode::GuestFailure, loss.reason + ", and soon after that again");
        }
    }
    log::warning("the channel to a guest was lost; making a new one",
                 {{"INSTANCE", instance.text()}, {"REASON", loss.reason}});
    if (auto opened = m_links.reopen(instance, m_patience.reconnect); !opened) {
        return fail(opened.error().in(loss.reason + ", and no new channel could be made"));
    }
    log::notice("the guest answers on a new channel", {{"INSTANCE", instance.text()}});
    const std::lock_guard lock(m_mutex);
    m_reconnected[instance] = std::chrono::steady_clock::now();
    return {};
}

void LifecycleService::onEmulatorGone(const InstanceId& instance) {
    m_cleanUps.post([this, instance] {
        failRunning(instance, DomainEvent::EmulatorGone,
                    "the emulator ended by itself (the guest powered off or crashed, or it was killed)");
    });
}

void LifecycleService::onClientLeft(const std::string& busName) {
    for (const auto& entry : m_table.all()) {
        if (!busName.empty() && entry.waitingClient == busName) {
            removeDisposable(entry.record.id, "its client left before it ran anything");
        }
    }
}

} // namespace bulkhead::core

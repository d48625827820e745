// SPDX-License-Identifier: Apache-2.0
#include "core/services/lifecycle_service.hpp"

#include "base/log.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/worker_pool.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

constexpr std::chrono::milliseconds kFirstLook{200};

} // namespace

LifecycleService::LifecycleService(DomainTable& table, DomainRepository& domains, InstanceRepository& instances,
                                   GuestLinks& links, InstanceLauncher& launcher, EmulatorMonitor& monitor,
                                   JobService& jobs, WorkerPool& workers, Patience patience)
    : m_table(table)
    , m_domains(domains)
    , m_instances(instances)
    , m_links(links)
    , m_launcher(launcher)
    , m_monitor(monitor)
    , m_jobs(jobs)
    , m_workers(workers)
    , m_patience(patience) {}

Result<JobId> LifecycleService::start(const Caller& caller, const DomainId& id) {
    const auto entry = m_table.find(id);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (entry->state == DomainState::Running) {
        return m_jobs.finished("start", caller.uid, id);
    }
    return m_jobs.begin("start", caller.uid, [this, id](const JobContext& job) { return runStart(id, job); });
}

JobId LifecycleService::startDisposable(const Caller& caller, const DomainId& id) {
    return m_jobs.begin("start-disposable", caller.uid, [this, id](const JobContext& job) -> Result<JobResult> {
        auto started = runStart(id, job);
        if (!started) {
            removeDisposable(id, "its start failed");
        }
        return started;
    });
}

Result<JobResult> LifecycleService::runStart(const DomainId& id, const JobContext& job) {
    // A stop or a clean-up that is under way ends soon; whoever wants a start wants it after that.
    const auto operation = m_table.beginOperation(id, "start", m_patience.busy);
    if (!operation) {
        return fail(operation.error());
    }
    const auto entry = m_table.find(id);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (entry->state == DomainState::Running) {
        return JobResult(id);
    }
    if (!entry->definitionProblem.empty()) {
        return fail(ErrorCode::InvalidArgument,
                    "domain \"" + entry->record.name + "\" cannot start: " + entry->definitionProblem);
    }
    if (entry->instance && !hasEmulator(entry->state)) {
        if (auto cleaned = cleanUp(*entry); !cleaned) {
            return fail(cleaned.error().in("what is left of the last run of domain \"" + entry->record.name + "\""));
        }
    }
    if (auto applied = m_table.apply(id, DomainEvent::StartRequested); !applied) {
        return fail(applied.error());
    }
    const auto launched = m_launcher.launch(*entry, job);
    if (!launched) {
        const auto& message = launched.error().message;
        // A start that the user took back is no failure of the domain's.
        const bool isCancelled = launched.error().code == ErrorCode::Cancelled;
        [[maybe_unused]] const auto told =
            m_table.apply(id, DomainEvent::StartFailed, isCancelled ? "the start was cancelled" : message);
        if (auto kept = m_domains.setLastFailure(id, message); !kept) {
            log::error("cannot record a failed start", {{"DOMAIN", id.text()}, {"ERROR", kept.error().message}});
        }
        cleanUpLater(id);
        return fail(launched.error());
    }
    if (auto applied = m_table.apply(id, DomainEvent::AgentReady); !applied) {
        return fail(applied.error());
    }
    if (!entry->record.lastFailure.empty()) {
        if (auto kept = m_domains.setLastFailure(id, {}); !kept) {
            log::error("cannot clear a failure", {{"DOMAIN", id.text()}, {"ERROR", kept.error().message}});
        }
    }
    return JobResult(id);
}

Result<JobId> LifecycleService::stop(const Caller& caller, const DomainId& id, StopOptions options) {
    const auto entry = m_table.find(id);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (entry->state == DomainState::Stopped) {
        return m_jobs.finished("stop", caller.uid, id);
    }
    return m_jobs.begin("stop", caller.uid, [this, id, options](const JobContext& job) -> Result<JobResult> {
        job.report("Shutting down");
        bool isDisposable = false;
        {
            const auto operation = m_table.beginOperation(id, "stop");
            if (!operation) {
                return fail(operation.error());
            }
            const auto current = m_table.find(id);
            if (!current) {
                return fail(ErrorCode::NotFound, "no such domain");
            }
            isDisposable = current->record.kind == DomainKind::Disposable;
            if (auto ended = endInstance(*current, options); !ended) {
                return fail(ended.error());
            }
        }
        if (isDisposable) {
            removeDisposable(id, "stopped");
        }
        return JobResult(id);
    });
}

Status LifecycleService::endInstance(const DomainEntry& entry, StopOptions options) {
    const DomainId& id = entry.record.id;
    if (entry.state == DomainState::Failed && !entry.instance) {
        m_table.restore(id, DomainState::Stopped, {});
        return {};
    }
    if (!entry.instance) {
        return {};
    }
    const InstanceRecord instance = *entry.instance;
    // The intent first: a daemon that dies now goes on with it at its next start.
    if (auto recorded = m_instances.setPhase(instance.id, InstancePhase::Stopping); !recorded) {
        return recorded;
    }
    if (entry.state == DomainState::Running || entry.state == DomainState::Paused) {
        if (auto applied = m_table.apply(id, DomainEvent::StopRequested); !applied) {
            return applied;
        }
    }
    // A disposable's disks are thrown away: nothing to shut down in order for.
    const bool isOrderly = !options.force && entry.record.kind != DomainKind::Disposable;
    if (isOrderly) {
        if (auto asked = m_links.shutdown(instance.id, options.grace); asked) {
            if (!m_monitor.waitGone(instance.id, options.grace + std::chrono::seconds(5))) {
                log::warning("the guest did not power off in time; cutting the power", {{"DOMAIN", id.text()}});
            }
        } else {
            log::warning("the guest could not be asked to power off; cutting the power",
                         {{"DOMAIN", id.text()}, {"ERROR", asked.error().message}});
        }
    }
    const auto ended = m_launcher.tearDown(instance, InstanceLauncher::keptHomeOf(entry));
    if (!ended) {
        cleanUpLater(id);
        return fail(ended.error().in("stopping domain \"" + entry.record.name + "\""));
    }
    m_table.setInstance(id, std::nullopt);
    if (entry.state == DomainState::Failed) {
        m_table.restore(id, DomainState::Stopped, {});
        return {};
    }
    return m_table.apply(id, DomainEvent::EmulatorGone);
}

void LifecycleService::removeDisposable(const DomainId& id, const std::string& why) {
    const auto operation = m_table.waitForOperation(id, "removal");
    if (!operation) {
        return;
    }
    const auto entry = m_table.find(id);
    if (!entry) {
        return;
    }
    if (auto marked = m_domains.setPhase(id, DomainRecord::Phase::Removing); !marked) {
        log::error("cannot record a removal", {{"DOMAIN", id.text()}, {"ERROR", marked.error().message}});
    }
    auto ended = endInstance(*entry, {.force = true, .grace = {}});
    if (ended) {
        ended = m_domains.remove(id);
    }
    if (!ended) {
        log::error("a disposable could not be removed whole; it is tried again",
                   {{"DOMAIN", id.text()}, {"ERROR", ended.error().message}});
        m_table.restore(id, DomainState::Failed, "removal failed: " + ended.error().message);
        cleanUpLater(id);
        return;
    }
    log::info("disposable removed", {{"DOMAIN", id.text()}, {"WHY", why}});
    m_table.erase(id);
}

void LifecycleService::onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) {
    const auto entry = m_table.findByInstance(instance);
    if (!entry || entry->record.kind != DomainKind::Disposable || remaining > 0) {
        return;
    }
    log::info("program ended", {{"INSTANCE", instance.text()}, {"EXEC", std::to_string(exec)}});
    m_workers.post([this, id = entry->record.id] { removeDisposable(id, "its program ended"); });
}

void LifecycleService::onLinkLost(const InstanceId& instance, const LinkLoss& loss) {
    m_workers.post([this, instance, loss] { handleLostLink(instance, loss); });
}

void LifecycleService::handleLostLink(const InstanceId& instance, const LinkLoss& loss) {
    // A line that ends because the emulator ended is told by onEmulatorGone(); the word of it mostly comes at once.
    if (m_monitor.waitGone(instance, std::min(m_patience.settle, kFirstLook))) {
        return;
    }
    const auto found = m_table.findByInstance(instance);
    if (!found) {
        return;
    }
    const bool isDisposable = found->record.kind == DomainKind::Disposable;
    if (!loss.isViolation && isDisposable && m_links.runningExecs(instance) > 0) {
        removeDisposable(found->record.id, "the channel to its program was lost: " + loss.reason);
        return;
    }
    const Status reconnected =
        loss.isViolation ? fail(ErrorCode::GuestFailure, loss.reason) : reconnect(found->record.id, instance, loss);
    if (reconnected || m_monitor.waitGone(instance, m_patience.settle)) {
        return;
    }
    failRunning(instance, DomainEvent::ChannelLost, reconnected.error().message);
}

Status LifecycleService::reconnect(const DomainId& id, const InstanceId& instance, const LinkLoss& loss) {
    const auto operation = m_table.waitForOperation(id, "a new channel");
    const auto entry = m_table.findByInstance(instance);
    if (!operation || !entry || !hasEmulator(entry->state)) {
        return {}; // another operation has ended it
    }
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
    m_workers.post([this, instance] {
        failRunning(instance, DomainEvent::EmulatorGone,
                    "the emulator ended by itself (the guest powered off or crashed, or it was killed)");
    });
}

void LifecycleService::failRunning(const InstanceId& instance, DomainEvent event, const std::string& reason) {
    const auto found = m_table.findByInstance(instance);
    if (!found) {
        return;
    }
    const DomainId id = found->record.id;
    {
        const auto operation = m_table.waitForOperation(id, "clean-up");
        if (!operation) {
            return;
        }
        const auto entry = m_table.find(id);
        // An operation that was under way (a stop, a failed start) has dealt with it.
        if (!entry || !entry->instance || entry->instance->id != instance) {
            return;
        }
        log::warning("domain failed", {{"DOMAIN", id.text()}, {"INSTANCE", instance.text()}, {"REASON", reason}});
        if (auto kept = m_domains.setLastFailure(id, reason); !kept) {
            log::error("cannot record a failure", {{"DOMAIN", id.text()}, {"ERROR", kept.error().message}});
        }
        if (auto ended = cleanUp(*entry); !ended) {
            log::error("cleaning up after a failed domain did not end well; it is tried again",
                       {{"DOMAIN", id.text()}, {"ERROR", ended.error().message}});
            cleanUpLater(id);
        }
        [[maybe_unused]] const auto told = m_table.apply(id, event, reason);
    }
    if (found->record.kind == DomainKind::Disposable) {
        removeDisposable(id, reason);
    }
}

Status LifecycleService::cleanUp(const DomainEntry& entry) {
    if (auto ended = m_launcher.tearDown(*entry.instance, InstanceLauncher::keptHomeOf(entry)); !ended) {
        return ended;
    }
    m_table.setInstance(entry.record.id, std::nullopt);
    return {};
}

void LifecycleService::cleanUpLater(const DomainId& id) {
    m_workers.postAfter(m_patience.retry, [this, id] {
        const auto known = m_table.find(id);
        if (known && known->record.kind == DomainKind::Disposable) {
            removeDisposable(id, "left over");
            return;
        }
        const auto operation = m_table.waitForOperation(id, "clean-up");
        const auto entry = m_table.find(id);
        const bool isLeftOver = entry && entry->instance && entry->state != DomainState::Running &&
                                entry->state != DomainState::Paused && entry->state != DomainState::Starting;
        if (!operation || !isLeftOver) {
            return;
        }
        if (auto ended = cleanUp(*entry); !ended) {
            cleanUpLater(id);
            return;
        }
        log::notice("what was left of a domain is cleaned up", {{"DOMAIN", id.text()}});
        if (entry->state == DomainState::Stopping) {
            [[maybe_unused]] const auto told = m_table.apply(id, DomainEvent::EmulatorGone);
        }
    });
}

void LifecycleService::onClientLeft(const std::string& busName) {
    for (const auto& entry : m_table.all()) {
        if (!busName.empty() && entry.waitingClient == busName) {
            m_workers.post(
                [this, id = entry.record.id] { removeDisposable(id, "its client left before it ran anything"); });
        }
    }
}

} // namespace bulkhead::core

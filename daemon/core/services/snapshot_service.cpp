// SPDX-License-Identifier: Apache-2.0
#include "core/services/snapshot_service.hpp"

#include "base/log.hpp"
#include "core/services/domain_service.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/snapshot_taker.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

/// Layers of a home, each of which an emulator opens, above which only people add to them.
constexpr std::size_t kMostLayers = 100;
/// For people, too: libvirt's descriptions of machines may not be nested deeper than some 250 elements.
constexpr std::size_t kMostLayersAtAll = 180;

/// How long a suspension waits for another one of the same domain, which may have gigabytes to write.
constexpr std::chrono::minutes kOtherSuspension{5};

std::uint64_t milliseconds(std::chrono::milliseconds time) {
    return static_cast<std::uint64_t>(time.count());
}

} // namespace

SnapshotService::SnapshotService(SnapshotStore& store, DomainTable& table, DomainService& domains,
                                 LifecycleService& lifecycle, LineageTable& lineage, SnapshotTaker& taker,
                                 JobService& jobs)
    : m_store(store)
    , m_table(table)
    , m_domains(domains)
    , m_lifecycle(lifecycle)
    , m_lineage(lineage)
    , m_taker(taker)
    , m_jobs(jobs) {}

// ---- what there is --------------------------------------------------------------------------------------------------

Result<std::vector<SnapshotRecord>> SnapshotService::list(const Caller& caller) {
    auto nodes = m_lineage.all();
    std::erase_if(nodes, [&](const SnapshotRecord& record) {
        return record.phase != SnapshotRecord::Phase::Present || !caller.mayUse(record.owner);
    });
    std::stable_sort(nodes.begin(), nodes.end(), [](const SnapshotRecord& one, const SnapshotRecord& other) {
        return one.createdAt < other.createdAt;
    });
    return nodes;
}

Result<SnapshotRecord> SnapshotService::find(const Caller& caller, const SnapshotId& id) {
    auto node = m_lineage.find(id);
    if (!node || !caller.mayUse(node->owner)) {
        return fail(ErrorCode::NotFound, "no such snapshot");
    }
    return std::move(*node);
}

Result<SnapshotRecord> SnapshotService::setPinned(const Caller& caller, const SnapshotId& id, bool isPinned) {
    auto node = find(caller, id);
    if (!node) {
        return node;
    }
    return m_lineage.edit(id, [&](SnapshotRecord& record) { record.isPinned = isPinned; });
}

Result<SnapshotRecord> SnapshotService::setLabel(const Caller& caller, const SnapshotId& id, const std::string& label) {
    auto node = find(caller, id);
    if (!node) {
        return node;
    }
    if (auto checked = checkSnapshotText("label", label); !checked) {
        return fail(checked.error());
    }
    return m_lineage.edit(id, [&](SnapshotRecord& record) { record.label = label; });
}

/// A node that can be begun from now: all of its files are there.
Result<SnapshotRecord> SnapshotService::usable(const SnapshotId& id, bool needsMemory) {
    auto node = m_lineage.find(id);
    if (!node) {
        return fail(ErrorCode::NotFound, "no such snapshot");
    }
    if (node->suspect.empty()) {
        if (const auto damage = m_store.findMissing(*node)) {
            node->suspect = damage->file.filename().string() + ": " + damage->why;
            [[maybe_unused]] const auto marked =
                m_lineage.edit(id, [&](SnapshotRecord& record) { record.suspect = node->suspect; });
        }
    }
    const bool isMemoryOnly = node->suspect.starts_with(kSuspectMemory);
    if (node->suspect.empty() || (isMemoryOnly && !needsMemory)) {
        return std::move(*node);
    }
    const Lineage lineage = m_lineage.all();
    const SnapshotRecord* const good = lastGood(lineage, id);
    return fail(ErrorCode::HostFailure, "snapshot " + shortId(id) + " cannot be trusted (" + node->suspect + "); " +
                                            (isMemoryOnly ? "its disks can (--disk); " : "") +
                                            (good != nullptr ? "the last good one before it is " + shortId(good->id)
                                                             : "there is none before it"));
}

Result<DomainEntry> SnapshotService::owned(const Caller& caller, const DomainId& domain) {
    return m_domains.find(caller, domain);
}

// ---- take -----------------------------------------------------------------------------------------------------------

Result<JobId> SnapshotService::create(const Caller& caller, const DomainId& domain, const Options& options) {
    const auto entry = owned(caller, domain);
    if (!entry) {
        return fail(entry.error());
    }
    for (auto& checked : {checkSnapshotText("reason", options.reason), checkSnapshotText("label", options.label)}) {
        if (!checked) {
            return fail(checked.error());
        }
    }
    SnapshotRecord asAutomatic;
    asAutomatic.reason = options.reason;
    // A client that compares with now needs one for as long as that takes, and may forget it then.
    if (isAutomatic(asAutomatic) && options.reason != kReasonDiff) {
        return fail(ErrorCode::InvalidArgument,
                    "reason: \"" + options.reason +
                        "\" is what Bulkhead says of the snapshots that it takes by itself, and "
                        "removes by itself; choose other words");
    }
    return m_jobs.begin("snapshot", caller.uid,
                        [this, domain, options](const JobContext& job) { return runCreate(domain, options, job); });
}

Result<JobResult> SnapshotService::runCreate(const DomainId& domain, const Options& options, const JobContext& job) {
    const auto operation = m_table.beginOperation(domain, "snapshot");
    if (!operation) {
        return fail(operation.error());
    }
    auto taken = takeNow(domain,
                         {.kind = options.isDiskOnly ? SnapshotKind::Disk : SnapshotKind::Full,
                          .reason = options.reason.empty() ? std::string(kReasonManual) : options.reason,
                          .label = options.label},
                         job);
    if (!taken) {
        return fail(taken.error());
    }
    prune(domain);
    return JobResult(SnapshotResult{taken->record.id, milliseconds(taken->pause), taken->note});
}

/// The caller holds the operation.
Result<SnapshotTaker::Taken> SnapshotService::takeNow(const DomainId& domain, const SnapshotTaker::Wish& wish,
                                                      const JobContext& job) {
    const auto entry = m_table.find(domain);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    switch (entry->state) {
    case DomainState::Running:
    case DomainState::Stopped:
        break;
    case DomainState::Suspended: {
        // Nothing has changed since its head was taken.
        const auto head = entry->head.node ? m_lineage.find(*entry->head.node) : std::nullopt;
        if (!head) {
            break;
        }
        SnapshotRecord asWished = *head;
        asWished.reason = wish.reason;
        if (isAutomatic(asWished)) {
            return SnapshotTaker::Taken{*head, {}};
        }
        // Somebody asks for it, so it is theirs from now on.
        return m_lineage
            .edit(head->id,
                  [&](SnapshotRecord& record) {
                      record.reason = record.reason == kReasonEvidence ? record.reason : wish.reason;
                      record.label = wish.label.empty() ? record.label : wish.label;
                  })
            .map([](SnapshotRecord&& record) {
                return SnapshotTaker::Taken{std::move(record), {}};
            });
    }
    case DomainState::Failed:
        if (!entry->instance) {
            break; // its home is what it is
        }
        [[fallthrough]];
    case DomainState::Starting:
    case DomainState::Stopping:
        return fail(ErrorCode::WrongState, "domain \"" + entry->record.name + "\" is " +
                                               std::string(nameOf(entry->state)) +
                                               "; a snapshot needs it running or stopped");
    case DomainState::Paused:
        if (!entry->instance || !entry->instance->isHeld) {
            return fail(ErrorCode::WrongState, "domain \"" + entry->record.name +
                                                   "\" is paused; a snapshot needs it running or stopped" +
                                                   (entry->reason.empty() ? "" : " (" + entry->reason + ")"));
        }
        break;
    }
    if (const std::size_t depth = depthOf(*entry); depth > kMostLayersAtAll) {
        return fail(ErrorCode::LimitExceeded, "the disks of domain \"" + entry->record.name + "\" lie above " +
                                                  std::to_string(depth - 1) +
                                                  " layers already; a machine cannot have many more. Going back to an "
                                                  "older snapshot makes it fewer");
    }
    SnapshotTaker::Wish asItIs = wish;
    asItIs.isStanding = entry->state == DomainState::Paused;
    return m_taker.take(*entry, asItIs, job);
}

/// Layers of its deeper disk; 0: not known.
std::size_t SnapshotService::depthOf(const DomainEntry& entry) {
    if (!entry.instance) {
        const auto home = m_store.home(entry.record.id);
        return home ? home->layers.size() : 0;
    }
    const auto disks = m_store.disksOf(entry.instance->id);
    return disks ? std::max(disks->home.layers.size(), disks->system.layers.size()) : 0;
}

Result<SnapshotId> SnapshotService::keepHome(const DomainId& domain, std::string_view reason, const JobContext& job) {
    if (const auto home = m_store.home(domain); home && home->layers.size() > kMostLayers) {
        return fail(ErrorCode::LimitExceeded, "its home lies above " + std::to_string(home->layers.size() - 1) +
                                                  " layers already, which is the most for snapshots that nobody asks "
                                                  "for; going back to an older one makes it fewer");
    }
    const auto taken = takeNow(domain, {.kind = SnapshotKind::Disk, .reason = std::string(reason)}, job);
    if (!taken) {
        return fail(taken.error());
    }
    prune(domain, taken->record.id);
    return taken->record.id;
}

// ---- remove ---------------------------------------------------------------------------------------------------------

std::vector<SnapshotId> SnapshotService::suspendedIn() const {
    std::vector<SnapshotId> nodes;
    for (const DomainEntry& entry : m_table.withDeleted()) {
        if (entry.head.isSuspended && entry.head.node) {
            nodes.push_back(*entry.head.node);
        }
    }
    return nodes;
}

/// A disposable lives above its head's files, and may have to go back to it.
std::vector<SnapshotId> SnapshotService::livedIn() const {
    std::vector<SnapshotId> nodes;
    for (const DomainEntry& entry : m_table.all()) {
        if (entry.record.kind == DomainKind::Disposable && entry.head.node) {
            nodes.push_back(*entry.head.node);
        }
        nodes.insert(nodes.end(), entry.inspectedNodes.begin(), entry.inspectedNodes.end());
    }
    return nodes;
}

Result<JobId> SnapshotService::remove(const Caller& caller, const SnapshotId& id, bool isCascade) {
    if (auto node = find(caller, id); !node) {
        return fail(node.error());
    }
    if (auto nodes = nodesToRemove(m_lineage.all(), id, isCascade, suspendedIn(), livedIn()); !nodes) {
        return fail(nodes.error());
    }
    return m_jobs.begin(
        "remove-snapshot", caller.uid, [this, id, isCascade](const JobContext& job) -> Result<JobResult> {
            job.report("Removing");
            const auto hide = [&]() -> Status {
                const std::lock_guard lock(m_removing);
                return nodesToRemove(m_lineage.all(), id, isCascade, suspendedIn(), livedIn())
                    .and_then([&](const std::vector<SnapshotId>& nodes) { return m_lineage.hide(nodes); });
            };
            return hide()
                .and_then([&] {
                    forgetGone();
                    return m_lineage.collect();
                })
                .map([] { return JobResult(std::monostate{}); });
        });
}

std::vector<SnapshotId> SnapshotService::heads(const std::optional<DomainId>& butOf) const {
    std::vector<SnapshotId> nodes;
    for (const DomainEntry& entry : m_table.withDeleted()) {
        if (entry.head.node && entry.record.id != butOf) {
            nodes.push_back(*entry.head.node);
        }
        nodes.insert(nodes.end(), entry.inspectedNodes.begin(), entry.inspectedNodes.end());
    }
    return nodes;
}

/// After a change: the oldest automatic nodes that are too many go, and the files that nothing lies above any more.
void SnapshotService::prune(const DomainId& domain, const std::optional<SnapshotId>& kept) {
    const auto hide = [&]() -> Status {
        const std::lock_guard lock(m_removing);
        auto stay = heads({});
        if (kept) {
            stay.push_back(*kept);
        }
        const auto over = overRetention(m_lineage.all(), domain, m_retention, stay);
        return over.empty() ? Status{} : m_lineage.hide(over);
    };
    const auto hidden = hide();
    forgetGone();
    if (auto removed = hidden.and_then([&] { return m_lineage.collect(); }); !removed) {
        log::warning("old snapshots could not be removed",
                     {{"DOMAIN", domain.text()}, {"ERROR", removed.error().message}});
    }
}

void SnapshotService::collect(const std::optional<DomainId>& leaving) {
    forgetGone(leaving);
    if (auto collected = m_lineage.collect(); !collected) {
        log::warning("files of removed snapshots stay for now", {{"ERROR", collected.error().message}});
    }
}

/// What kept disposables left because others stood there: those may have gone by now.
void SnapshotService::forgetGone(const std::optional<DomainId>& leaving) {
    const std::lock_guard lock(m_removing);
    const auto stay = heads(leaving);
    // Most leave nothing.
    const auto left = goneDisposables(m_lineage.all(), {});
    std::erase_if(m_gone, [&](const DomainId& id) { return std::find(left.begin(), left.end(), id) == left.end(); });
    for (const DomainId& gone : m_gone) {
        const auto nodes = nodesOfGone(m_lineage.all(), gone, stay);
        if (auto hidden = nodes.empty() ? Status{} : m_lineage.hide(nodes); !hidden) {
            log::warning("snapshots of a disposable that is gone stay for now",
                         {{"DOMAIN", gone.text()}, {"ERROR", hidden.error().message}});
        }
    }
}

// ---- go back --------------------------------------------------------------------------------------------------------

Result<JobId> SnapshotService::revert(const Caller& caller, const SnapshotId& id, const RevertOptions& options) {
    const auto node = find(caller, id);
    if (!node) {
        return fail(node.error());
    }
    const auto entry = owned(caller, node->domain);
    if (!entry) {
        const auto deleted = m_table.deleted();
        const auto found = std::find_if(deleted.begin(), deleted.end(),
                                        [&](const DomainEntry& other) { return other.record.id == node->domain; });
        const std::string fork = "make a new one of it: bulkhead snapshot fork " + shortId(id) + " NAME";
        if (found != deleted.end()) {
            return fail(ErrorCode::WrongState, "the domain of snapshot " + shortId(id) +
                                                   " is deleted; restore it first: bulkhead domain restore " +
                                                   found->record.id.text().substr(0, 8) + "; or " + fork);
        }
        return fail(ErrorCode::NotFound, "the domain of snapshot " + shortId(id) + " is gone; " + fork);
    }
    if (entry->record.kind == DomainKind::Disposable) {
        return fail(ErrorCode::WrongState, "a disposable has no home to go back to; make a domain of the snapshot: "
                                           "bulkhead snapshot fork " +
                                               shortId(id) + " NAME");
    }
    return m_jobs.begin("revert", caller.uid,
                        [this, id, options](const JobContext& job) { return runRevert(id, options, job); });
}

Result<JobResult> SnapshotService::runRevert(const SnapshotId& id, const RevertOptions& options,
                                             const JobContext& job) {
    const auto node = usable(id, !options.isDiskOnly);
    if (!node) {
        return fail(node.error());
    }
    const DomainId& domain = node->domain;
    const auto operation = m_table.beginOperation(domain, "revert");
    if (!operation) {
        return fail(operation.error());
    }
    RevertResult result;
    result.domain = domain;
    if (options.keepsPresent) {
        auto kept = takeNow(domain, {.kind = SnapshotKind::Full, .reason = std::string(kReasonBeforeRevert)}, job);
        if (!kept) {
            return fail(kept.error().in("what is there now could not be kept, so nothing was changed"));
        }
        result.kept = kept->record.id;
    }
    if (job.cancelToken().stop_requested()) {
        return fail(ErrorCode::Cancelled, "cancelled");
    }
    const bool goesOn = node->memory && !options.isDiskOnly;
    if (auto moved = moveTo(*node, goesOn, result, job); !moved) {
        return fail(moved.error());
    }
    prune(domain, result.kept);
    return JobResult(std::move(result));
}

/// The caller holds the operation. What the domain is now is given up.
Status SnapshotService::moveTo(const SnapshotRecord& node, bool inMemory, RevertResult& result, const JobContext& job) {
    const DomainId& domain = node.domain;
    auto entry = m_table.find(domain);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    const bool wasRunning = entry->state == DomainState::Running || entry->state == DomainState::Paused;
    job.report("Going back", 0.6);
    // Also of one that is suspended or has failed: from here on its next start would not go on in another memory.
    if (auto ended = m_lifecycle.endInstance(*entry, {.force = true, .grace = {}}); !ended) {
        return ended;
    }
    const DomainHead before{entry->head.node, false};
    // With the version first: a start over a home that has not moved yet ignores it, the reverse would be an upgrade.
    if (auto stands = m_lineage.setHead(domain, {node.id, false, holdsVersion(node)}); !stands) {
        return stands;
    }
    if (auto moved = m_store.resetHome(domain, entry->record.owner, entry->record.name, node.home); !moved) {
        if (auto back = m_lineage.setHead(domain, before); !back) {
            log::warning("a domain's place in its lineage cannot be put back; the next start of the daemon does",
                         {{"DOMAIN", domain.text()}, {"ERROR", back.error().message}});
        }
        return moved;
    }
    if (inMemory) {
        // Last: what is said to be suspended has the disks of its memory.
        const auto kept = m_lineage.setHead(domain, {node.id, true}).and_then([&] {
            return m_table.apply(domain, DomainEvent::MemoryKept);
        });
        if (!kept) {
            return kept;
        }
    }
    if (!wasRunning) {
        return {};
    }
    auto started = m_lifecycle.startFrom(domain, node, !inMemory, job);
    if (!started) {
        return fail(
            started.error().in("the domain is what it was in snapshot " + shortId(node.id) + ", but does not start"));
    }
    result.isRunning = true;
    result.note = started->note;
    return {};
}

Result<JobId> SnapshotService::discard(const Caller& caller, const DomainId& domain) {
    const auto entry = owned(caller, domain);
    if (!entry) {
        return fail(entry.error());
    }
    if (entry->record.kind == DomainKind::Disposable) {
        return fail(ErrorCode::WrongState, "a disposable throws everything away by itself: domain stop");
    }
    if (!entry->head.node) {
        return fail(ErrorCode::WrongState,
                    "domain \"" + entry->record.name + "\" has no snapshot to go back to; it was not stopped");
    }
    return m_jobs.begin("stop", caller.uid, [this, domain](const JobContext& job) -> Result<JobResult> {
        const auto operation = m_table.beginOperation(domain, "stop");
        if (!operation) {
            return fail(operation.error());
        }
        const auto now = m_table.find(domain);
        if (!now || !now->head.node) {
            return fail(ErrorCode::WrongState, "the domain has no snapshot to go back to any more");
        }
        const auto node = usable(*now->head.node, false);
        if (!node) {
            return fail(node.error());
        }
        job.report("Throwing the session away");
        return m_lifecycle.endInstance(*now, {.force = true, .grace = {}})
            .and_then([&] { return m_store.resetHome(domain, now->record.owner, now->record.name, node->home); })
            .and_then([&] {
                return holdsVersion(*node) ? m_lineage.setHead(domain, {node->id, false, true}) : Status{};
            })
            .map([&] {
                return JobResult(StopResult{domain, {}, {}});
            });
    });
}

// ---- fork, suspend --------------------------------------------------------------------------------------------------

Result<JobId> SnapshotService::fork(const Caller& caller, const SnapshotId& from, const std::string& name,
                                    const ForkOptions& options) {
    const auto node = find(caller, from);
    if (!node) {
        return fail(node.error());
    }
    if (auto checked = checkDomainName(name); !checked) {
        return fail(checked.error());
    }
    return m_jobs.begin("fork", caller.uid, [this, caller, from, name, options](const JobContext& job) {
        return runFork(caller, from, name, options, job);
    });
}

Result<JobId> SnapshotService::forkNow(const Caller& caller, const DomainId& from, const std::string& name,
                                       const ForkOptions& options) {
    const auto entry = owned(caller, from);
    if (!entry) {
        return fail(entry.error());
    }
    if (auto checked = checkDomainName(name); !checked) {
        return fail(checked.error());
    }
    return m_jobs.begin(
        "fork", caller.uid, [this, caller, from, name, options](const JobContext& job) -> Result<JobResult> {
            SnapshotId node;
            {
                const auto operation = m_table.beginOperation(from, "fork");
                if (!operation) {
                    return fail(operation.error());
                }
                auto taken = takeNow(from,
                                     {.kind = options.isDiskOnly ? SnapshotKind::Disk : SnapshotKind::Full,
                                      .reason = std::string(kReasonFork)},
                                     job);
                if (!taken) {
                    return fail(taken.error());
                }
                node = taken->record.id;
            }
            return runFork(caller, node, name, options, job);
        });
}

Result<JobResult> SnapshotService::runFork(const Caller& caller, const SnapshotId& from, const std::string& name,
                                           const ForkOptions& options, const JobContext& job) {
    job.report("Making the fork", 0.8);
    const std::lock_guard lock(m_removing); // it stays until something lies above it
    const auto node = usable(from, !options.isDiskOnly);
    if (!node) {
        return fail(node.error());
    }
    DomainDefinition definition;
    if (const auto source = m_table.find(node->domain)) {
        definition = source->definition;
    } else {
        definition.templateName = node->templateName; // it is gone: what the node knows of it
    }
    if (holdsVersion(*node)) {
        definition.templateName = node->templateName; // its domain may have another one by now
    }
    definition.size = node->size;
    definition.label = options.label.value_or(definition.label);
    definition.egress = options.egress.value_or(definition.egress);
    if (node->reason == kReasonEvidence) {
        if (options.egress && *options.egress != "none") {
            return fail(ErrorCode::InvalidArgument,
                        "egress: snapshot " + shortId(from) + " is evidence; what begins there reaches nothing");
        }
        definition.egress = "none";
        if (std::find(definition.tags.begin(), definition.tags.end(), kReasonEvidence) == definition.tags.end()) {
            definition.tags.emplace_back(kReasonEvidence);
        }
    }
    return m_domains.createFork(caller, name, definition, *node, !options.isDiskOnly).map([](const DomainId& id) {
        return JobResult(id);
    });
}

Result<DomainId> SnapshotService::forkDisposable(const Caller& caller, const SnapshotId& from,
                                                 const DisposableOptions& options) {
    if (const auto node = find(caller, from); !node) {
        return fail(node.error());
    }
    const std::lock_guard lock(m_removing); // it stays until the disposable stands there
    const auto node = usable(from, !options.isDiskOnly);
    if (!node) {
        return fail(node.error());
    }
    return m_domains.createDisposable(caller, {}, {},
                                      {.node = *node, .isInMemory = !options.isDiskOnly, .isKept = options.isKept});
}

Result<JobId> SnapshotService::suspend(const Caller& caller, const DomainId& domain) {
    const auto entry = owned(caller, domain);
    if (!entry) {
        return fail(entry.error());
    }
    if (entry->state == DomainState::Suspended) {
        return m_jobs.finished("suspend", caller.uid, domain);
    }
    const bool isDisposable = entry->record.kind == DomainKind::Disposable;
    // One that is being suspended already, because its program has ended, is waited for.
    if (entry->state != DomainState::Running && !(entry->record.isKept && entry->state == DomainState::Stopping)) {
        return fail(ErrorCode::WrongState, "domain \"" + entry->record.name + "\" is " +
                                               std::string(nameOf(entry->state)) +
                                               "; only a running one can be suspended");
    }
    if (isDisposable && !entry->record.isKept) {
        return fail(ErrorCode::WrongState, "a disposable is not kept, so it cannot be suspended; begin one that is "
                                           "with: bulkhead run --keep");
    }
    return m_jobs.begin("suspend", caller.uid,
                        [this, domain](const JobContext& job) { return runSuspend(domain, {}, job); });
}

Result<JobId> SnapshotService::suspendUnused(const DomainId& disposable) {
    const auto entry = m_table.find(disposable);
    if (!entry || !entry->record.isKept) {
        return fail(ErrorCode::NotFound, "no such kept disposable");
    }
    return m_jobs.begin("suspend", entry->record.owner, [this, disposable](const JobContext& job) {
        const auto isUnused = [this](const DomainEntry& now) {
            return !now.hasWindows && m_domains.runningExecs(now) == 0; // the end of what there is will be told as well
        };
        auto suspended = runSuspend(disposable, isUnused, job);
        if (!suspended) {
            log::error("a kept disposable could not be suspended; it goes on running",
                       {{"DOMAIN", disposable.text()}, {"ERROR", suspended.error().message}});
        }
        return suspended;
    });
}

Result<JobId> SnapshotService::suspendIdle(const DomainId& domain, const IsUnused& isUnused,
                                           std::function<void(const Status&)> ended) {
    const auto entry = m_table.find(domain);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    return m_jobs.begin("suspend", entry->record.owner,
                        [this, domain, isUnused, ended = std::move(ended)](const JobContext& job) {
                            auto suspended = runSuspend(domain, isUnused, job);
                            ended(suspended ? Status() : Status(fail(suspended.error())));
                            return suspended;
                        });
}

Result<JobResult> SnapshotService::runSuspend(const DomainId& domain, const IsUnused& isUnused, const JobContext& job) {
    const auto known = m_table.find(domain);
    const bool isKept = known && known->record.isKept;
    // Of a kept one both its client and its program's end ask for it: who comes second finds it done.
    const auto operation =
        m_table.beginOperation(domain, "suspension", isKept ? kOtherSuspension : std::chrono::milliseconds(0));
    if (!operation) {
        return fail(operation.error());
    }
    const auto before = m_table.find(domain);
    if (isKept && before && before->state == DomainState::Suspended) {
        return JobResult(domain);
    }
    if (!before || before->state != DomainState::Running) {
        return fail(ErrorCode::WrongState, "the domain does not run any more");
    }
    std::optional<DomainTable::Closed> closed;
    if (isUnused) {
        // Nothing begins in it between the question and its end.
        closed = m_table.closeToPrograms(domain);
        if (!closed || !isUnused(*before)) {
            return JobResult(domain);
        }
        if (!isKept && depthOf(*before) > kMostLayers) {
            return fail(ErrorCode::LimitExceeded,
                        "its disks lie above so many layers that it is not suspended by itself any more");
        }
    }
    auto taken =
        takeNow(domain, {.kind = SnapshotKind::Full, .reason = std::string(kReasonSuspend), .isLast = true}, job);
    if (!taken) {
        return fail(taken.error());
    }
    const auto now = m_table.find(domain);
    if (!now || !now->instance) {
        return fail(ErrorCode::GuestFailure, "the emulator ended while its domain was being suspended");
    }
    job.report("Ending the emulator", 0.9);
    // What it has not written of its disks yet it writes now.
    if (auto ended = m_lifecycle.endSuspended(*now); !ended) {
        return fail(ended.error());
    }
    prune(domain);
    return JobResult(domain);
}

Status SnapshotService::forget(const DomainId& disposable) {
    {
        const std::lock_guard lock(m_removing);
        m_gone.insert(disposable);
        const auto nodes = nodesOfGone(m_lineage.all(), disposable, heads(disposable));
        if (auto hidden = nodes.empty() ? Status{} : m_lineage.hide(nodes); !hidden) {
            return hidden;
        }
    }
    // Out of sight; files that stay go with the next removal, or the next start of the daemon.
    collect(disposable);
    return {};
}

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#include "core/services/reconciler.hpp"

#include "base/log.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/kept_disposables.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/trash_service.hpp"
#include "core/services/uid_leases.hpp"

#include <algorithm>

namespace bulkhead::core {

Reconciler::Reconciler(Ports ports, DomainTable& table, LineageTable& lineage, UidLeases& leases,
                       InstanceLauncher& launcher, LifecycleService& lifecycle, EmulatorMonitor& monitor,
                       TrashService& trash)
    : m_ports(ports)
    , m_table(table)
    , m_lineage(lineage)
    , m_leases(leases)
    , m_launcher(launcher)
    , m_lifecycle(lifecycle)
    , m_monitor(monitor)
    , m_trash(trash) {}

Result<Reconciler::Report> Reconciler::run() {
    Report report;
    // All reads come first: without them nothing may be judged to be a leftover.
    const auto observed = m_ports.hypervisor.list();
    if (!observed) {
        return fail(observed.error());
    }
    const auto instances = m_ports.instances.all();
    if (!instances) {
        return fail(instances.error());
    }
    if (auto loaded = loadLineage(report); !loaded) {
        return fail(loaded.error());
    }
    if (auto loaded = loadDomains(report); !loaded) {
        return fail(loaded.error());
    }
    for (const auto& record : *instances) {
        m_leases.claim(record.uidSlot);
    }
    for (const auto& record : *instances) {
        settleInstance(record, *observed, report);
    }
    for (const auto& emulator : *observed) {
        const bool isKnown = std::any_of(instances->begin(), instances->end(),
                                         [&](const InstanceRecord& r) { return r.id == emulator.id; });
        if (!isKnown) {
            ++report.foreign;
            log::warning("an emulator carries our mark but stands in no record; it is left alone",
                         {{"INSTANCE", emulator.id.text()}});
        }
    }
    settleSnapshots(report);
    finishRemovals(report);
    removeLeftovers(*instances, *observed, report);
    // Last: it may begin snapshots of its own.
    for (const DomainEntry& entry : m_unused) {
        if (entry.record.isKept && entry.record.ranWith.version.empty()) {
            m_lifecycle.removeDisposable(entry.record.id, "nothing was run in it");
            continue;
        }
        m_lifecycle.endUse(entry, "what ran in it ended while the daemon was not running");
    }
    return report;
}

Status Reconciler::loadLineage(Report& report) {
    auto records = m_ports.snapshots.all();
    auto heads = m_ports.snapshots.heads();
    const auto manifests = m_ports.snapshotStore.all();
    if (!records || !heads || !manifests) {
        return fail(!records ? records.error() : !heads ? heads.error() : manifests.error());
    }
    m_heads = std::move(*heads);
    // The database was lost or replaced by an old copy: each node's own manifest says what it is.
    for (const SnapshotRecord& found : *manifests) {
        const auto known = std::find_if(records->begin(), records->end(),
                                        [&](const SnapshotRecord& record) { return record.id == found.id; });
        if (known != records->end()) {
            // Its files are whole and frozen: only its record was not written any more.
            if (known->phase == SnapshotRecord::Phase::Creating && found.phase == SnapshotRecord::Phase::Present) {
                ++report.undone;
                if (auto kept = m_ports.snapshots.save(found); kept) {
                    *known = found;
                } else {
                    report.problems.push_back(kept.error());
                }
            }
            continue;
        }
        ++report.rebuilt;
        if (auto kept = m_ports.snapshots.save(found); !kept) {
            report.problems.push_back(kept.error());
        }
        records->push_back(found);
    }
    // The other way round, the database is right: it is written first when nodes go.
    for (const SnapshotRecord& found : *manifests) {
        const auto known = std::find_if(records->begin(), records->end(),
                                        [&](const SnapshotRecord& record) { return record.id == found.id; });
        if (known == records->end() || known->phase == SnapshotRecord::Phase::Creating || *known == found) {
            continue;
        }
        if (auto said = m_ports.snapshotStore.update(*known); !said) {
            report.problems.push_back(said.error());
        }
    }
    for (const SnapshotRecord& record : *records) {
        if (record.phase == SnapshotRecord::Phase::Creating) {
            m_unfinished.push_back(record.id);
        }
    }
    m_lineage.load(std::move(*records));
    return {};
}

/// Its home is right: a database may say what a step that was cut off had wanted, or be an old copy.
DomainHead Reconciler::headOf(const DomainRecord& record, Report& report) {
    const auto known = m_heads.find(record.id);
    const DomainHead noted = known == m_heads.end() ? DomainHead{} : known->second;
    const auto home = m_ports.snapshotStore.home(record.id);
    if (!home) {
        return noted;
    }
    const DomainHead real{nearestNode(m_lineage.all(), *home), false};
    if (real.node == noted.node) {
        return noted;
    }
    if (known != m_heads.end()) {
        ++report.undone;
        if (auto stands = m_ports.snapshots.setHead(record.id, real); !stands) {
            report.problems.push_back(stands.error());
        }
    }
    return real;
}

/// Puts them into the table; `records` gets those that are none.
void Reconciler::loadDeleted(std::vector<TrashService::Settled>& deleted, const std::vector<DomainDefinition>& present,
                             const std::vector<HomeOnDisk>& homes, std::vector<DomainRecord>& records, Report& report) {
    const auto isBack = [&](TrashService::Settled& one) {
        // It was restored after a copy of the database was made, which is used now: its home's name has a definition,
        // and that is nobody else's.
        const auto home = std::find_if(homes.begin(), homes.end(),
                                       [&](const HomeOnDisk& candidate) { return candidate.id == one.record.id; });
        if (one.hasDefinition || one.record.phase != DomainRecord::Phase::Deleted || home == homes.end() ||
            home->owner != one.record.owner) {
            return false;
        }
        const auto isNamed = [&](const auto& other) {
            return other.owner == one.record.owner && other.name == home->name;
        };
        if (std::none_of(present.begin(), present.end(), isNamed) ||
            std::any_of(records.begin(), records.end(), isNamed)) {
            return false;
        }
        one.record.name = home->name;
        one.record.phase = DomainRecord::Phase::Present;
        one.record.deletedAt = 0;
        ++report.undone;
        if (auto kept = m_ports.domains.update(one.record); !kept) {
            report.problems.push_back(kept.error());
        }
        records.push_back(one.record);
        return true;
    };
    std::erase_if(deleted, isBack);
    for (const TrashService::Settled& one : deleted) {
        DomainEntry entry;
        entry.record = one.record;
        entry.definition = {.name = one.record.name, .owner = one.record.owner, .kind = one.record.kind};
        entry.head = headOf(one.record, report);
        if (entry.head.node && !m_heads.contains(one.record.id)) {
            if (auto stands = m_ports.snapshots.setHead(one.record.id, entry.head); !stands) {
                report.problems.push_back(stands.error());
            }
        }
        m_table.setDeleted(std::move(entry));
    }
}

Status Reconciler::loadDomains(Report& report) {
    auto records = m_ports.domains.all();
    if (!records) {
        return fail(records.error());
    }
    // Before definitions are read: it moves them.
    auto deleted = m_trash.settle(*records, report.undone, report.problems);
    if (!deleted) {
        return fail(deleted.error());
    }
    auto loaded = m_ports.definitions.loadDomains();
    const auto homes = m_ports.store.homesOnDisk();
    loadDeleted(*deleted, loaded.domains, homes.value_or(std::vector<HomeOnDisk>()), *records, report);
    for (const auto& problem : loaded.problems) {
        log::error("a domain definition cannot be used", {{"ERROR", problem.error.message}});
        report.problems.push_back(problem.error);
    }
    const auto definitionOf = [&loaded](const DomainRecord& record) {
        return std::find_if(loaded.domains.begin(), loaded.domains.end(), [&](const DomainDefinition& candidate) {
            return candidate.owner == record.owner && candidate.name == record.name;
        });
    };
    for (auto& record : *records) {
        const auto definition = definitionOf(record);
        if (record.phase == DomainRecord::Phase::Creating) {
            // The user was never told that it exists: file, home and record go.
            Status undone;
            if (definition != loaded.domains.end() && !definition->isManaged) {
                undone = m_ports.definitions.removeDefinition(*definition);
                loaded.domains.erase(definition);
            }
            undone = undone.and_then([&] { return m_ports.store.removeHome(record.id); }).and_then([&] {
                return m_ports.domains.remove(record.id);
            });
            if (!undone) {
                report.problems.push_back(undone.error());
            }
            ++report.undone;
            continue;
        }
        DomainEntry entry;
        entry.record = record;
        if (record.kind == DomainKind::Disposable) {
            entry.definition = definitionOfDisposable(record);
        } else if (definition != loaded.domains.end()) {
            entry.definition = *definition;
        } else {
            entry.definition = {.name = record.name, .owner = record.owner, .kind = record.kind};
            entry.definitionProblem = "its definition is missing or broken; see `bulkhead doctor`";
            for (const auto& problem : loaded.problems) {
                if (problem.owner == record.owner && problem.name == record.name) {
                    entry.definitionProblem = problem.error.message;
                    break;
                }
            }
        }
        entry.head = headOf(record, report);
        if (entry.head.node && !m_heads.contains(record.id)) {
            // Its first node was whole, but that it stands there was not written any more.
            if (auto stands = m_ports.snapshots.setHead(record.id, entry.head); !stands) {
                report.problems.push_back(stands.error());
            }
        }
        if (!record.lastFailure.empty()) {
            entry.state = DomainState::Failed;
            entry.reason = record.lastFailure;
        } else if (entry.head.isSuspended) {
            entry.state = DomainState::Suspended;
        }
        if (auto inserted = m_table.insert(std::move(entry)); !inserted) {
            report.problems.push_back(inserted.error());
        }
    }
    const auto homeOf = [&homes, &deleted](const DomainDefinition& definition) -> std::optional<DomainId> {
        // The database was lost or replaced by an old copy: the home's own note says whose it is.
        for (const auto& home : homes ? *homes : std::vector<HomeOnDisk>{}) {
            const bool isDeleted = std::any_of(deleted->begin(), deleted->end(), [&](const TrashService::Settled& one) {
                return one.record.id == home.id;
            });
            if (home.owner == definition.owner && home.name == definition.name && !isDeleted) {
                return home.id;
            }
        }
        return std::nullopt;
    };
    for (const auto& definition : loaded.domains) {
        if (m_table.findByName(definition.owner, definition.name)) {
            continue;
        }
        // A file without a record is a wish (an admin wrote it, or the database was lost): it becomes a domain now.
        DomainEntry entry;
        entry.record.id = homeOf(definition).value_or(randomId<DomainId>());
        entry.record.owner = definition.owner;
        entry.record.name = definition.name;
        entry.record.kind = definition.kind;
        entry.record.phase = DomainRecord::Phase::Present;
        entry.record.createdAt = m_ports.clock.now();
        entry.definition = definition;
        entry.head = headOf(entry.record, report);
        if (auto inserted = m_ports.domains.insert(entry.record); !inserted) {
            report.problems.push_back(inserted.error());
            continue;
        }
        if (entry.head.node) {
            if (auto stands = m_ports.snapshots.setHead(entry.record.id, entry.head); !stands) {
                report.problems.push_back(stands.error());
            }
        }
        if (auto inserted = m_table.insert(std::move(entry)); !inserted) {
            report.problems.push_back(inserted.error());
        }
    }
    return {};
}

void Reconciler::settleInstance(const InstanceRecord& record, const std::vector<ObservedInstance>& observed,
                                Report& report) {
    const auto entry = m_table.find(record.domain);
    const auto emulator =
        std::find_if(observed.begin(), observed.end(), [&](const ObservedInstance& o) { return o.id == record.id; });
    if (entry && record.phase == InstancePhase::Running && emulator != observed.end() &&
        !isSuspension(*entry, *emulator)) {
        adopt(*entry, record, *emulator, report);
        return;
    }
    const bool isSuspended =
        entry && entry->head.isSuspended &&
        (record.phase == InstancePhase::Stopping || (emulator != observed.end() && isSuspension(*entry, *emulator)));
    if (isSuspended && record.phase == InstancePhase::Running) {
        // Were this to be cut off as well, an emulator that is gone would look as if it had died.
        if (auto recorded = m_ports.instances.setPhase(record.id, InstancePhase::Stopping); !recorded) {
            report.problems.push_back(recorded.error());
        }
    }
    const auto keptHome = entry ? InstanceLauncher::keptHomeOf(*entry) : std::nullopt;
    // In the table first: what cannot be ended now stays known and is tried again.
    m_table.setInstance(record.domain, record);
    const auto ended = m_launcher.tearDown(record, keptHome);
    if (ended) {
        m_table.setInstance(record.domain, std::nullopt);
    } else {
        report.problems.push_back(ended.error());
        m_lifecycle.cleanUpLater(record.domain);
    }
    if (record.phase == InstancePhase::Running && !isSuspended) {
        ++report.ended;
        if (entry) {
            clearSuspension(*entry, report);
        }
        failDomain(record.domain, "its emulator ended while the daemon was not running", report);
    } else {
        ++report.undone;
    }
    if (entry && entry->record.kind == DomainKind::Disposable && !goBack(*entry, report)) {
        m_lifecycle.removeDisposable(record.domain, "its emulator is gone");
    }
}

/// A guest that stands still at the moment that its domain's head holds: all but the end of its emulator is done.
bool Reconciler::isSuspension(const DomainEntry& entry, const ObservedInstance& observed) const {
    return entry.head.isSuspended && observed.isPaused && !observed.isPausedByFullDisk;
}

/// It has run since.
void Reconciler::clearSuspension(const DomainEntry& entry, Report& report) {
    if (!entry.head.isSuspended) {
        return;
    }
    if (auto cleared = m_lineage.setHead(entry.record.id, {entry.head.node, false}); !cleared) {
        m_table.setHead(entry.record.id, {entry.head.node, false});
        report.problems.push_back(cleared.error());
    }
}

/// A kept disposable without an emulator is where it was suspended last. False: it is none, or has not been.
bool Reconciler::goBack(const DomainEntry& entry, Report& report) {
    if (!outlivesEmulator(entry, m_lineage)) {
        return false;
    }
    const DomainId& id = entry.record.id;
    const auto now = m_table.find(id);
    if (now && !now->head.isSuspended) {
        if (auto back = m_lineage.setHead(id, {entry.head.node, true}); !back) {
            m_table.setHead(id, {entry.head.node, true});
            report.problems.push_back(back.error());
        }
    }
    if (now && now->state == DomainState::Stopped) {
        m_table.restore(id, DomainState::Suspended, {});
    }
    return true;
}

/// A snapshot that was interrupted may have noted new layers that the emulator does not write to (yet). The emulator is
/// right, unless what it writes to belongs to a node by now: its domain was about to be suspended. Then it goes on in
/// the new ones, and must not go on otherwise.
Status Reconciler::settleDisks(const DomainEntry& entry, const InstanceRecord& record, Report& report) {
    const auto active = m_ports.machines.activeLayers(record.id);
    const auto noted = m_ports.snapshotStore.disksOf(record.id);
    if (active && noted && active->home != noted->home.layers.front().path && noted->home.layers.size() > 1 &&
        isFrozen(noted->home.layers[1])) {
        Machines::NewLayers above;
        above.system = noted->system.layers.front().path;
        above.home = noted->home.layers.front().path;
        return m_ports.machines.switchLayers(record.id, above);
    }
    const auto settled = active.and_then([&](const Machines::NewLayers& real) {
        return m_ports.snapshotStore.settle(record.id, InstanceLauncher::keptHomeOf(entry), real);
    });
    if (!settled) {
        report.problems.push_back(settled.error());
    }
    return {};
}

bool Reconciler::isFrozen(const DiskLayer& home) const {
    const Lineage lineage = m_lineage.all();
    return std::any_of(lineage.begin(), lineage.end(), [&](const SnapshotRecord& node) {
        return node.phase == SnapshotRecord::Phase::Present && !node.home.layers.empty() &&
               node.home.layers.front() == home;
    });
}

/// Snapshots that were not finished were not reported either.
void Reconciler::settleSnapshots(Report& report) {
    for (const SnapshotId& id : m_unfinished) {
        ++report.undone;
        if (auto abandoned = m_lineage.abandon(id); !abandoned) {
            report.problems.push_back(abandoned.error());
        }
    }
    if (auto collected = m_lineage.collect(); !collected) {
        report.problems.push_back(collected.error());
    }
    const Lineage lineage = m_lineage.all();
    if (const auto onDisk = m_ports.snapshotStore.onDisk(); onDisk) {
        for (const SnapshotId& id : *onDisk) {
            const bool isKnown = std::any_of(lineage.begin(), lineage.end(),
                                             [&](const SnapshotRecord& record) { return record.id == id; });
            if (!isKnown) {
                log::warning("a snapshot's folder without a manifest stands in no record; it is left alone",
                             {{"SNAPSHOT", id.text()}});
            }
        }
    } else {
        report.problems.push_back(onDisk.error());
    }
    const auto needed = m_lineage.filesInUse();
    const auto kept = needed ? m_ports.snapshotStore.keepImages(*needed) : Status(fail(needed.error()));
    if (!kept) {
        report.problems.push_back(kept.error());
    }
}

void Reconciler::failDomain(const DomainId& id, const std::string& reason, Report& report) {
    m_table.restore(id, DomainState::Failed, reason);
    if (auto kept = m_ports.domains.setLastFailure(id, reason); !kept && kept.error().code != ErrorCode::NotFound) {
        report.problems.push_back(kept.error());
    }
}

void Reconciler::adopt(const DomainEntry& entry, const InstanceRecord& record, const ObservedInstance& observed,
                       Report& report) {
    const auto& id = record.domain;
    // Events may come as soon as the emulator is watched; they wait for this.
    const auto operation = m_table.beginOperation(id, "adoption");
    m_table.setInstance(id, record);
    m_table.restore(id, record.isHeld ? DomainState::Paused : DomainState::Running, {});
    clearSuspension(entry, report);
    const auto settled = settleDisks(entry, record, report);
    const auto runs = settled.and_then([&] { return m_monitor.begin(record.id, observed.pid); }).and_then([&] {
        if (record.isHeld) {
            return observed.isPaused ? Status{} : m_ports.hypervisor.pause(record.id);
        }
        return observed.isPaused ? m_ports.hypervisor.resume(record.id) : Status{};
    });
    auto guest = runs.and_then([&] { return m_ports.links.adopt(record.id); });
    if (runs && !guest && m_monitor.isAlive(record.id)) {
        // The channel process ended while nobody was there to see it; the guest may be well. That takes a while to find
        // out, and a start of the daemon does not wait for guests.
        m_lifecycle.onLinkLost(record.id, {guest.error().message, false});
        guest = AdoptedGuest{};
    }
    if (!guest) {
        ++report.ended;
        log::warning("a running domain cannot be adopted; it is ended",
                     {{"DOMAIN", id.text()}, {"ERROR", guest.error().message}});
        const std::string reason = "its guest could not be reached after a restart of the daemon";
        failDomain(id, reason, report);
        if (auto ended = m_launcher.tearDown(record, InstanceLauncher::keptHomeOf(entry)); ended) {
            m_table.setInstance(id, std::nullopt);
        } else {
            report.problems.push_back(ended.error());
            m_lifecycle.cleanUpLater(id);
        }
        if (entry.record.kind == DomainKind::Disposable && !goBack(entry, report)) {
            m_lifecycle.removeDisposable(id, reason);
        }
        return;
    }
    ++report.adopted;
    log::info("running domain adopted", {{"DOMAIN", id.text()}, {"PROGRAMS", std::to_string(guest->programs)}});
    m_table.setHasWindows(id, guest->hasWindows);
    // Its program ended, its last window was closed, or its client left, while nobody was there to see it.
    // One that was resumed may have been left running on purpose.
    if (entry.record.kind == DomainKind::Disposable && guest->programs == 0 && !guest->hasWindows &&
        !outlivesEmulator(entry, m_lineage)) {
        m_unused.push_back(entry);
    }
}

void Reconciler::finishRemovals(Report& report) {
    for (const auto& entry : m_table.all()) {
        const auto& record = entry.record;
        const bool isStrayDisposable =
            record.kind == DomainKind::Disposable && !entry.instance && !goBack(entry, report);
        if (record.phase != DomainRecord::Phase::Removing && !isStrayDisposable) {
            continue;
        }
        ++report.undone;
        if (record.kind == DomainKind::Disposable) {
            m_lifecycle.removeDisposable(record.id, "left over");
            continue;
        }
        const auto removed = m_lifecycle.endInstance(entry, {.force = true, .grace = {}})
                                 .and_then([&] {
                                     const bool hasFile = !entry.definition.file.empty() && !entry.definition.isManaged;
                                     return hasFile ? m_ports.definitions.removeDefinition(entry.definition) : Status{};
                                 })
                                 .and_then([&] { return m_trash.forget(record); })
                                 .and_then([&] { return m_ports.store.removeHome(record.id); })
                                 .and_then([&] { return m_ports.domains.remove(record.id); });
        if (removed) {
            m_table.erase(record.id);
        } else {
            report.problems.push_back(removed.error());
        }
    }
}

void Reconciler::removeLeftovers(const std::vector<InstanceRecord>& records,
                                 const std::vector<ObservedInstance>& observed, Report& report) {
    m_ports.builder.removeLeftovers();
    if (auto done = m_ports.templates.removeLeftovers(); !done) {
        report.problems.push_back(done.error());
    }
    if (const auto onDisk = m_ports.store.instancesOnDisk(); onDisk) {
        for (const auto& id : *onDisk) {
            const bool isRecorded =
                std::any_of(records.begin(), records.end(), [&](const InstanceRecord& r) { return r.id == id; });
            // Nor the files of an emulator that is left alone: it writes to them.
            const bool isInUse =
                std::any_of(observed.begin(), observed.end(), [&](const ObservedInstance& o) { return o.id == id; });
            if (!isRecorded && !isInUse) {
                if (auto removed = m_ports.store.removeInstance(id, std::nullopt); !removed) {
                    report.problems.push_back(removed.error());
                } else {
                    ++report.removed;
                }
            }
        }
    } else {
        report.problems.push_back(onDisk.error());
    }
    // Homes hold people's data: one without a record is never removed by itself, only said.
    if (const auto homes = m_ports.store.homesOnDisk(); homes) {
        const auto known = m_table.withDeleted();
        for (const auto& home : *homes) {
            if (std::none_of(known.begin(), known.end(),
                             [&](const DomainEntry& entry) { return entry.record.id == home.id; })) {
                log::warning("a home disk belongs to no known domain; it is kept", {{"DOMAIN", home.id.text()}});
            }
        }
    }
}

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/core/fake_world.hpp"

#include <QString>
#include <QStringList>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bulkhead::tests {

inline const core::Caller kAlice{1000, ":1.1"};
inline const core::Caller kMallory{1001, ":1.2"};
inline const core::Caller kRoot{0, ":1.3"};

/// The answer of a fake that nobody has told to fail.
template <class Value> Value got(Result<Value> result) {
    return std::move(result).value();
}

/// A daemon over a world in which guests write to their disks, and what must be true of that world at any time.
class SnapshotWorld {
public:
    using Content = FakeSnapshotStore::Content;
    /// What a node holds.
    struct Held {
        Content home;
        Content system;
        bool operator==(const Held&) const = default;
    };

    explicit SnapshotWorld(std::chrono::milliseconds patience = std::chrono::milliseconds(-1))
        : m_patience(patience) {
        outside.links.onShutdown = [this](const InstanceId& instance) {
            outside.hypervisor.endEmulator(instance);
            outside.watch.end(instance);
        };
        boot();
    }

    Outside outside;
    std::unique_ptr<Daemon> daemon;
    core::Reconciler::Report report; ///< of the last start of the daemon

    /// A killed daemon undoes nothing; the world heals, another one starts.
    void restart() {
        daemon.reset();
        outside.gate.heal();
        outside.watch.forgetAll();
        boot();
    }

    /// As restart(), but that one is killed as well, before this call of its reconciler. False: it had done all by
    /// then.
    bool restartAndKill(unsigned before) {
        daemon.reset();
        outside.watch.forgetAll();
        outside.gate.arm(CallGate::Cut::Before, before);
        daemon = std::make_unique<Daemon>(outside, m_patience);
        [[maybe_unused]] const auto cut = daemon->reconciler.run();
        cutAgainAt = outside.gate.cutAt();
        return !cutAgainAt.empty();
    }
    std::string cutAgainAt; ///< the call

    // ---- verbs, which must succeed ----------------------------------------------------------------------------------

    core::JobInfo end(const Result<JobId>& job) {
        if (!job) {
            core::JobInfo refused;
            refused.state = core::JobState::Failed;
            refused.error = job.error();
            return refused;
        }
        return daemon->wait(*job);
    }
    core::JobInfo done(const Result<JobId>& job) {
        auto info = end(job);
        if (info.state != core::JobState::Succeeded) {
            throw std::logic_error(info.error ? info.error->message : "it was cancelled");
        }
        return info;
    }
    DomainId create(const std::string& name) { return daemon->domains.create(kAlice, name, {}).value(); }
    core::StartResult start(const DomainId& id) {
        const auto info = done(daemon->lifecycle.start(kAlice, id));
        const auto* const started = std::get_if<core::StartResult>(&info.result);
        return started == nullptr ? core::StartResult{id, false, {}} : *started;
    }
    void stop(const DomainId& id) { done(daemon->lifecycle.stop(kAlice, id, {})); }
    SnapshotId take(const DomainId& id, const core::SnapshotService::Options& options = {}) {
        return std::get<core::SnapshotResult>(done(daemon->snapshots.create(kAlice, id, options)).result).snapshot;
    }
    core::RevertResult revert(const SnapshotId& id, const core::SnapshotService::RevertOptions& options = {}) {
        return std::get<core::RevertResult>(done(daemon->snapshots.revert(kAlice, id, options)).result);
    }
    DomainId fork(const SnapshotId& id, const std::string& name,
                  const core::SnapshotService::ForkOptions& options = {}) {
        return std::get<DomainId>(done(daemon->snapshots.fork(kAlice, id, name, options)).result);
    }
    void suspend(const DomainId& id) { done(daemon->snapshots.suspend(kAlice, id)); }
    void remove(const SnapshotId& id, bool isCascade = false) { done(daemon->snapshots.remove(kAlice, id, isCascade)); }
    void removeDomain(const DomainId& id) {
        done(daemon->domains.remove(kAlice, id, {.force = true, .forGood = true}));
    }

    // ---- guests -----------------------------------------------------------------------------------------------------

    [[nodiscard]] core::DomainState state(const DomainId& id) const { return daemon->table.find(id)->state; }
    [[nodiscard]] core::DomainHead head(const DomainId& id) const { return daemon->table.find(id)->head; }
    [[nodiscard]] InstanceId instance(const DomainId& id) const { return daemon->table.find(id)->instance->id; }
    /// The guest writes to both of its disks: to whatever its emulator really has open.
    void write(const DomainId& id, const std::string& place, const std::string& bytes) {
        const InstanceId guest = instance(id);
        if (outside.hypervisor.isPaused(guest)) {
            throw std::logic_error("a guest that stands still cannot write");
        }
        const auto active = outside.hypervisor.activeLayers(guest).value();
        outside.snapshots.write(*active.home, place, bytes);
        outside.snapshots.write(*active.system, "/" + place, bytes);
    }
    /// What the next start would find in the home.
    Content home(const DomainId& id) { return outside.snapshots.read(outside.snapshots.home(id).value()); }
    Content system(const DomainId& id) {
        return outside.snapshots.read(outside.snapshots.disksOf(instance(id)).value().system);
    }
    Held held(const SnapshotId& id) {
        const auto record = daemon->lineage.find(id);
        if (!record) {
            return {{{"node", "gone"}}, {}};
        }
        return {outside.snapshots.read(record->home), outside.snapshots.read(record->system)};
    }
    std::map<SnapshotId, Held> allHeld() {
        std::map<SnapshotId, Held> all;
        for (const auto& record : daemon->lineage.all()) {
            if (record.phase == core::SnapshotRecord::Phase::Present) {
                all[record.id] = held(record.id);
            }
        }
        return all;
    }
    [[nodiscard]] bool hasNode(const SnapshotId& id) const { return daemon->lineage.find(id).has_value(); }

    // ---- what must be true ------------------------------------------------------------------------------------------

    /// Everything that is wrong now; empty: nothing. No operation is under way.
    QString problems() {
        m_problems.clear();
        checkRecords();
        checkEmulators();
        for (const auto& entry : daemon->table.all()) {
            checkDomain(entry);
        }
        for (const auto& layer : outside.snapshots.strayLayers()) {
            say("nothing refers to " + layer.string());
        }
        return m_problems.join("; ");
    }

private:
    void boot() {
        daemon = std::make_unique<Daemon>(outside, m_patience);
        auto reconciled = daemon->reconciler.run();
        if (!reconciled) {
            throw std::logic_error("reconciler: " + reconciled.error().message);
        }
        report = std::move(*reconciled);
    }
    void say(const std::string& problem) { m_problems.append(QString::fromStdString(problem)); }

    /// Also among the deleted ones.
    [[nodiscard]] bool isKnown(const DomainId& id) const {
        const auto known = daemon->table.withDeleted();
        return std::any_of(known.begin(), known.end(), [&](const auto& entry) { return entry.record.id == id; });
    }
    void checkRecords() {
        for (const auto& record : got(outside.snapshotRecords.all())) {
            const std::string name = "snapshot " + core::shortId(record.id);
            if (record.phase == core::SnapshotRecord::Phase::Creating) {
                say(name + " is being made for ever");
            }
            if (record.phase != core::SnapshotRecord::Phase::Present) {
                continue;
            }
            if (const auto known = daemon->lineage.find(record.id); !known || *known != record) {
                say(name + " is another in the database");
            }
            if (outside.snapshots.findMissing(record)) {
                say(name + " has no files");
            }
            if (record.parent && !daemon->lineage.find(*record.parent)) {
                say(name + " has a parent that is gone");
            }
            const auto stored = outside.snapshots.all().value();
            if (std::find(stored.begin(), stored.end(), record) == stored.end()) {
                say(name + " has another manifest");
            }
        }
        for (const SnapshotId& id : got(outside.snapshots.onDisk())) {
            const auto records = daemon->lineage.all();
            if (std::none_of(records.begin(), records.end(), [&](const auto& record) { return record.id == id; })) {
                say("the folder of snapshot " + core::shortId(id) + " has no record");
            }
        }
        for (const auto& home : got(outside.store.homesOnDisk())) {
            if (!isKnown(home.id)) {
                say("a home without a domain");
            }
        }
        for (const auto& record : got(outside.domains.all())) {
            const auto settled =
                record.isInTrash() ? core::DomainRecord::Phase::Deleted : core::DomainRecord::Phase::Present;
            if (record.phase != settled || daemon->table.find(record.id).has_value() == record.isInTrash() ||
                !isKnown(record.id)) {
                say("domain " + record.name + " is between being and not being");
            }
        }
        for (const auto& definition : outside.definitions.domains) {
            if (!daemon->table.findByName(definition.owner, definition.name)) {
                say("a definition without a domain");
            }
        }
    }
    void checkEmulators() {
        const auto emulators = outside.hypervisor.list().value();
        const auto records = outside.instances.all().value();
        const auto folders = outside.store.instancesOnDisk().value();
        if (emulators.size() != records.size() || emulators.size() != folders.size()) {
            say(std::to_string(emulators.size()) + " emulators, " + std::to_string(records.size()) + " records, " +
                std::to_string(folders.size()) + " folders");
        }
        for (const auto& emulator : emulators) {
            if (emulator.isPaused) {
                say("a guest stands still");
            }
            if (!daemon->table.findByInstance(emulator.id)) {
                say("an emulator without a domain");
            }
            if (!outside.links.isOpen(emulator.id) || !outside.watch.isWatched(emulator.id)) {
                say("a guest that nobody watches or speaks to");
            }
        }
        for (const auto& record : records) {
            if (record.phase != core::InstancePhase::Running) {
                say("an instance between being and not being");
            }
        }
        // Memory goes on above exactly the disks that it was captured with.
        const auto started = outside.hypervisor.started();
        for (; m_startsSeen < started.size(); ++m_startsSeen) {
            const core::InstanceSpec& spec = started[m_startsSeen];
            const auto node = spec.memoryImage ? daemon->lineage.find(nodeOf(*spec.memoryImage)) : std::nullopt;
            if (node && (below(spec.system) != node->system.layers || below(*spec.home) != node->home.layers)) {
                say("the memory of snapshot " + core::shortId(node->id) + " went on above other disks");
            }
        }
    }
    void checkDomain(const core::DomainEntry& entry) {
        const std::string name = "domain " + entry.record.name;
        const bool isRunning = entry.state == core::DomainState::Running;
        if (isRunning != entry.instance.has_value()) {
            say(name + " is " + std::string(core::nameOf(entry.state)) + (entry.instance ? " with" : " without") +
                " an instance");
            return;
        }
        if (!isRunning && entry.state != core::DomainState::Stopped && entry.state != core::DomainState::Suspended &&
            (entry.state != core::DomainState::Failed || entry.reason.empty())) {
            say(name + " is " + std::string(core::nameOf(entry.state)) + " for ever");
        }
        const auto heads = outside.snapshotRecords.heads().value();
        const auto stored = heads.find(entry.record.id);
        if ((stored == heads.end() ? core::DomainHead{} : stored->second) != entry.head) {
            say(name + " stands elsewhere in the database");
        }
        if (entry.record.kind == core::DomainKind::Disposable) {
            return; // its home goes with its instance
        }
        const auto home = outside.snapshots.home(entry.record.id);
        if (!home) {
            say(name + " has no home");
            return;
        }
        if (entry.head.node != nearestNode(*home)) {
            say("the home of " + name + " lies above another node than its head");
        }
        if (entry.head.isSuspended) {
            checkSuspended(entry, *home);
        } else if (entry.state == core::DomainState::Suspended) {
            say(name + " is suspended in nothing");
        }
        if (isRunning) {
            const auto active = outside.hypervisor.activeLayers(entry.instance->id).value();
            const auto noted = outside.snapshots.disksOf(entry.instance->id).value();
            if (noted.home.layers.front().path != active.home || noted.system.layers.front().path != active.system) {
                say("the emulator of " + name + " writes to other files than is noted");
            }
            if (noted.home != *home) {
                say(name + " has two homes");
            }
        }
    }
    void checkSuspended(const core::DomainEntry& entry, const core::Disk& home) {
        const std::string name = "domain " + entry.record.name;
        const auto node = entry.head.node ? daemon->lineage.find(*entry.head.node) : std::nullopt;
        if (!node || !node->memory) {
            say(name + " is suspended in no memory");
            return;
        }
        // A failed start may have left it so: the next one goes on there.
        if (entry.instance ||
            (entry.state != core::DomainState::Suspended && entry.state != core::DomainState::Failed)) {
            say(name + " is suspended and " + std::string(core::nameOf(entry.state)));
        }
        if (below(home) != node->home.layers || !outside.snapshots.isUntouched(home.layers.front().path)) {
            say(name + " is suspended, but its disks are not as they were");
        }
    }
    static std::vector<core::DiskLayer> below(const core::Disk& disk) {
        return {disk.layers.begin() + 1, disk.layers.end()};
    }
    static SnapshotId nodeOf(const std::filesystem::path& image) {
        return SnapshotId::parse(image.stem().string()).value_or(SnapshotId());
    }
    std::optional<SnapshotId> nearestNode(const core::Disk& home) const {
        const auto lineage = daemon->lineage.all();
        for (const core::DiskLayer& layer : below(home)) {
            for (const auto& record : lineage) {
                if (record.phase == core::SnapshotRecord::Phase::Present && record.home.layers.front() == layer) {
                    return record.id;
                }
            }
        }
        return std::nullopt;
    }

    std::chrono::milliseconds m_patience;
    std::size_t m_startsSeen = 0;
    QStringList m_problems;
};

} // namespace bulkhead::tests

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/image_store.hpp"
#include "core/ports/snapshot_store.hpp"
#include "support/contract/image_store_contract.hpp"

#include <QTest>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// What stores of snapshots must do, that on disk and the fake. Each clause gets empty stores.
namespace bulkhead::tests {

struct SnapshotStores {
    core::SnapshotStore& snapshots;
    core::InstanceStore& instances;
    core::InstalledTemplate installed;
    uid_t emulatorUid = 0;
    /// Writes a number from 1 to 255 to one of a few places, as an emulator does.
    std::function<void(const core::DiskLayer& layer, int place, int value)> write;
    /// The number at a place; 0: nothing was written there.
    std::function<int(const core::Disk& disk, int place)> read;
};

/// A domain with a kept home, and what a test does with it.
class SampleDomain {
public:
    explicit SampleDomain(SnapshotStores& stores)
        : m_stores(stores) {
        const auto made = stores.instances.createHome(id, 1000, "work", 64 * kMiB);
        QVERIFY2(made, made ? "" : made.error().message.c_str());
    }

    const DomainId id = randomId<DomainId>();
    std::optional<InstanceId> instance;

    void start() {
        auto plan = plan_();
        const auto files = m_stores.instances.prepareInstance(plan);
        QVERIFY2(files, files ? "" : files.error().message.c_str());
        instance = plan.instance;
    }
    void stop() {
        QVERIFY(m_stores.instances.removeInstance(*instance, id));
        instance.reset();
    }
    [[nodiscard]] core::SnapshotSource source() const {
        return {instance, id, instance ? m_stores.emulatorUid : 0, kMiB};
    }
    core::Disk home() {
        auto disk = m_stores.snapshots.home(id);
        return disk ? *disk : core::Disk();
    }
    void write(int place, int value) { m_stores.write(home().layers.front(), place, value); }
    int read(int place) { return m_stores.read(home(), place); }

    [[nodiscard]] core::SnapshotRecord record(const SnapshotId& node) const {
        core::SnapshotRecord record;
        record.id = node;
        record.domain = id;
        record.owner = 1000;
        record.domainName = "work";
        record.createdAt = 1'700'000'000;
        record.reason = "manual";
        record.templateName = m_stores.installed.name;
        record.templateVersion = m_stores.installed.version;
        record.size = "small";
        return record;
    }
    /// All of a snapshot of its disks.
    core::SnapshotRecord snapshot() {
        const auto node = randomId<SnapshotId>();
        auto taken = m_stores.snapshots.begin(node, source()).and_then([&](const core::SnapshotFiles& files) {
            return m_stores.snapshots.commit(files, source()).and_then([&] {
                return m_stores.snapshots.publish(record(node), files);
            });
        });
        [&] { QVERIFY2(taken, taken ? "" : taken.error().message.c_str()); }();
        return taken.value_or(core::SnapshotRecord());
    }

private:
    [[nodiscard]] core::InstancePlan plan_() const {
        core::InstancePlan plan;
        plan.instance = randomId<InstanceId>();
        plan.templateName = m_stores.installed.name;
        plan.templateVersion = m_stores.installed.version;
        plan.keptHome = id;
        plan.homeSize = 64 * kMiB;
        plan.emulatorUid = m_stores.emulatorUid;
        return plan;
    }

    SnapshotStores& m_stores;
};

inline std::vector<SnapshotId> nodesOf(core::SnapshotStore& store) {
    auto ids = store.onDisk();
    return ids ? std::move(*ids) : std::vector<SnapshotId>();
}

inline bool holds(const std::vector<std::filesystem::path>& files, const core::DiskLayer& layer) {
    return std::find(files.begin(), files.end(), layer.path) != files.end();
}

using SnapshotStoreClause = std::function<void(SnapshotStores&)>;

inline std::vector<std::pair<std::string, SnapshotStoreClause>> snapshotStoreContract() {
    return {
        {"a new store is empty",
         [](SnapshotStores& stores) {
             QVERIFY(stores.snapshots.all()->empty());
             QVERIFY(stores.snapshots.onDisk()->empty());
             QVERIFY(stores.snapshots.filesInUse()->empty());
             QVERIFY(stores.snapshots.remove(randomId<SnapshotId>()));
             QCOMPARE(stores.snapshots.home(randomId<DomainId>()).error().code, ErrorCode::NotFound);
             QCOMPARE(stores.snapshots.disksOf(randomId<InstanceId>()).error().code, ErrorCode::NotFound);
         }},
        {"a snapshot of a stopped domain holds its home and is found again",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.write(0, 1);
             const auto made = domain.snapshot();
             QVERIFY(made.phase == core::SnapshotRecord::Phase::Present);
             QVERIFY(made.system.layers.empty());
             QCOMPARE(made.home.layers.size(), std::size_t{1});
             QVERIFY(made.sizeOnDisk > 0);
             QVERIFY(*stores.snapshots.all() == std::vector{made});
             QVERIFY(*stores.snapshots.onDisk() == std::vector{made.id});
             QCOMPARE(domain.home().layers.size(), std::size_t{2});
             QVERIFY(domain.home().layers[1] == made.home.layers[0]);
             QVERIFY(holds(*stores.snapshots.filesInUse(), made.home.layers[0]));
             QVERIFY(!holds(*stores.snapshots.filesInUse(), domain.home().layers[0]));
             QVERIFY(!stores.snapshots.findMissing(made));
             QVERIFY(!stores.snapshots.findDamage(made));
             QCOMPARE(domain.read(0), 1);
         }},
        {"what comes after a snapshot is not in it",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.write(0, 1);
             const auto first = domain.snapshot();
             domain.write(0, 2);
             domain.write(1, 3);
             const auto second = domain.snapshot();
             domain.write(0, 4);
             QCOMPARE(second.home.layers.size(), std::size_t{2});
             QCOMPARE(stores.read(first.home, 0), 1);
             QCOMPARE(stores.read(first.home, 1), 0);
             QCOMPARE(stores.read(second.home, 0), 2);
             QCOMPARE(domain.read(0), 4);
             QCOMPARE(domain.read(1), 3);
             QVERIFY(!stores.snapshots.findDamage(first));
             QVERIFY(!stores.snapshots.findDamage(second));
         }},
        {"a home goes back to a snapshot as often as one likes",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.write(0, 1);
             const auto node = domain.snapshot();
             for (int i = 2; i < 5; ++i) {
                 domain.write(0, i);
                 domain.write(1, i);
                 const auto reset = stores.snapshots.resetHome(domain.id, 1000, "work", node.home);
                 QVERIFY2(reset, reset ? "" : reset.error().message.c_str());
                 QCOMPARE(domain.read(0), 1);
                 QCOMPARE(domain.read(1), 0);
             }
             QVERIFY(*stores.instances.homesOnDisk() == (std::vector<core::HomeOnDisk>{{domain.id, 1000, "work"}}));
             domain.start();
             domain.stop();
             QCOMPARE(domain.read(0), 1);
         }},
        {"another domain begins with a snapshot's home",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.write(0, 1);
             const auto node = domain.snapshot();
             const auto fork = randomId<DomainId>();
             QVERIFY(stores.snapshots.resetHome(fork, 1001, "child", node.home));
             const auto home = stores.snapshots.home(fork);
             QVERIFY(home);
             QCOMPARE(stores.read(*home, 0), 1);
             stores.write(home->layers.front(), 0, 9);
             QCOMPARE(domain.read(0), 1);
             QCOMPARE(stores.read(node.home, 0), 1);
             const auto homes = *stores.instances.homesOnDisk();
             QVERIFY(std::find(homes.begin(), homes.end(), core::HomeOnDisk{fork, 1001, "child"}) != homes.end());
             // The domain that it came from may go.
             QVERIFY(stores.instances.removeHome(domain.id));
             QCOMPARE(stores.read(*stores.snapshots.home(fork), 0), 9);
             QVERIFY(!stores.snapshots.findDamage(node));
         }},
        {"a running domain goes on in new layers",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.start();
             domain.write(0, 1);
             stores.write(stores.snapshots.disksOf(*domain.instance)->system.layers.front(), 0, 5);
             const auto node = domain.snapshot();
             QCOMPARE(node.system.layers.size(), std::size_t{2});
             const auto disks = stores.snapshots.disksOf(*domain.instance);
             QVERIFY(disks);
             QCOMPARE(disks->system.layers.size(), std::size_t{3});
             QVERIFY(disks->system.layers[1] == node.system.layers[0]);
             QVERIFY(disks->home == domain.home());
             domain.write(0, 2);
             stores.write(disks->system.layers.front(), 0, 6);
             QCOMPARE(stores.read(node.home, 0), 1);
             QCOMPARE(stores.read(node.system, 0), 5);
             const auto again = domain.snapshot();
             QCOMPARE(again.system.layers.size(), std::size_t{3});
             domain.stop();
             QCOMPARE(domain.read(0), 2);
             QVERIFY(!stores.snapshots.findDamage(node));
             QVERIFY(!stores.snapshots.findDamage(again));
             QVERIFY(!holds(*stores.snapshots.filesInUse(), node.system.layers[0]));
             QVERIFY(holds(*stores.snapshots.filesInUse(), node.home.layers[0]));
             domain.start();
             domain.stop();
         }},
        {"a home that goes with its instance is taken along and begun from",
         [](SnapshotStores& stores) {
             core::InstancePlan plan;
             plan.instance = randomId<InstanceId>();
             plan.templateName = stores.installed.name;
             plan.templateVersion = stores.installed.version;
             plan.homeSize = 64 * kMiB;
             plan.emulatorUid = stores.emulatorUid;
             QVERIFY(stores.instances.prepareInstance(plan));
             stores.write(stores.snapshots.disksOf(plan.instance)->home.layers.front(), 0, 1);
             const core::SnapshotSource source{plan.instance, std::nullopt, stores.emulatorUid, 0};
             core::SnapshotRecord record;
             record.id = randomId<SnapshotId>();
             record.domain = randomId<DomainId>();
             const auto files = stores.snapshots.begin(record.id, source);
             QVERIFY2(files, files ? "" : files.error().message.c_str());
             QVERIFY(stores.snapshots.commit(*files, source));
             const auto node = stores.snapshots.publish(record, *files);
             QVERIFY2(node, node ? "" : node.error().message.c_str());
             QVERIFY(stores.instances.removeInstance(plan.instance, std::nullopt));
             plan.instance = randomId<InstanceId>();
             plan.systemBase = node->system;
             plan.homeBase = node->home;
             plan.memory = core::MemoryImageRef{node->system.layers.back().path, std::string(64, 'a')};
             const auto child = stores.instances.prepareInstance(plan);
             QVERIFY2(child, child ? "" : child.error().message.c_str());
             const auto disks = stores.snapshots.disksOf(plan.instance);
             QVERIFY(disks->home == child->home && disks->system == child->system && disks->memory == plan.memory);
             QCOMPARE(child->system.layers.size(), std::size_t{3});
             QCOMPARE(stores.read(child->home, 0), 1);
             QVERIFY(holds(*stores.snapshots.filesInUse(), node->home.layers[0]));
             QVERIFY(holds(*stores.snapshots.filesInUse(), {plan.memory->file, core::DiskFormat::Raw}));
             QCOMPARE(stores.snapshots.remove(node->id).error().code, ErrorCode::Busy);
             QVERIFY(stores.instances.removeInstance(plan.instance, std::nullopt));
             QVERIFY(stores.snapshots.remove(node->id));
             QVERIFY(stores.snapshots.onDisk()->empty());
         }},
        {"a snapshot that was only begun goes without a trace",
         [](SnapshotStores& stores) {
             for (const bool isRunning : {false, true}) {
                 SampleDomain domain(stores);
                 if (isRunning) {
                     domain.start();
                 }
                 domain.write(0, 1);
                 const auto before = domain.home();
                 const auto node = randomId<SnapshotId>();
                 QVERIFY(stores.snapshots.begin(node, domain.source()));
                 QVERIFY(domain.home() == before);
                 QVERIFY(stores.snapshots.all()->empty());
                 QVERIFY(*stores.snapshots.onDisk() == std::vector{node});
                 QCOMPARE(stores.snapshots.begin(node, domain.source()).error().code, ErrorCode::AlreadyExists);
                 QVERIFY(stores.snapshots.remove(node));
                 QVERIFY(stores.snapshots.onDisk()->empty());
                 QVERIFY(domain.home() == before);
                 QCOMPARE(domain.read(0), 1);
             }
         }},
        {"a snapshot that was committed stays below its domain, or is taken back",
         [](SnapshotStores& stores) {
             for (const bool isRunning : {false, true}) {
                 SampleDomain domain(stores);
                 if (isRunning) {
                     domain.start();
                 }
                 domain.write(0, 1);
                 const auto before = domain.home();
                 const auto node = randomId<SnapshotId>();
                 const auto files = stores.snapshots.begin(node, domain.source());
                 QVERIFY(files);
                 QVERIFY(stores.snapshots.commit(*files, domain.source()));
                 QCOMPARE(domain.home().layers.size(), before.layers.size() + 1);
                 QCOMPARE(domain.read(0), 1);
                 QCOMPARE(stores.snapshots.remove(node).error().code, ErrorCode::Busy);
                 const auto back = stores.snapshots.rollBack(*files, domain.source());
                 QVERIFY2(back, back ? "" : back.error().message.c_str());
                 QVERIFY(domain.home() == before);
                 if (isRunning) {
                     QCOMPARE(stores.snapshots.disksOf(*domain.instance)->system.layers.size(), std::size_t{2});
                 }
                 QVERIFY(stores.snapshots.remove(node));
                 QCOMPARE(domain.read(0), 1);
                 domain.write(0, 2);
                 domain.snapshot();
                 QCOMPARE(domain.read(0), 2);
                 for (const auto& id : nodesOf(stores.snapshots)) {
                     QVERIFY(!stores.snapshots.remove(id));
                 }
                 if (isRunning) {
                     domain.stop();
                 }
                 QVERIFY(stores.instances.removeHome(domain.id));
                 for (const auto& id : nodesOf(stores.snapshots)) {
                     QVERIFY(stores.snapshots.remove(id));
                 }
             }
         }},
        {"a domain lives on above a snapshot that was never finished",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.start();
             domain.write(0, 1);
             const auto node = randomId<SnapshotId>();
             const auto files = stores.snapshots.begin(node, domain.source());
             QVERIFY(stores.snapshots.commit(*files, domain.source()));
             domain.write(1, 2); // the emulator writes to the new layer
             domain.stop();
             QCOMPARE(stores.snapshots.remove(node).error().code, ErrorCode::Busy);
             domain.start();
             const auto later = domain.snapshot();
             QVERIFY(!stores.snapshots.findMissing(later));
             domain.stop();
             QCOMPARE(domain.read(0), 1);
             QCOMPARE(domain.read(1), 2);
             QCOMPARE(stores.snapshots.remove(node).error().code, ErrorCode::Busy);
         }},
        {"what the emulator really writes to counts",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.start();
             const auto before = stores.snapshots.disksOf(*domain.instance);
             const auto node = randomId<SnapshotId>();
             const auto files = stores.snapshots.begin(node, domain.source());
             QVERIFY(stores.snapshots.commit(*files, domain.source()));
             const core::Machines::NewLayers old{before->system.layers[0].path, before->home.layers[0].path};
             const core::Machines::NewLayers now{files->newSystem, files->newHome};
             QVERIFY(stores.snapshots.settle(*domain.instance, domain.id, now));
             QCOMPARE(stores.snapshots.disksOf(*domain.instance)->system.layers[0].path, *files->newSystem);
             const auto settled = stores.snapshots.settle(*domain.instance, domain.id, old);
             QVERIFY2(settled, settled ? "" : settled.error().message.c_str());
             QVERIFY(stores.snapshots.disksOf(*domain.instance)->system == before->system);
             QVERIFY(stores.snapshots.disksOf(*domain.instance)->home == before->home);
             QVERIFY(domain.home() == before->home);
             QVERIFY(stores.snapshots.remove(node));
             const core::Machines::NewLayers strange{"/nowhere/a", "/nowhere/b"};
             QVERIFY(!stores.snapshots.settle(*domain.instance, domain.id, strange));
             domain.write(0, 1);
             domain.stop();
             QCOMPARE(domain.read(0), 1);
         }},
        {"an emulator that has ended with its snapshot does not go on in it",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.start();
             const auto before = stores.snapshots.disksOf(*domain.instance);
             auto node = domain.snapshot(); // but no layers were switched
             const core::Machines::NewLayers old{before->system.layers[0].path, before->home.layers[0].path};
             const auto noted = stores.snapshots.disksOf(*domain.instance);
             QCOMPARE(stores.snapshots.settle(*domain.instance, domain.id, old).error().code, ErrorCode::WrongState);
             QVERIFY(stores.snapshots.disksOf(*domain.instance)->home == noted->home);
             QVERIFY(domain.home() == noted->home);
             // Unless nobody will ever see the snapshot.
             node.phase = core::SnapshotRecord::Phase::Removed;
             QVERIFY(stores.snapshots.update(node));
             QVERIFY(stores.snapshots.settle(*domain.instance, domain.id, old));
             QVERIFY(domain.home() == before->home);
             QVERIFY(stores.snapshots.remove(node.id));
             domain.stop();
             domain.write(0, 1);
             QCOMPARE(domain.read(0), 1);
         }},
        {"a home that somebody else has claimed is left alone",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             const auto node = domain.snapshot();
             domain.start();
             const core::SnapshotSource stopped{std::nullopt, domain.id, 0, 0};
             QCOMPARE(stores.snapshots.begin(randomId<SnapshotId>(), stopped).error().code, ErrorCode::Busy);
             QCOMPARE(stores.snapshots.resetHome(domain.id, 1000, "work", node.home).error().code, ErrorCode::Busy);
             QCOMPARE(stores.snapshots.begin(randomId<SnapshotId>(), {}).error().code, ErrorCode::InvalidArgument);
             QCOMPARE(stores.snapshots.resetHome(randomId<DomainId>(), 1000, "x", {}).error().code,
                      ErrorCode::InvalidArgument);
         }},
        {"an instance that ended takes its new layers along",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.start();
             domain.write(0, 1);
             const auto source = domain.source();
             const auto files = stores.snapshots.begin(randomId<SnapshotId>(), source);
             QVERIFY(files);
             domain.stop();
             QVERIFY(!stores.snapshots.commit(*files, source));
             QCOMPARE(domain.read(0), 1);
         }},
        {"nodes go when nothing lies above them",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             domain.write(0, 1);
             const auto first = domain.snapshot();
             const auto second = domain.snapshot();
             QVERIFY(stores.snapshots.resetHome(domain.id, 1000, "work", first.home));
             QCOMPARE(stores.snapshots.remove(first.id).error().code, ErrorCode::Busy);
             QVERIFY(stores.snapshots.remove(second.id));
             QCOMPARE(stores.snapshots.remove(first.id).error().code, ErrorCode::Busy);
             QVERIFY(stores.instances.removeHome(domain.id));
             QVERIFY(stores.snapshots.remove(first.id));
             QVERIFY(stores.snapshots.all()->empty());
             QVERIFY(stores.snapshots.findMissing(first).has_value());
         }},
        {"a node below another stays although no home needs it",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             const auto first = domain.snapshot();
             const auto second = domain.snapshot();
             QVERIFY(stores.instances.removeHome(domain.id));
             QCOMPARE(stores.snapshots.remove(first.id).error().code, ErrorCode::Busy);
             QVERIFY(stores.snapshots.remove(second.id));
             QVERIFY(stores.snapshots.remove(first.id));
         }},
        {"what may change of a record changes",
         [](SnapshotStores& stores) {
             SampleDomain domain(stores);
             auto node = domain.snapshot();
             node.label = "before \"the\" change";
             node.isPinned = true;
             node.suspect = "its memory is damaged";
             node.phase = core::SnapshotRecord::Phase::Removed;
             node.parent = randomId<SnapshotId>();
             QVERIFY(stores.snapshots.update(node));
             QVERIFY(*stores.snapshots.all() == std::vector{node});
             node.id = randomId<SnapshotId>();
             QCOMPARE(stores.snapshots.update(node).error().code, ErrorCode::NotFound);
         }},
    };
}

} // namespace bulkhead::tests

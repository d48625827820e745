// SPDX-License-Identifier: Apache-2.0
// Guests that look into two snapshots: which disks they get, who may, and what stays for as long.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Content = SnapshotWorld::Content;

/// A domain that ran, was taken a snapshot of, wrote something and was taken another one of.
struct World : SnapshotWorld {
    DomainId work;
    SnapshotId before;
    SnapshotId after;
    World() {
        work = create("work");
        start(work);
        write(work, "file", "one");
        before = take(work);
        write(work, "file", "two");
        after = take(work);
    }
    DomainId inspect(const SnapshotId& a, const SnapshotId& b) {
        const auto id = daemon->snapshots.inspect(kAlice, a, b).value();
        done(daemon->lifecycle.startDisposable(kAlice, id));
        return id;
    }
    std::vector<InspectedDisk> disks() { return outside.hypervisor.started().back().inspected; }
    /// What the disk of that serial shows, without what the guest itself has above it.
    Content shown(const std::string& serial) {
        for (const InspectedDisk& inspected : disks()) {
            if (inspected.serial == serial) {
                return outside.snapshots.read(inspected.disk);
            }
        }
        return {{"no such disk", serial}};
    }
    ErrorCode refusal(const Caller& caller, const SnapshotId& a, const SnapshotId& b) {
        const auto made = daemon->snapshots.inspect(caller, a, b);
        return made ? ErrorCode::InvalidArgument : made.error().code;
    }
};

} // namespace

class TestInspection : public QObject {
    Q_OBJECT

private slots:
    void bothNodes_areShownAsTheyAre() {
        World world;
        world.inspect(world.before, world.after);
        QCOMPARE(world.disks().size(), std::size_t{4});
        QVERIFY(world.shown("a-home") == (Content{{"file", "one"}}));
        QVERIFY(world.shown("b-home") == (Content{{"file", "two"}}));
        QVERIFY(world.shown("a-system") == (Content{{"/file", "one"}}));
        QVERIFY(world.shown("b-system") == (Content{{"/file", "two"}}));
        const auto spec = world.outside.hypervisor.started().back();
        QVERIFY(!spec.memoryImage); // a machine in memory has no place for them
        for (const InspectedDisk& inspected : spec.inspected) {
            const auto& top = inspected.disk.layers.front().path;
            QVERIFY2(top.string().find(spec.id.text()) != std::string::npos, top.c_str()); // its own, above theirs
        }
        QCOMPARE(world.problems(), QString());
    }

    void whatIsTheSame_isLeftOut() {
        World world;
        world.stop(world.work); // from now on there is no system disk but the template's
        const auto one = world.take(world.work);
        world.start(world.work);
        world.write(world.work, "file", "three");
        world.stop(world.work);
        const auto other = world.take(world.work);
        world.inspect(one, other);
        QCOMPARE(world.disks().size(), std::size_t{2});
        QVERIFY(world.shown("a-home") == (Content{{"file", "two"}}));
        QVERIFY(world.shown("b-home") == (Content{{"file", "three"}}));

        world.inspect(one, one);
        QVERIFY(world.disks().empty());
    }

    void stoppedDomain_hasItsTemplatesSystem() {
        World world;
        world.stop(world.work);
        const auto stopped = world.take(world.work);
        world.inspect(world.after, stopped);
        QVERIFY(world.shown("a-system") == (Content{{"/file", "two"}}));
        QVERIFY(world.shown("b-system").empty());
    }

    void forksOfOneDomain_areCompared() {
        World world;
        const auto child = world.fork(world.before, "child");
        world.start(child);
        world.write(child, "file", "of the child");
        const auto node = world.take(child);
        world.inspect(world.after, node);
        QVERIFY(world.shown("a-home") == (Content{{"file", "two"}}));
        QVERIFY(world.shown("b-home") == (Content{{"file", "of the child"}}));
    }

    void othersNodes_doNotExist() {
        World world;
        QCOMPARE(world.refusal(kMallory, world.before, world.after), ErrorCode::NotFound);
        QCOMPARE(world.refusal(kAlice, world.before, randomId<SnapshotId>()), ErrorCode::NotFound);
        QCOMPARE(world.daemon->table.all().size(), std::size_t{1});
    }

    void damagedNode_isRefused() {
        World world;
        world.outside.snapshots.missing = DamagedPart{"/fake/home.qcow2", "it has another size"};
        QCOMPARE(world.refusal(kAlice, world.before, world.after), ErrorCode::HostFailure);
        QCOMPARE(world.daemon->table.all().size(), std::size_t{1});
    }

    void nodes_stayForAsLong() {
        World world;
        world.revert(world.before,
                     {.keepsPresent = false, .isDiskOnly = false}); // so that the domain is not in the way
        const auto id = world.inspect(world.before, world.after);
        for (const SnapshotId& node : {world.before, world.after}) {
            const auto refused = world.daemon->snapshots.remove(kAlice, node, true);
            QCOMPARE(refused.error().code, ErrorCode::WrongState);
        }
        const auto exec = world.daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value().id;
        world.daemon->lifecycle.onExecFinished(world.instance(id), exec, 0);
        QTRY_VERIFY(!world.daemon->table.find(id));
        world.remove(world.after);
        QVERIFY(!world.daemon->lineage.find(world.after));
        QCOMPARE(world.problems(), QString());
    }

    void daemonThatDies_leavesNothingOfIt() {
        World world;
        const auto id = world.inspect(world.before, world.after);
        world.restart(); // nothing ran in it yet
        QTRY_VERIFY(!world.daemon->table.find(id));
        QVERIFY(world.daemon->lineage.find(world.before));
        QCOMPARE(world.problems(), QString());
    }
};

QTEST_GUILESS_MAIN(TestInspection)
#include "tst_inspection.moc"

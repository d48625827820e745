// SPDX-License-Identifier: Apache-2.0
// Snapshots that nobody asks for: what a stop leaves, what a home was before an upgrade of its template, and what goes
// when they are many.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

#include <algorithm>
#include <set>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Content = SnapshotWorld::Content;
using State = DomainState;

struct World : SnapshotWorld {
    DomainId work;
    explicit World(bool isOnStop = false, bool livesOn = false)
        : SnapshotWorld(std::chrono::milliseconds(livesOn ? 200 : -1)) {
        work = create("work");
        if (isOnStop) {
            set("snapshot-on-stop", "true");
        }
        start(work);
        write(work, "file", "one");
    }
    void set(const std::string& key, const std::string& value) {
        if (auto done = daemon->domains.setDefinition(kAlice, work, {{key, value}}); !done) {
            throw std::logic_error(done.error().message);
        }
    }
    StopResult stopped() { return std::get<StopResult>(done(daemon->lifecycle.stop(kAlice, work, {})).result); }
    std::vector<SnapshotRecord> nodes() { return daemon->snapshots.list(kAlice).value(); }
    std::vector<SnapshotRecord> nodesOf(std::string_view reason) {
        auto found = nodes();
        std::erase_if(found, [&](const SnapshotRecord& node) { return node.reason != reason; });
        return found;
    }
    /// The version that the domain runs with.
    std::string version() { return daemon->table.find(work)->instance->templateVersion; }
    std::string ranWith() { return outside.database.domains.at(work).ranWith.version; }
    /// Builds one, as people do.
    std::string build() {
        done(daemon->templates.build(kRoot, "minimal", {.force = true}));
        return daemon->templates.newestVersion("minimal").value();
    }
};

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

class TestAutomaticSnapshots : public QObject {
    Q_OBJECT

private slots:
    // ---- what a stop leaves -----------------------------------------------------------------------------------------

    void stop_leavesASnapshot_ofOneThatAsksForIt() {
        World world(true);
        const auto result = world.stopped();
        QVERIFY(result.snapshot && result.note.empty());
        const auto node = world.daemon->lineage.find(*result.snapshot).value();
        QCOMPARE(node.reason, std::string(kReasonOnStop));
        QCOMPARE(node.kind, SnapshotKind::Disk);
        QCOMPARE(world.held(node.id).home, (Content{{"file", "one"}}));
        QCOMPARE(world.state(world.work), State::Stopped);
        QCOMPARE(world.head(world.work), (DomainHead{node.id, false}));
        // A later session can be undone by it.
        world.start(world.work);
        world.write(world.work, "file", "two");
        world.revert(node.id);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void stop_leavesNone_data() {
        QTest::addColumn<bool>("isAsked");
        QTest::addColumn<bool>("isForced");
        QTest::newRow("it does not ask") << false << false;
        QTest::newRow("its power is cut") << true << true;
    }
    void stop_leavesNone() {
        QFETCH(bool, isAsked);
        QFETCH(bool, isForced);
        World world(isAsked);
        world.done(world.daemon->lifecycle.stop(kAlice, world.work, {.force = isForced}));
        QVERIFY(world.nodes().empty());
        // There is nothing to leave.
        world.done(world.daemon->lifecycle.stop(kAlice, world.work, {}));
        QVERIFY(world.nodes().empty());
        QCOMPARE(world.problems(), QString());
    }
    void discard_leavesNone() {
        World world(true);
        world.take(world.work);
        world.done(world.daemon->snapshots.discard(kAlice, world.work));
        QCOMPARE(world.nodes().size(), std::size_t{1});
    }
    void stop_isDone_whenItsSnapshotFails() {
        World world(true);
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "full"};
        const auto result = world.stopped();
        QVERIFY(!result.snapshot);
        QVERIFY2(contains(result.note, "full"), result.note.c_str());
        QCOMPARE(world.state(world.work), State::Stopped);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void guestThatPowersOff_leavesOneToo() {
        World world(true);
        const InstanceId instance = world.instance(world.work);
        world.outside.hypervisor.endEmulator(instance);
        world.outside.watch.end(instance);
        QTRY_COMPARE(world.nodesOf(kReasonOnStop).size(), std::size_t{1});
        QCOMPARE(world.held(world.nodes().front().id).home, (Content{{"file", "one"}}));
    }
    void stopWithASnapshot_cutAnywhere() {
        std::set<std::string> cuts;
        for (const auto cut : {CallGate::Cut::Before, CallGate::Cut::After, CallGate::Cut::Once}) {
            unsigned at = 0;
            for (bool wasCut = true; wasCut;) {
                World world(true, cut == CallGate::Cut::Once);
                world.outside.gate.arm(cut, ++at);
                const auto info = world.end(world.daemon->lifecycle.stop(kAlice, world.work, {}));
                wasCut = !world.outside.gate.cutAt().empty();
                const std::string where = std::to_string(at) + ": " + world.outside.gate.cutAt();
                cuts.insert(world.outside.gate.cutAt());
                const auto* const told = std::get_if<StopResult>(&info.result);
                const auto snapshot =
                    info.state == JobState::Succeeded && told != nullptr ? told->snapshot : std::nullopt;
                world.restart();
                // What was told is there; the home is what the guest left; nothing is half there.
                QVERIFY2(!snapshot || world.held(*snapshot).home == (Content{{"file", "one"}}), where.c_str());
                QVERIFY2(world.nodes().size() <= 1, where.c_str());
                QVERIFY2(info.state != JobState::Succeeded || world.state(world.work) != State::Running, where.c_str());
                QVERIFY2(world.home(world.work) == (Content{{"file", "one"}}), where.c_str());
                const QString problems = world.problems();
                QVERIFY2(problems.isEmpty(), (where + ": " + problems.toStdString()).c_str());
                world.start(world.work);
            }
            QVERIFY(at > 5);
        }
        QVERIFY(cuts.contains("SnapshotStore::publish"));
    }

    // ---- before an upgrade ------------------------------------------------------------------------------------------

    void firstStartWithANewerTemplate_keepsTheHomeBefore() {
        World world;
        const std::string old = world.version();
        QCOMPARE(world.ranWith(), old);
        world.stop(world.work);
        world.start(world.work);
        QVERIFY(world.nodes().empty()); // of the same version
        world.stop(world.work);
        const std::string newer = world.build();
        QVERIFY(newer != old);
        QVERIFY(world.start(world.work).note.empty());
        QCOMPARE(world.version(), newer);
        QCOMPARE(world.ranWith(), newer);
        const auto kept = world.nodesOf(kReasonBeforeUpgrade);
        QCOMPARE(kept.size(), std::size_t{1});
        QCOMPARE(kept.front().templateVersion, old);
        world.write(world.work, "file", "migrated");
        QCOMPARE(world.held(kept.front().id).home, (Content{{"file", "one"}}));
        // Once for each version.
        world.stop(world.work);
        world.start(world.work);
        QCOMPARE(world.nodes().size(), std::size_t{1});
        QCOMPARE(world.problems(), QString());
    }
    void revertToBeforeAnUpgrade_usesThatVersion_data() {
        QTest::addColumn<bool>("isRunning");
        QTest::newRow("running") << true;
        QTest::newRow("stopped") << false;
    }
    void revertToBeforeAnUpgrade_usesThatVersion() {
        QFETCH(bool, isRunning);
        World world;
        const std::string old = world.version();
        world.stop(world.work);
        const std::string newer = world.build();
        world.start(world.work);
        world.write(world.work, "file", "migrated");
        const auto node = world.nodesOf(kReasonBeforeUpgrade).front().id;
        // Versions come and go meanwhile; that of the node stays for as long.
        for (int i = 0; i < 3; ++i) {
            world.build();
        }
        if (!isRunning) {
            world.stop(world.work);
        }
        world.revert(node);
        if (!isRunning) {
            QCOMPARE(world.state(world.work), State::Stopped);
            QVERIFY(world.head(world.work).isAtVersion);
            world.restart();
            QVERIFY(world.head(world.work).isAtVersion);
            world.start(world.work);
        }
        QCOMPARE(world.version(), old);
        QVERIFY(contains(world.outside.hypervisor.started().back().kernel.string(), old));
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QVERIFY(!world.head(world.work).isAtVersion);
        QVERIFY(newer != old);
        // The start after it is an upgrade again, and keeps again what was before.
        world.write(world.work, "file", "two");
        world.stop(world.work);
        const auto before = world.nodesOf(kReasonBeforeUpgrade).size();
        world.start(world.work);
        QVERIFY(world.version() != old);
        QCOMPARE(world.nodesOf(kReasonBeforeUpgrade).size(), before + 1);
        QCOMPARE(world.held(world.head(world.work).node.value()).home, (Content{{"file", "two"}}));
        QCOMPARE(world.problems(), QString());
    }
    void forkOfBeforeAnUpgrade_usesThatVersion() {
        World world;
        const std::string old = world.version();
        world.stop(world.work);
        world.build();
        world.start(world.work);
        const auto fork = world.fork(world.nodesOf(kReasonBeforeUpgrade).front().id, "fork");
        world.start(fork);
        QCOMPARE(world.daemon->table.find(fork)->instance->templateVersion, old);
        QCOMPARE(world.problems(), QString());
    }
    void versionsOfNodesBeforeAnUpgrade_areInUse() {
        World world;
        world.stop(world.work);
        const std::string old = world.ranWith();
        world.build();
        world.start(world.work);
        const auto node = world.nodesOf(kReasonBeforeUpgrade).front().id;
        world.stop(world.work);
        const auto isThere = [&] { return world.outside.templates.has("minimal", old); };
        for (int i = 0; i < 4; ++i) {
            world.build();
        }
        QVERIFY(isThere());
        world.remove(node);
        world.build();
        QVERIFY(!isThere());
    }
    /// The home is what matters: a domain that was not started for several versions gets that back, with the newest.
    void versionThatWasGoneBefore_isNotWaitedFor() {
        World world;
        world.stop(world.work);
        for (int i = 0; i < 3; ++i) {
            world.build();
        }
        world.start(world.work);
        world.write(world.work, "file", "migrated");
        world.stop(world.work);
        world.revert(world.nodesOf(kReasonBeforeUpgrade).front().id);
        const auto started = world.start(world.work);
        QVERIFY2(contains(started.note, "is gone"), started.note.c_str());
        QCOMPARE(world.version(), world.daemon->templates.newestVersion("minimal").value());
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void upgrade_isDone_whenTheHomeCannotBeKept() {
        World world;
        world.stop(world.work);
        const std::string newer = world.build();
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "full"};
        const auto started = world.start(world.work);
        QVERIFY2(contains(started.note, "full"), started.note.c_str());
        QCOMPARE(world.version(), newer);
        QCOMPARE(world.problems(), QString());
    }
    void goingOnInMemory_isNoUpgrade() {
        World world;
        const std::string old = world.version();
        world.suspend(world.work);
        world.build();
        world.start(world.work);
        QCOMPARE(world.version(), old);
        QVERIFY(world.nodesOf(kReasonBeforeUpgrade).empty());
        QCOMPARE(world.problems(), QString());
    }
    void upgrade_cutAnywhere() {
        for (const auto cut : {CallGate::Cut::Before, CallGate::Cut::After, CallGate::Cut::Once}) {
            unsigned at = 0;
            for (bool wasCut = true; wasCut;) {
                World world(false, cut == CallGate::Cut::Once);
                world.stop(world.work);
                world.build();
                world.outside.gate.arm(cut, ++at);
                world.end(world.daemon->lifecycle.start(kAlice, world.work));
                wasCut = !world.outside.gate.cutAt().empty();
                const std::string where = std::to_string(at) + ": " + world.outside.gate.cutAt();
                world.restart();
                if (world.state(world.work) != State::Running) {
                    world.start(world.work);
                }
                world.write(world.work, "file", "migrated");
                // Whatever was cut, it did not run with the newer one before it was kept, unless that failed.
                const auto kept = world.nodesOf(kReasonBeforeUpgrade);
                QVERIFY2(cut == CallGate::Cut::Once || !kept.empty(), where.c_str());
                for (const auto& node : kept) {
                    QVERIFY2(world.held(node.id).home == (Content{{"file", "one"}}), where.c_str());
                }
                const QString problems = world.problems();
                QVERIFY2(problems.isEmpty(), (where + ": " + problems.toStdString()).c_str());
            }
            QVERIFY(at > 10);
        }
    }

    // ---- retention --------------------------------------------------------------------------------------------------

    void manyStops_leaveTheLastOnes() {
        World world(true);
        const auto mine = world.take(world.work);
        std::vector<SnapshotId> kept;
        const std::size_t most = RetentionRule{}.mostAutomatic;
        for (std::size_t i = 0; i < most + 3; ++i) {
            world.outside.clock.advance(60);
            world.write(world.work, "file", std::to_string(i));
            kept.push_back(world.stopped().snapshot.value());
            if (i == 0) {
                QVERIFY(world.daemon->snapshots.setPinned(kAlice, kept.front(), true).has_value());
            }
            world.start(world.work);
        }
        QVERIFY(world.hasNode(mine) && world.hasNode(kept[0]));
        QVERIFY(!world.hasNode(kept[1]));
        QCOMPARE(world.nodesOf(kReasonOnStop).size(), most + 2); // the pinned one and the head are beside the rule
        // What others lie above is as it was.
        QCOMPARE(world.held(kept[0]).home, (Content{{"file", "0"}}));
        QCOMPARE(world.held(kept[3]).home, (Content{{"file", "3"}}));
        QCOMPARE(world.problems(), QString());
    }
    void manySuspensions_keepTheMemoryOfTheLastOnes() {
        World world;
        std::vector<SnapshotId> kept;
        const std::size_t most = RetentionRule{}.mostAutomatic;
        for (std::size_t i = 0; i < most + 3; ++i) {
            world.outside.clock.advance(60);
            world.write(world.work, "file", std::to_string(i));
            world.suspend(world.work);
            kept.push_back(world.head(world.work).node.value());
            world.start(world.work);
        }
        QVERIFY(!world.hasNode(kept[0]));
        QVERIFY(world.outside.snapshots.withoutMemory.contains(kept[0]));
        QVERIFY(!world.outside.snapshots.withoutMemory.contains(kept.back()));
        QCOMPARE(world.home(world.work), (Content{{"file", std::to_string(most + 2)}}));
        QCOMPARE(world.problems(), QString());
    }
};

QTEST_GUILESS_MAIN(TestAutomaticSnapshots)
#include "tst_automatic_snapshots.moc"

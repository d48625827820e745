// SPDX-License-Identifier: Apache-2.0
// Disposables that begin in a snapshot, and those that are kept: what stays of them, and when all of it goes.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Content = SnapshotWorld::Content;
using State = DomainState;
using Disposable = SnapshotService::DisposableOptions;

/// A domain that runs and has written something, and disposables besides.
struct World : SnapshotWorld {
    DomainId work;
    World() {
        work = create("work");
        start(work);
        write(work, "file", "one");
    }
    StartResult begin(const DomainId& id) {
        return std::get<StartResult>(done(daemon->lifecycle.startDisposable(kAlice, id)).result);
    }
    DomainId from(const SnapshotId& node, const Disposable& options = {}) {
        const auto id = daemon->snapshots.forkDisposable(kAlice, node, options).value();
        begin(id);
        return id;
    }
    DomainId kept() {
        const auto id = daemon->domains.createDisposable(kAlice, {}, {}, {.isKept = true}).value();
        begin(id);
        return id;
    }
    /// A program runs in it to its end.
    void use(const DomainId& id, const std::string& writes) {
        const auto exec = daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value().id;
        write(id, "file", writes);
        daemon->lifecycle.onExecFinished(instance(id), exec, 0);
    }
    bool isThere(const DomainId& id) { return daemon->table.find(id).has_value(); }
    /// Nothing is under way with it any more.
    bool isFree(const DomainId& id) { return daemon->table.beginOperation(id, "test").has_value(); }
    bool isSuspended(const DomainId& id) { return isThere(id) && state(id) == State::Suspended && isFree(id); }
    std::vector<DomainId> disposables() {
        std::vector<DomainId> found;
        for (const auto& entry : daemon->table.all()) {
            if (entry.record.kind == DomainKind::Disposable) {
                found.push_back(entry.record.id);
            }
        }
        return found;
    }
    Content homeOfDisposable(const DomainId& id) {
        return outside.snapshots.read(outside.snapshots.disksOf(instance(id)).value().home);
    }
    InstanceSpec lastStart() { return outside.hypervisor.started().back(); }
    void crash(const DomainId& id) {
        const InstanceId gone = instance(id);
        outside.hypervisor.endEmulator(gone);
        outside.watch.end(gone);
        daemon->lifecycle.onEmulatorGone(gone);
    }
};

std::filesystem::path imageOf(const SnapshotId& id) {
    return "/fake/memory/" + id.text() + ".ram";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

class TestKeptDisposables : public QObject {
    Q_OBJECT

private slots:
    // ---- begin in a snapshot ----------------------------------------------------------------------------------------

    void from_aFullNode_goesOnInItsMemory() {
        World world;
        const auto node = world.take(world.work);
        world.write(world.work, "file", "later");
        const auto id = world.from(node);
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
        QCOMPARE(world.homeOfDisposable(id), (Content{{"file", "one"}}));
        QCOMPARE(world.system(id), (Content{{"/file", "one"}}));
        QCOMPARE(world.outside.links.opened.back().hostname, world.daemon->table.find(id)->record.name);
        QVERIFY(world.outside.links.rejuvenated.back() == world.instance(id));
        // It goes with its program, and leaves the node and its source as they were.
        const auto before = world.allHeld();
        world.use(id, "mine");
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(world.allHeld() == before);
        QCOMPARE(world.home(world.work), (Content{{"file", "later"}}));
        QCOMPARE(world.problems(), QString());
    }

    void from_boots_data() {
        QTest::addColumn<bool>("isNodeFull");
        QTest::newRow("a node of disks") << false;
        QTest::newRow("the disks of a full one") << true;
    }
    void from_boots() {
        QFETCH(bool, isNodeFull);
        World world;
        const auto node = world.take(world.work, {.isDiskOnly = !isNodeFull, .reason = {}, .label = {}});
        world.write(world.work, "file", "later");
        const auto id = world.from(node, {.isDiskOnly = isNodeFull, .isKept = false});
        QVERIFY(!world.lastStart().memoryImage);
        QCOMPARE(world.homeOfDisposable(id), (Content{{"file", "one"}}));
        QCOMPARE(world.system(id), (Content{{"/file", "one"}}));
        world.use(id, "mine");
        QTRY_VERIFY(!world.isThere(id));
        QCOMPARE(world.problems(), QString());
    }

    void from_aStoppedDomainsNode_hasItsHome() {
        World world;
        world.stop(world.work);
        const auto node = world.take(world.work);
        const auto id = world.from(node);
        QCOMPARE(world.homeOfDisposable(id), (Content{{"file", "one"}}));
        world.removeDomain(id);
        QTRY_VERIFY(!world.isThere(id));
        QCOMPARE(world.problems(), QString());
    }

    void from_whatIsNotTheirs_isNotThere() {
        World world;
        const auto node = world.take(world.work);
        QCOMPARE(world.daemon->snapshots.forkDisposable(kMallory, node, {}).error().code, ErrorCode::NotFound);
        QCOMPARE(world.daemon->snapshots.forkDisposable(kAlice, randomId<SnapshotId>(), {}).error().code,
                 ErrorCode::NotFound);
        QCOMPARE(world.daemon->table.all().size(), std::size_t{1});
    }

    void from_aDamagedNode_isRefused() {
        World world;
        const auto node = world.take(world.work);
        world.outside.snapshots.missing = DamagedPart{"/fake/home.qcow2", "it has another size"};
        const auto refused = world.daemon->snapshots.forkDisposable(kAlice, node, {});
        QCOMPARE(refused.error().code, ErrorCode::HostFailure);
        QCOMPARE(world.daemon->table.all().size(), std::size_t{1});
    }

    void from_whoseStartFails_leavesNothing() {
        World world;
        const auto node = world.take(world.work);
        world.outside.links.openError = Error{ErrorCode::TimedOut, "no answer"};
        const auto id = world.daemon->snapshots.forkDisposable(kAlice, node, {}).value();
        QCOMPARE(world.end(world.daemon->lifecycle.startDisposable(kAlice, id)).state, JobState::Failed);
        QTRY_VERIFY(!world.isThere(id));
        world.outside.links.openError.reset();
        QVERIFY(world.hasNode(node));
        QCOMPARE(world.problems(), QString());
    }

    void node_staysForAsLongAsItsDisposable() {
        World world;
        const auto parent = world.take(world.work);
        const auto node = world.take(world.work);
        const auto id = world.from(node);
        const auto refused = world.daemon->snapshots.remove(kAlice, node, false);
        QCOMPARE(refused.error().code, ErrorCode::WrongState);
        QVERIFY2(contains(refused.error().message, "disposable"), refused.error().message.c_str());
        QVERIFY(!world.daemon->snapshots.remove(kAlice, parent, true));
        world.use(id, "mine");
        QTRY_VERIFY(!world.isThere(id));
        world.revert(parent, {.keepsPresent = false, .isDiskOnly = false});
        world.remove(node);
        QVERIFY(!world.hasNode(node));
        QCOMPARE(world.problems(), QString());
    }

    void restart_removesOneThatBeganInANode() {
        World world;
        const auto node = world.take(world.work);
        const auto id = world.from(node);
        world.outside.links.adoptedExecs = 0;
        world.restart();
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(world.hasNode(node));
        QCOMPARE(world.problems(), QString());
    }

    // ---- keep -------------------------------------------------------------------------------------------------------

    void kept_isSuspendedWithItsProgram() {
        World world;
        const auto id = world.kept();
        world.use(id, "mine");
        QTRY_VERIFY(world.isSuspended(id));
        const auto node = world.head(id).node.value();
        QCOMPARE(world.daemon->lineage.find(node)->reason, std::string(kReasonSuspend));
        QVERIFY(!world.daemon->table.find(id)->instance);
        QCOMPARE(world.problems(), QString());
        // Its client asks for it as well, and finds it done.
        world.suspend(id);
        QCOMPARE(world.head(id), (DomainHead{node, true}));

        world.start(id);
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
        QCOMPARE(world.homeOfDisposable(id), (Content{{"file", "mine"}}));
        QCOMPARE(world.system(id), (Content{{"/file", "mine"}}));
        world.use(id, "more");
        QTRY_VERIFY(world.isSuspended(id));
        QVERIFY(world.head(id).node != node);
        QCOMPARE(world.held(world.head(id).node.value()).home, (Content{{"file", "more"}}));
        QCOMPARE(world.held(node).home, (Content{{"file", "mine"}}));
        QCOMPARE(world.problems(), QString());
    }

    void kept_ofANode() {
        World world;
        const auto node = world.take(world.work);
        const auto id = world.from(node, {.isDiskOnly = false, .isKept = true});
        world.use(id, "mine");
        QTRY_VERIFY(world.isSuspended(id));
        const auto own = world.head(id).node.value();
        QVERIFY(own != node);
        QVERIFY(world.daemon->lineage.find(own)->parent == node);
        QVERIFY(!world.daemon->snapshots.remove(kAlice, own, false));
        world.removeDomain(id);
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(!world.hasNode(own) && world.hasNode(node));
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }

    void kept_inWhichNothingRan_goesWithItsClient() {
        World world;
        const auto id = world.kept();
        world.daemon->lifecycle.onClientLeft(kAlice.busName);
        QTRY_VERIFY(!world.isThere(id));
        QCOMPARE(world.problems(), QString());
    }

    void kept_whoseClientLeft_isSuspendedAllTheSame() {
        World world;
        const auto id = world.kept();
        const auto exec = world.daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value().id;
        world.daemon->lifecycle.onClientLeft(kAlice.busName);
        QCOMPARE(world.state(id), State::Running);
        world.daemon->lifecycle.onExecFinished(world.instance(id), exec, 0);
        QTRY_VERIFY(world.isSuspended(id));
    }

    void kept_inWhichAnotherProgramRuns_waitsForThat() {
        World world;
        const auto id = world.kept();
        const auto exec = world.daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value().id;
        world.outside.links.programs = 1; // it began behind the end of the other
        world.done(world.daemon->snapshots.suspendUnused(id));
        QCOMPARE(world.state(id), State::Running);
        world.outside.links.programs = 0;
        world.daemon->lifecycle.onExecFinished(world.instance(id), exec, 0);
        QTRY_VERIFY(world.isSuspended(id));
    }

    void kept_thatCannotBeSuspended_runsOn() {
        World world;
        const auto id = world.kept();
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "the disk is full"};
        world.write(id, "file", "mine");
        for (const auto& job :
             {world.daemon->snapshots.suspendUnused(id), world.daemon->snapshots.suspend(kAlice, id)}) {
            const auto ended = world.end(job);
            QVERIFY(ended.error && contains(ended.error->message, "the disk is full"));
        }
        QCOMPARE(world.state(id), State::Running);
        QCOMPARE(world.problems(), QString());
        world.outside.snapshots.failBegin.reset();
        world.suspend(id);
        QVERIFY(world.isSuspended(id));
        QCOMPARE(world.problems(), QString());
    }

    void kept_isThereAfterARestart_data() {
        QTest::addColumn<bool>("isReboot");
        QTest::newRow("of the daemon") << false;
        QTest::newRow("of the host") << true;
    }
    void kept_isThereAfterARestart() {
        QFETCH(bool, isReboot);
        World world;
        const auto suspended = world.kept();
        world.use(suspended, "mine");
        QTRY_VERIFY(world.isSuspended(suspended));
        const auto node = world.head(suspended).node.value();
        // Another one that was resumed and runs.
        const auto resumed = world.kept();
        world.use(resumed, "two");
        QTRY_VERIFY(world.isSuspended(resumed));
        const auto its = world.head(resumed).node.value();
        world.start(resumed);
        world.write(resumed, "file", "lost with the host");
        if (isReboot) {
            world.outside.hypervisor.endEmulator(world.instance(resumed));
            world.outside.hypervisor.endEmulator(world.instance(world.work));
        }
        world.outside.links.adoptedExecs = 0;
        world.restart();
        QCOMPARE(world.state(suspended), State::Suspended);
        QCOMPARE(world.head(suspended), (DomainHead{node, true}));
        QVERIFY(world.daemon->table.find(suspended)->record.isKept);
        QCOMPARE(world.state(resumed), isReboot ? State::Failed : State::Running);
        QCOMPARE(world.head(resumed), (DomainHead{its, isReboot}));
        QCOMPARE(world.problems(), QString());
        world.start(suspended);
        QCOMPARE(world.homeOfDisposable(suspended), (Content{{"file", "mine"}}));
        if (isReboot) {
            world.start(resumed);
            QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(its)));
            QCOMPARE(world.homeOfDisposable(resumed), (Content{{"file", "two"}}));
            QCOMPARE(world.head(resumed), (DomainHead{its, false}));
        }
        QCOMPARE(world.problems(), QString());
    }

    void restart_suspendsAKeptOneWhoseProgramEndedMeanwhile() {
        World world;
        const auto id = world.kept();
        world.daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value();
        world.outside.links.adoptedExecs = 0;
        world.restart();
        QTRY_VERIFY(world.isSuspended(id));
        QCOMPARE(world.problems(), QString());
    }

    void crash_takesAKeptOneBackToItsSuspension() {
        World world;
        const auto id = world.kept();
        world.use(id, "mine");
        QTRY_VERIFY(world.isSuspended(id));
        world.start(id);
        world.write(id, "file", "lost");
        world.crash(id);
        QTRY_VERIFY(world.state(id) == State::Failed && world.isFree(id) && !world.daemon->table.find(id)->instance);
        QVERIFY(world.head(id).isSuspended);
        QCOMPARE(world.problems(), QString());
        world.start(id);
        QCOMPARE(world.homeOfDisposable(id), (Content{{"file", "mine"}}));
        QCOMPARE(world.problems(), QString());
    }

    void crash_removesOneThatWasNeverSuspended() {
        World world;
        const auto node = world.take(world.work);
        const auto id = world.from(node, {.isDiskOnly = false, .isKept = true});
        world.crash(id);
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(world.hasNode(node));
        QCOMPARE(world.problems(), QString());
    }

    void lostChannel_isMadeAnew_andItIsSuspended() {
        World world;
        const auto id = world.kept();
        world.daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value();
        world.outside.links.programs = 1;
        world.daemon->lifecycle.onLinkLost(world.instance(id), {"the line closed", false});
        QTRY_VERIFY(world.isSuspended(id));
        QCOMPARE(world.outside.links.reopened.load(), 1U);
        QCOMPARE(world.problems(), QString());
    }

    void removal_takesWhatWasKept_andNothingElse() {
        World world;
        const auto id = world.kept();
        world.use(id, "one");
        QTRY_VERIFY(world.isSuspended(id));
        const auto first = world.head(id).node.value();
        world.start(id);
        world.use(id, "two");
        QTRY_VERIFY(world.isSuspended(id));
        const auto second = world.head(id).node.value();
        // Somebody made a domain of it, and somebody asked for the next one.
        const auto fork = world.fork(second, "fork");
        world.start(id);
        world.use(id, "three");
        QTRY_VERIFY(world.isSuspended(id));
        const auto third = world.head(id).node.value();
        world.start(id);
        world.use(id, "four");
        QTRY_VERIFY(world.isSuspended(id));
        const auto fourth = world.head(id).node.value();
        world.removeDomain(id);
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(!world.hasNode(fourth) && !world.hasNode(third));
        QVERIFY(world.hasNode(second) && world.hasNode(first));
        QCOMPARE(world.home(fork), (Content{{"file", "two"}}));
        QCOMPARE(world.problems(), QString());
    }

    void whatOthersCameFrom_goesWithThem() {
        World world;
        const auto id = world.kept();
        world.use(id, "one");
        QTRY_VERIFY(world.isSuspended(id));
        const auto node = world.head(id).node.value();
        const auto fork = world.fork(node, "fork");
        const auto other = world.from(node);
        world.removeDomain(id);
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(world.hasNode(node));
        world.daemon->lifecycle.removeDisposable(other, "test");
        QTRY_VERIFY(!world.isThere(other));
        QVERIFY(world.hasNode(node)); // the fork stands there still
        world.removeDomain(fork);
        QVERIFY(!world.hasNode(node));
        QVERIFY(world.outside.snapshots.onDisk()->empty());
        QCOMPARE(world.problems(), QString());
    }
    void whatOthersMovedOnFrom_goes() {
        World world;
        const auto id = world.kept();
        world.use(id, "one");
        QTRY_VERIFY(world.isSuspended(id));
        const auto node = world.head(id).node.value();
        const auto first = world.take(world.work);
        world.write(world.work, "file", "two");
        const auto other = world.from(node);
        world.removeDomain(id);
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(world.hasNode(node));
        world.daemon->lifecycle.removeDisposable(other, "test");
        QTRY_VERIFY(!world.isThere(other));
        QTRY_VERIFY(!world.hasNode(node));
        QVERIFY(world.hasNode(first));
        QCOMPARE(world.problems(), QString());
    }
    void beginningInASnapshot_waitsForNoErasure() {
        World world;
        const auto node = world.take(world.work);
        const auto going = world.take(world.work);
        const auto after = world.take(world.work);
        world.revert(node, {.keepsPresent = false, .isDiskOnly = false});
        std::optional<DomainId> begun;
        world.outside.snapshots.whileRemoving = [&] {
            world.outside.snapshots.whileRemoving = {};
            begun = world.daemon->snapshots.forkDisposable(kAlice, node, {}).value();
        };
        world.remove(going, true);
        QVERIFY(begun);
        QVERIFY(!world.hasNode(going) && !world.hasNode(after));
        world.daemon->lifecycle.removeDisposable(*begun, "test");
        QTRY_VERIFY(!world.isThere(*begun));
        QCOMPARE(world.problems(), QString());
    }
    void restart_removesAKeptOneInWhichNothingWasRun() {
        World world;
        const auto unused = world.kept();
        const auto used = world.kept();
        world.daemon->domains.exec(kAlice, used, {.argv = {"true"}}).value();
        world.write(used, "file", "mine");
        world.restart();
        QTRY_VERIFY(!world.isThere(unused));
        QTRY_VERIFY(world.isSuspended(used));
        QCOMPARE(world.problems(), QString());
    }

    void removal_leavesWhatSomebodyAskedFor() {
        World world;
        const auto id = world.kept();
        world.use(id, "one");
        QTRY_VERIFY(world.isSuspended(id));
        const auto node = world.take(id); // nothing has changed since it was suspended, so it is that one
        QVERIFY(node == world.head(id).node);
        world.removeDomain(id);
        QTRY_VERIFY(!world.isThere(id));
        QVERIFY(world.hasNode(node));
        QCOMPARE(world.problems(), QString());
    }

    void stop_removesAKeptOne() {
        World world;
        const auto id = world.kept();
        world.use(id, "one");
        QTRY_VERIFY(world.isSuspended(id));
        world.stop(id);
        QTRY_VERIFY(!world.isThere(id));
        QCOMPARE(world.problems(), QString());
    }

    // ---- the daemon is killed ---------------------------------------------------------------------------------------

    void killedAtEveryStep_data() {
        QTest::addColumn<QString>("what");
        for (const char* what : {"begin in a snapshot", "suspension", "resume", "second suspension", "removal"}) {
            QTest::newRow(what) << QString(what);
        }
    }
    void killedAtEveryStep() {
        QFETCH(QString, what);
        for (const auto cut : {CallGate::Cut::Before, CallGate::Cut::After}) {
            unsigned at = 0;
            for (bool wasCut = true; wasCut;) {
                ++at;
                World world;
                const auto node = world.take(world.work);
                DomainId id;
                if (what != "begin in a snapshot") {
                    id = world.kept();
                    world.daemon->domains.exec(kAlice, id, {.argv = {"true"}}).value();
                    world.write(id, "file", "mine");
                    if (what != "suspension") {
                        world.suspend(id);
                    }
                    if (what == "second suspension") {
                        world.start(id);
                        world.write(id, "file", "more");
                    }
                }
                const auto before = world.allHeld();
                world.outside.gate.arm(cut, at);
                if (what == "begin in a snapshot") {
                    if (const auto made = world.daemon->snapshots.forkDisposable(kAlice, node, {})) {
                        world.end(world.daemon->lifecycle.startDisposable(kAlice, *made));
                    }
                } else if (what == "resume") {
                    world.end(world.daemon->lifecycle.start(kAlice, id));
                } else if (what == "removal") {
                    world.end(world.daemon->domains.remove(kAlice, id, {}));
                    QTRY_VERIFY(!world.isThere(id) || !world.outside.gate.cutAt().empty());
                } else {
                    world.end(world.daemon->snapshots.suspend(kAlice, id));
                }
                wasCut = !world.outside.gate.cutAt().empty();
                const std::string where = what.toStdString() + ", " + std::to_string(at) + ": " +
                                          (cut == CallGate::Cut::Before ? "before " : "after ") +
                                          world.outside.gate.cutAt();
                world.restart();
                if (what == "begin in a snapshot") {
                    QTRY_VERIFY2(world.disposables().empty(), where.c_str());
                    QVERIFY2(world.allHeld() == before, where.c_str());
                } else if (what == "removal") {
                    // Not yet, or wholly.
                    const auto isPresent = [&] {
                        const auto entry = world.daemon->table.find(id);
                        return entry && entry->record.phase == DomainRecord::Phase::Present;
                    };
                    QTRY_VERIFY2(!world.isThere(id) || (isPresent() && world.isSuspended(id)), where.c_str());
                    QVERIFY2(world.allHeld().size() == before.size() - (world.isThere(id) ? 0 : 1), where.c_str());
                    QVERIFY2(wasCut || !world.isThere(id), where.c_str());
                } else {
                    // What was done in it is there, whatever it is now.
                    QVERIFY2(world.isThere(id), where.c_str());
                    if (what == "suspension") {
                        QTRY_VERIFY2(world.isSuspended(id), where.c_str());
                    }
                    QCOMPARE(world.problems(), QString());
                    world.start(id);
                    QVERIFY2(world.homeOfDisposable(id) ==
                                 (Content{{"file", what == "second suspension" ? "more" : "mine"}}),
                             where.c_str());
                    world.removeDomain(id);
                    QTRY_VERIFY2(!world.isThere(id), where.c_str());
                    QVERIFY2(world.allHeld().size() == 1, where.c_str());
                }
                const QString problems = world.problems();
                QVERIFY2(problems.isEmpty(), (where + ": " + problems.toStdString()).c_str());
            }
            QVERIFY(at > 3);
        }
    }

    void suspend_ofOneThatIsNotKept_isRefused() {
        World world;
        const auto id = world.daemon->domains.createDisposable(kAlice, {}, {}).value();
        world.begin(id);
        QCOMPARE(world.daemon->snapshots.suspend(kAlice, id).error().code, ErrorCode::WrongState);
        QCOMPARE(world.daemon->snapshots.suspendUnused(id).error().code, ErrorCode::NotFound);
    }
};

QTEST_GUILESS_MAIN(TestKeptDisposables)
#include "tst_kept_disposables.moc"

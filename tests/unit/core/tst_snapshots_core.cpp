// SPDX-License-Identifier: Apache-2.0
// Snapshots over fakes: what each verb does to the domain and to its nodes, who may, and what is refused.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

#include <algorithm>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Content = SnapshotWorld::Content;
using State = DomainState;
using Create = SnapshotService::Options;
using Revert = SnapshotService::RevertOptions;
using Fork = SnapshotService::ForkOptions;

const Create kDisk{.isDiskOnly = true, .reason = {}, .label = {}};

/// A domain that runs and has written something.
struct Running : SnapshotWorld {
    DomainId work;
    Running() {
        work = create("work");
        start(work);
        write(work, "file", "one");
    }
    std::size_t starts() { return outside.hypervisor.started().size(); }
    InstanceSpec lastStart() { return outside.hypervisor.started().back(); }
    std::string whyNot(const Result<JobId>& job) {
        const auto info = end(job);
        return info.error ? info.error->message : std::string();
    }
};

std::filesystem::path imageOf(const SnapshotId& id) {
    return "/fake/memory/" + id.text() + ".ram";
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

class TestSnapshots : public QObject {
    Q_OBJECT

private slots:
    // ---- create -----------------------------------------------------------------------------------------------------

    void create_ofARunningDomain_data() {
        QTest::addColumn<bool>("isDiskOnly");
        QTest::newRow("full") << false;
        QTest::newRow("disk") << true;
    }
    void create_ofARunningDomain() {
        QFETCH(bool, isDiskOnly);
        Running world;
        const auto instance = world.instance(world.work);
        const auto node =
            world.take(world.work, {.isDiskOnly = isDiskOnly, .reason = "before the exam", .label = "good"});
        const auto record = world.daemon->snapshots.find(kAlice, node).value();
        QCOMPARE(record.kind, isDiskOnly ? SnapshotKind::Disk : SnapshotKind::Full);
        QCOMPARE(record.memory.has_value(), !isDiskOnly);
        QCOMPARE(record.reason, std::string("before the exam"));
        QCOMPARE(record.label, std::string("good"));
        QCOMPARE(record.domain, world.work);
        QCOMPARE(record.owner, kAlice.uid);
        QCOMPARE(record.templateName, std::string("minimal"));
        QCOMPARE(record.size, std::string("small"));
        QVERIFY(!record.templateVersion.empty() && !record.parent);
        // The guest runs on, in the same emulator, and what it writes now is not the node's.
        QCOMPARE(world.instance(world.work), instance);
        QCOMPARE(world.starts(), std::size_t{1});
        world.write(world.work, "file", "two");
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        QCOMPARE(world.held(node).system, (Content{{"/file", "one"}}));
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
        QCOMPARE(world.head(world.work), (DomainHead{node, false}));
        // Frozen once, thawed once.
        QCOMPARE(world.outside.links.pictures.size(), std::size_t{2});
        QCOMPARE(world.outside.links.pictures.front().second->ofMemory, !isDiskOnly);
        QCOMPARE(world.problems(), QString());
        const auto second = world.take(world.work);
        QCOMPARE(world.daemon->lineage.find(second)->parent, std::optional(node));
    }
    void create_ofAStoppedDomain_isOfItsHome() {
        Running world;
        world.stop(world.work);
        const auto node = world.take(world.work);
        const auto record = world.daemon->lineage.find(node).value();
        QCOMPARE(record.kind, SnapshotKind::Disk);
        QVERIFY(!record.memory && record.system.layers.empty());
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        QCOMPARE(world.state(world.work), State::Stopped);
        world.start(world.work);
        world.write(world.work, "file", "two");
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void create_refusesTextsThatAreNone() {
        Running world;
        for (const Create& bad : {Create{.isDiskOnly = false, .reason = "a\nb", .label = {}},
                                  Create{.isDiskOnly = false, .reason = {}, .label = std::string(201, 'x')}}) {
            QCOMPARE(world.daemon->snapshots.create(kAlice, world.work, bad).error().code, ErrorCode::InvalidArgument);
        }
    }
    void create_ofAGuestThatAFullDiskHolds_isRefused() {
        Running world;
        QVERIFY(world.daemon->table.apply(world.work, DomainEvent::PauseRequested, "full"));
        const auto why = world.whyNot(world.daemon->snapshots.create(kAlice, world.work, {}));
        QVERIFY2(contains(why, "is paused; a snapshot needs it running or stopped"), why.c_str());
    }
    void create_ofAGuestThatDoesNotDoItsPart_data() {
        QTest::addColumn<int>("code");
        QTest::addColumn<bool>("isAtItsEnd");
        QTest::addColumn<bool>("isDiskOnly");
        QTest::addColumn<bool>("isTaken");
        for (const auto& [when, isAtItsEnd] : {std::pair{"freeze", false}, std::pair{"thaw", true}}) {
            for (const ErrorCode code : {ErrorCode::TimedOut, ErrorCode::GuestFailure}) {
                QTest::addRow("full, %s: %s", when, nameOf(code).data()) << int(code) << isAtItsEnd << false << true;
                QTest::addRow("disks, %s: %s", when, nameOf(code).data()) << int(code) << isAtItsEnd << true << false;
            }
            QTest::addRow("full, %s: too old", when) << int(ErrorCode::WrongState) << isAtItsEnd << false << false;
        }
    }
    /// What a guest keeps from its owner by not answering is nothing: a full snapshot does not need it.
    void create_ofAGuestThatDoesNotDoItsPart() {
        QFETCH(int, code);
        QFETCH(bool, isAtItsEnd);
        QFETCH(bool, isDiskOnly);
        QFETCH(bool, isTaken);
        Running world;
        auto& error = isAtItsEnd ? world.outside.links.thawError : world.outside.links.freezeError;
        error = Error{static_cast<ErrorCode>(code), "it says nothing"};
        const auto info = world.end(
            world.daemon->snapshots.create(kAlice, world.work, {.isDiskOnly = isDiskOnly, .reason = {}, .label = {}}));
        error.reset();
        QCOMPARE(info.state == JobState::Succeeded, isTaken);
        QCOMPARE(world.allHeld().empty(), !isTaken);
        QCOMPARE(world.state(world.work), State::Running);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
        if (!isTaken) {
            QVERIFY2(contains(info.error->message, "it says nothing"), info.error->message.c_str());
            return;
        }
        const auto& taken = std::get<SnapshotResult>(info.result);
        QVERIFY2(contains(taken.note, "it says nothing"), taken.note.c_str());
        QVERIFY(!world.outside.hypervisor.isPaused(world.instance(world.work)));
        world.write(world.work, "file", "two");
        world.revert(taken.snapshot);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void create_saysWhatIsMissing() {
        Running world;
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "12 MiB are missing"};
        const auto info = world.end(world.daemon->snapshots.create(kAlice, world.work, {}));
        QCOMPARE(info.error->code, ErrorCode::NoSpace);
        QVERIFY(contains(info.error->message, "domain \"work\"") && contains(info.error->message, "12 MiB"));
        QCOMPARE(world.state(world.work), State::Running);
        QVERIFY(world.daemon->lineage.all().empty());
        QCOMPARE(world.problems(), QString());
    }

    // ---- who may ----------------------------------------------------------------------------------------------------

    void othersSnapshots_doNotExist() {
        Running world;
        const auto node = world.take(world.work);
        SnapshotService& service = world.daemon->snapshots;
        QVERIFY(service.list(kMallory)->empty());
        QCOMPARE(service.find(kMallory, node).error().code, ErrorCode::NotFound);
        QCOMPARE(service.setPinned(kMallory, node, true).error().code, ErrorCode::NotFound);
        QCOMPARE(service.setLabel(kMallory, node, "x").error().code, ErrorCode::NotFound);
        QCOMPARE(service.create(kMallory, world.work, {}).error().code, ErrorCode::NotFound);
        QCOMPARE(service.remove(kMallory, node, true).error().code, ErrorCode::NotFound);
        QCOMPARE(service.revert(kMallory, node, {}).error().code, ErrorCode::NotFound);
        QCOMPARE(service.fork(kMallory, node, "mine", {}).error().code, ErrorCode::NotFound);
        QCOMPARE(service.forkNow(kMallory, world.work, "mine", {}).error().code, ErrorCode::NotFound);
        QCOMPARE(service.suspend(kMallory, world.work).error().code, ErrorCode::NotFound);
        QCOMPARE(service.discard(kMallory, world.work).error().code, ErrorCode::NotFound);
        // The words are those for what never was.
        QCOMPARE(service.find(kMallory, node).error().message,
                 service.find(kMallory, randomId<SnapshotId>()).error().message);
        QCOMPARE(service.list(kRoot)->size(), std::size_t{1});
        QVERIFY(service.setLabel(kRoot, node, "root's").has_value());
    }

    // ---- list, pin, label, remove -----------------------------------------------------------------------------------

    void list_isByAge() {
        Running world;
        std::vector<SnapshotId> made;
        for (int i = 0; i < 3; ++i) {
            made.push_back(world.take(world.work));
            world.outside.clock.advance(60);
        }
        const auto listed = world.daemon->snapshots.list(kAlice).value();
        QCOMPARE(listed.size(), made.size());
        for (std::size_t i = 0; i < made.size(); ++i) {
            QCOMPARE(listed[i].id, made[i]);
        }
    }
    void pinAndLabel_outliveTheDaemon_andTheDatabase() {
        Running world;
        const auto node = world.take(world.work);
        QVERIFY(world.daemon->snapshots.setPinned(kAlice, node, true)->isPinned);
        QCOMPARE(world.daemon->snapshots.setLabel(kAlice, node, "exam")->label, std::string("exam"));
        QCOMPARE(world.daemon->snapshots.setLabel(kAlice, node, "a\x1b[2J").error().code, ErrorCode::InvalidArgument);
        world.restart();
        QVERIFY(world.daemon->lineage.find(node)->isPinned);
        world.outside.database.snapshots.clear();
        world.outside.database.heads.clear();
        world.restart();
        QCOMPARE(world.report.rebuilt, 1U);
        QCOMPARE(world.daemon->lineage.find(node)->label, std::string("exam"));
        QCOMPARE(world.head(world.work), (DomainHead{node, false}));
    }
    void remove_refusesWhatIsNeeded() {
        Running world;
        const auto first = world.take(world.work);
        const auto second = world.take(world.work);
        SnapshotService& service = world.daemon->snapshots;
        QVERIFY(contains(service.remove(kAlice, first, false).error().message, "--cascade"));
        QVERIFY(service.setPinned(kAlice, second, true).has_value());
        QVERIFY(contains(service.remove(kAlice, first, true).error().message, "is pinned"));
        QVERIFY(service.setPinned(kAlice, second, false).has_value());
        const auto fork = world.fork(second, "fork");
        QVERIFY(contains(service.remove(kAlice, first, true).error().message, "suspended"));
        world.stop(fork);
        world.remove(first, true);
        QVERIFY(service.list(kAlice)->empty());
        QCOMPARE(world.head(world.work), DomainHead{});
        QCOMPARE(world.home(fork), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void remove_movesHeadsUp_andChangesNobodysDisks() {
        Running world;
        const auto first = world.take(world.work);
        world.write(world.work, "file", "two");
        const auto second = world.take(world.work);
        world.write(world.work, "more", "now");
        world.remove(second);
        QCOMPARE(world.head(world.work).node, std::optional(first));
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}, {"more", "now"}}));
        // Its files stay for as long as the home lies above them.
        QCOMPARE(world.outside.snapshots.onDisk()->size(), std::size_t{2});
        world.revert(first, {.keepsPresent = false, .isDiskOnly = false});
        world.remove(world.take(world.work));
        QCOMPARE(world.problems(), QString());
        world.removeDomain(world.work);
        world.remove(first);
        QVERIFY(world.outside.snapshots.onDisk()->empty());
    }

    // ---- revert -----------------------------------------------------------------------------------------------------

    void revert_ofARunningDomain_goesOnInTheNodesMemory() {
        Running world;
        const auto node = world.take(world.work);
        const auto before = world.instance(world.work);
        world.write(world.work, "file", "two");
        const auto result = world.revert(node);
        QVERIFY(result.isRunning && result.note.empty());
        QCOMPARE(result.domain, world.work);
        QCOMPARE(world.state(world.work), State::Running);
        QVERIFY(world.instance(world.work) != before && !world.outside.hypervisor.isRunning(before));
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.system(world.work), (Content{{"/file", "one"}}));
        QCOMPARE(world.head(world.work), (DomainHead{node, false}));
        // What was there is kept, and the node is not used up.
        QVERIFY(result.kept);
        QCOMPARE(world.daemon->lineage.find(*result.kept)->reason, std::string(kReasonBeforeRevert));
        QCOMPARE(world.held(*result.kept).home, (Content{{"file", "two"}}));
        world.write(world.work, "file", "three");
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        world.revert(*result.kept);
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
        QCOMPARE(world.problems(), QString());
    }
    void revert_keepingNothing() {
        Running world;
        const auto node = world.take(world.work);
        world.write(world.work, "file", "two");
        QVERIFY(!world.revert(node, {.keepsPresent = false, .isDiskOnly = false}).kept);
        QCOMPARE(world.daemon->snapshots.list(kAlice)->size(), std::size_t{1});
    }
    void revert_isNotDone_whenThePresentCannotBeKept() {
        Running world;
        const auto node = world.take(world.work);
        world.write(world.work, "file", "two");
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "full"};
        const auto why = world.whyNot(world.daemon->snapshots.revert(kAlice, node, {}));
        QVERIFY2(contains(why, "nothing was changed"), why.c_str());
        QCOMPARE(world.state(world.work), State::Running);
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
    }
    void revert_ofAStoppedDomain_suspendsIt() {
        Running world;
        const auto node = world.take(world.work);
        world.write(world.work, "file", "two");
        world.stop(world.work);
        QVERIFY(!world.revert(node).isRunning);
        QCOMPARE(world.state(world.work), State::Suspended);
        QCOMPARE(world.head(world.work), (DomainHead{node, true}));
        world.restart();
        QCOMPARE(world.state(world.work), State::Suspended);
        world.start(world.work);
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void revert_withoutMemory_boots() {
        Running world;
        const auto full = world.take(world.work);
        world.revert(full, {.keepsPresent = false, .isDiskOnly = true});
        QCOMPARE(world.state(world.work), State::Running);
        QVERIFY(!world.lastStart().memoryImage);
        const auto disk = world.take(world.work, kDisk);
        world.stop(world.work);
        world.revert(disk, {.keepsPresent = false, .isDiskOnly = false});
        QCOMPARE(world.state(world.work), State::Stopped);
        QCOMPARE(world.problems(), QString());
    }
    void revert_onAnotherMachine_bootsAndSaysSo() {
        Running world;
        const auto node = world.take(world.work);
        world.outside.machines.machine = "fake 2";
        const auto result = world.revert(node, {.keepsPresent = false, .isDiskOnly = false});
        QVERIFY(result.isRunning);
        QVERIFY2(contains(result.note, "so it booted") && contains(result.note, "another machine"),
                 result.note.c_str());
        QVERIFY(!world.lastStart().memoryImage);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QVERIFY(world.daemon->lineage.find(node)->suspect.empty()); // it is well, on its own machine
    }
    void revert_inBrokenMemory_bootsAndMarksTheNode() {
        Running world;
        const auto node = world.take(world.work);
        world.outside.machines.loadError = Error{ErrorCode::HostFailure, "section 17 is broken"};
        const auto result = world.revert(node, {.keepsPresent = false, .isDiskOnly = false});
        QVERIFY2(result.isRunning && contains(result.note, "section 17 is broken"), result.note.c_str());
        QVERIFY(contains(world.daemon->lineage.find(node)->suspect, "section 17 is broken"));
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
    }
    void revert_ofADomainThatIsGone_saysHowToGetItBack() {
        Running world;
        const auto node = world.take(world.work);
        world.removeDomain(world.work);
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        const auto error = world.daemon->snapshots.revert(kAlice, node, {}).error();
        QCOMPARE(error.code, ErrorCode::NotFound);
        QVERIFY(contains(error.message, "snapshot fork"));
        const auto again = world.fork(node, "work");
        world.start(again);
        QCOMPARE(world.home(again), (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void suspectNodes_areNotBegunFrom_andTheLastGoodOneIsOffered() {
        Running world;
        const auto good = world.take(world.work);
        const auto bad = world.take(world.work);
        world.write(world.work, "file", "two");
        world.outside.snapshots.missing = DamagedPart{"/x/home.qcow2", "it is shorter than it was"};
        const auto why = world.whyNot(world.daemon->snapshots.revert(kAlice, bad, {}));
        world.outside.snapshots.missing.reset();
        QVERIFY2(contains(why, "home.qcow2: it is shorter") && contains(why, shortId(good)), why.c_str());
        QVERIFY(contains(world.daemon->lineage.find(bad)->suspect, "shorter"));
        QVERIFY(!world.whyNot(world.daemon->snapshots.fork(kAlice, bad, "fork", {})).empty());
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
        QCOMPARE(world.state(world.work), State::Running);
        world.revert(good);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
    }

    // ---- fork -------------------------------------------------------------------------------------------------------

    void fork_ofANode() {
        Running world;
        const auto node = world.take(world.work);
        world.write(world.work, "file", "two");
        const auto fork = world.fork(node, "fork");
        QCOMPARE(world.state(fork), State::Suspended);
        QCOMPARE(world.head(fork), (DomainHead{node, true}));
        const auto entry = world.daemon->table.find(fork).value();
        QCOMPARE(entry.record.owner, kAlice.uid);
        QCOMPARE(entry.definition.label, std::string("gray"));
        QCOMPARE(entry.definition.size, std::string("small"));
        world.start(fork);
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
        world.write(fork, "file", "mine");
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        QCOMPARE(world.home(fork), (Content{{"file", "mine"}}));
        // Its snapshots come from the node, and are its own.
        const auto next = world.daemon->lineage.find(world.take(fork)).value();
        QCOMPARE(next.parent, std::optional(node));
        QCOMPARE(next.domain, fork);
        QCOMPARE(world.problems(), QString());
    }
    void fork_withOneFactorChanged() {
        Running world;
        const auto node = world.take(world.work);
        const auto red = world.fork(node, "red", {.label = "red", .egress = {}, .isDiskOnly = true});
        QCOMPARE(world.daemon->table.find(red)->definition.label, std::string("red"));
        QCOMPARE(world.state(red), State::Stopped);
        const Fork wrong{.label = "no such colour", .egress = {}, .isDiskOnly = false};
        QVERIFY(!world.whyNot(world.daemon->snapshots.fork(kAlice, node, "other", wrong)).empty());
        const Fork open{.label = {}, .egress = "everything", .isDiskOnly = false};
        QVERIFY(!world.whyNot(world.daemon->snapshots.fork(kAlice, node, "other", open)).empty());
        QVERIFY(!world.daemon->table.findByName(kAlice.uid, "other"));
        QCOMPARE(world.problems(), QString());
    }
    void fork_refusesNames() {
        Running world;
        const auto node = world.take(world.work);
        SnapshotService& service = world.daemon->snapshots;
        for (const char* name : {"", "Work", "now", "disp-1", "a/b", "../x"}) {
            QCOMPARE(service.fork(kAlice, node, name, {}).error().code, ErrorCode::InvalidArgument);
            QCOMPARE(service.forkNow(kAlice, world.work, name, {}).error().code, ErrorCode::InvalidArgument);
        }
        QCOMPARE(world.end(service.fork(kAlice, node, "work", {})).error->code, ErrorCode::AlreadyExists);
    }
    void fork_countsAgainstTheQuota() {
        Running world;
        const auto node = world.take(world.work);
        for (unsigned i = 1; i < DomainService::kMostDomains; ++i) {
            world.fork(node, "fork" + std::to_string(i));
        }
        QCOMPARE(world.end(world.daemon->snapshots.fork(kAlice, node, "more", {})).error->code,
                 ErrorCode::LimitExceeded);
    }
    void forkNow_leavesTheSourceAlone() {
        Running world;
        const auto instance = world.instance(world.work);
        const auto fork =
            std::get<DomainId>(world.done(world.daemon->snapshots.forkNow(kAlice, world.work, "fork", {})).result);
        QCOMPARE(world.instance(world.work), instance);
        QCOMPARE(world.state(fork), State::Suspended);
        QCOMPARE(world.home(fork), (Content{{"file", "one"}}));
        const auto nodes = world.daemon->snapshots.list(kAlice).value();
        QCOMPARE(nodes.size(), std::size_t{1});
        QCOMPARE(nodes.front().reason, std::string(kReasonFork));
        // The generation after it.
        world.start(fork);
        world.write(fork, "file", "second");
        const auto third =
            std::get<DomainId>(world.done(world.daemon->snapshots.forkNow(kAlice, fork, "third", {})).result);
        world.start(third);
        world.write(third, "file", "third");
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.home(fork), (Content{{"file", "second"}}));
        QCOMPARE(world.problems(), QString());
    }
    void forks_outliveTheirSource() {
        Running world;
        const auto node = world.take(world.work);
        const auto fork = world.fork(node, "fork");
        world.start(fork);
        world.removeDomain(world.work);
        world.remove(node);
        world.write(fork, "more", "mine");
        world.restart();
        QCOMPARE(world.home(fork), (Content{{"file", "one"}, {"more", "mine"}}));
        QCOMPARE(world.problems(), QString());
        // With it the last that lies above the node.
        world.removeDomain(fork);
        world.restart();
        QVERIFY(world.outside.snapshots.onDisk()->empty());
        QVERIFY(world.outside.snapshotRecords.all()->empty());
    }

    // ---- suspend, resume, stop, discard -----------------------------------------------------------------------------

    void suspendAndResume() {
        Running world;
        world.suspend(world.work);
        QCOMPARE(world.state(world.work), State::Suspended);
        QVERIFY(world.outside.hypervisor.list()->empty() && world.outside.store.instances.empty());
        const auto node = world.head(world.work).node.value();
        QCOMPARE(world.daemon->lineage.find(node)->reason, std::string(kReasonSuspend));
        QCOMPARE(world.problems(), QString());
        world.suspend(world.work);              // it is already
        QCOMPARE(world.take(world.work), node); // nothing has changed since
        world.restart();
        QCOMPARE(world.state(world.work), State::Suspended);
        world.start(world.work);
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.head(world.work), (DomainHead{node, false}));
        // What it writes after that is not the node's, and stays.
        world.write(world.work, "file", "two");
        world.stop(world.work);
        world.start(world.work);
        QVERIFY(!world.lastStart().memoryImage);
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
        QCOMPARE(world.held(node).home, (Content{{"file", "one"}}));
        QCOMPARE(world.problems(), QString());
    }
    void suspend_needsADomainThatRuns() {
        Running world;
        world.stop(world.work);
        QCOMPARE(world.daemon->snapshots.suspend(kAlice, world.work).error().code, ErrorCode::WrongState);
        const auto disposable = world.daemon->domains.createDisposable(kAlice, "minimal", {}).value();
        world.done(world.daemon->lifecycle.startDisposable(kAlice, disposable));
        QCOMPARE(world.daemon->snapshots.suspend(kAlice, disposable).error().code, ErrorCode::WrongState);
        QCOMPARE(world.daemon->snapshots.discard(kAlice, disposable).error().code, ErrorCode::WrongState);
    }
    void revert_ofADisposable_saysToForkIt() {
        Running world;
        const auto disposable = world.daemon->domains.createDisposable(kAlice, "minimal", {}).value();
        world.done(world.daemon->lifecycle.startDisposable(kAlice, disposable));
        const auto node = world.take(disposable);
        const auto refused = world.daemon->snapshots.revert(kAlice, node, {});
        QCOMPARE(refused.error().code, ErrorCode::WrongState);
        QVERIFY(contains(refused.error().message, "snapshot fork"));
        QCOMPARE(world.state(disposable), State::Running);
    }
    void resume_overFilesThatAreNotWhatTheyWere_boots() {
        Running world;
        world.suspend(world.work);
        world.outside.snapshots.missing = DamagedPart{"/fake/home.qcow2", "it has another size"};
        const auto started = world.start(world.work);
        QVERIFY2(contains(started.note, "another size") && contains(started.note, "booted"), started.note.c_str());
        QVERIFY(!world.lastStart().memoryImage);
        QVERIFY(!world.daemon->lineage.find(world.head(world.work).node.value())->suspect.empty());
    }
    void stop_ofASuspendedDomain_dropsTheMemoryAlone() {
        Running world;
        world.suspend(world.work);
        const auto node = world.head(world.work).node;
        world.stop(world.work);
        QCOMPARE(world.state(world.work), State::Stopped);
        QCOMPARE(world.head(world.work), (DomainHead{node, false}));
        world.start(world.work);
        QVERIFY(!world.lastStart().memoryImage);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
    }
    void coldStart_ofASuspendedDomain_boots() {
        Running world;
        world.suspend(world.work);
        world.done(world.daemon->lifecycle.start(kAlice, world.work, true));
        QVERIFY(!world.lastStart().memoryImage);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QVERIFY(!world.head(world.work).isSuspended);
    }
    void failedResume_keepsTheMemory() {
        Running world;
        world.suspend(world.work);
        const auto node = world.head(world.work).node.value();
        world.outside.hypervisor.failNextStart({ErrorCode::Unavailable, "libvirtd is away"});
        QVERIFY(!world.whyNot(world.daemon->lifecycle.start(kAlice, world.work)).empty());
        QCOMPARE(world.problems(), QString());
        world.start(world.work);
        QCOMPARE(world.lastStart().memoryImage, std::optional(imageOf(node)));
    }
    void discard_goesBackToTheLastSnapshot() {
        Running world;
        QCOMPARE(world.daemon->snapshots.discard(kAlice, world.work).error().code, ErrorCode::WrongState);
        QCOMPARE(world.state(world.work), State::Running);
        const auto node = world.take(world.work);
        world.write(world.work, "file", "two");
        world.done(world.daemon->snapshots.discard(kAlice, world.work));
        QCOMPARE(world.state(world.work), State::Stopped);
        QCOMPARE(world.home(world.work), (Content{{"file", "one"}}));
        QCOMPARE(world.head(world.work), (DomainHead{node, false}));
        QCOMPARE(world.daemon->snapshots.list(kAlice)->size(), std::size_t{1});
        QCOMPARE(world.problems(), QString());
    }
    void emulatorThatDiesAfterAResume_losesNothingOfTheDisks() {
        Running world;
        world.suspend(world.work);
        world.start(world.work);
        world.write(world.work, "file", "two");
        const auto instance = world.instance(world.work);
        world.daemon.reset();
        world.outside.hypervisor.endEmulator(instance);
        world.restart();
        QCOMPARE(world.state(world.work), State::Failed);
        QVERIFY(!world.head(world.work).isSuspended);
        world.start(world.work);
        QCOMPARE(world.home(world.work), (Content{{"file", "two"}}));
    }

    // ---- retention --------------------------------------------------------------------------------------------------

    void retention_removesOldAutomaticOnes() {
        Running world;
        const auto mine = world.take(world.work);
        world.write(world.work, "file", "two");
        std::vector<SnapshotId> kept;
        for (unsigned i = 0; i < RetentionRule{}.mostAutomatic + 3; ++i) {
            world.outside.clock.advance(60);
            kept.push_back(world.revert(mine).kept.value());
            if (i == 0) {
                QVERIFY(world.daemon->snapshots.setPinned(kAlice, kept.front(), true).has_value());
            }
        }
        QVERIFY(world.hasNode(mine));
        QVERIFY(world.hasNode(kept[0])); // pinned
        QVERIFY(!world.hasNode(kept[1]));
        QVERIFY(world.hasNode(kept.back()));
        const auto left = world.daemon->snapshots.list(kAlice).value();
        // The pinned one and the one that the last revert has just told of are beside the rule.
        QCOMPARE(std::size_t(std::count_if(left.begin(), left.end(), isAutomatic)), RetentionRule{}.mostAutomatic + 2);
        QCOMPARE(world.held(kept[0]).home, (Content{{"file", "two"}}));
        QCOMPARE(world.problems(), QString());
    }
};

QTEST_GUILESS_MAIN(TestSnapshots)
#include "tst_snapshots_core.moc"

// SPDX-License-Identifier: Apache-2.0
// Domains over fakes: start, stop, failures at each step, other people's things, and what a restarted daemon makes of
// it.
#include "unit/core/fake_world.hpp"

#include <QTest>

#include <atomic>
#include <thread>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

const Caller kAlice{1000, ":1.1"};
const Caller kMallory{1001, ":1.2"};
const Caller kRoot{0, ":1.3"};

/// Nothing of an instance is left anywhere.
QString traces(Outside& world) {
    QString found;
    if (const auto running = world.hypervisor.list(); !running || !running->empty()) {
        found += "emulator ";
    }
    if (!world.store.instancesOnDisk()->empty()) {
        found += "files ";
    }
    if (!world.instances.all()->empty()) {
        found += "record ";
    }
    for (const auto& [id, home] : world.store.homes) {
        if (home.owner != 0) {
            found += "claimed home ";
        }
    }
    return found;
}

DomainId makeDomain(Daemon& daemon, const std::string& name = "work") {
    return daemon.domains.create(kAlice, name, {}).value();
}

InstanceId startDomain(Daemon& daemon, const DomainId& id) {
    const auto job = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
    if (job.state != JobState::Succeeded) {
        throw std::logic_error("start: " + job.error->message);
    }
    return daemon.table.find(id)->instance->id;
}

DomainState stateOf(Daemon& daemon, const DomainId& id) {
    return daemon.table.find(id)->state;
}

} // namespace

class TestLifecycle : public QObject {
    Q_OBJECT

private slots:
    void startAndStop_passThroughTheStates() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        QVERIFY(world.links.isOpen(instance));
        QVERIFY(world.watch.isWatched(instance));
        QCOMPARE(world.instances.all()->front().phase, InstancePhase::Running);
        const auto spec = world.hypervisor.started().front();
        QCOMPARE(spec.emulatorUid, UidLeases::emulatorUid(world.instances.all()->front().uidSlot));
        QCOMPARE(spec.memory, Bytes{512 * kMiB});

        world.links.onShutdown = [&](const InstanceId& asked) { world.watch.end(asked); };
        const auto job = daemon.wait(daemon.lifecycle.stop(kAlice, id, {}).value());
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(!world.links.isOpen(instance));
        QCOMPARE(traces(world), QString());
        QCOMPARE(daemon.events.states(id), (std::vector{DomainState::Starting, DomainState::Running,
                                                        DomainState::Stopping, DomainState::Stopped}));
        QVERIFY(world.store.homes.contains(id));
    }

    void failedStart_leavesNothingAndSaysWhy_data() {
        QTest::addColumn<QString>("step");
        for (const char* step : {"prepare", "emulator", "agent", "record"}) {
            QTest::newRow(step) << step;
        }
    }
    void failedStart_leavesNothingAndSaysWhy() {
        QFETCH(QString, step);
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const Error error{ErrorCode::NoSpace, "the broken step"};
        if (step == "prepare") {
            world.store.failPrepare = error;
        } else if (step == "emulator") {
            world.hypervisor.failNextStart(error);
        } else if (step == "agent") {
            world.links.openError = error;
        } else {
            world.database.failWrites = error;
        }
        const auto job = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
        world.database.failWrites.reset();
        QCOMPARE(job.state, JobState::Failed);
        QCOMPARE(job.error->code, ErrorCode::NoSpace);
        QVERIFY(job.error->message.find("the broken step") != std::string::npos);
        QCOMPARE(traces(world), QString());
        QCOMPARE(stateOf(daemon, id), DomainState::Failed);
        QVERIFY(daemon.table.find(id)->reason.find("the broken step") != std::string::npos);
        // And it can be tried again.
        world.store.failPrepare.reset();
        world.links.openError.reset();
        startDomain(daemon, id);
        QCOMPARE(stateOf(daemon, id), DomainState::Running);
    }

    void sizeLargerThanTheHost_isRefusedWithNumbers() {
        Outside world;
        Daemon daemon(world);
        CreateOptions options;
        options.size = "huge";
        const auto id = daemon.domains.create(kAlice, "work", options).value();
        const auto job = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
        QCOMPARE(job.error->code, ErrorCode::LimitExceeded);
        QVERIFY(job.error->message.find("64 GiB") != std::string::npos);
        QVERIFY(job.error->message.find("16 GiB") != std::string::npos);
    }

    void create_isUndoneWhenAStepFails() {
        Outside world;
        Daemon daemon(world);
        world.store.failCreateHome = Error{ErrorCode::NoSpace, "full"};
        QCOMPARE(daemon.domains.create(kAlice, "work", {}).error().code, ErrorCode::NoSpace);
        QVERIFY(world.domains.all()->empty());
        world.store.failCreateHome.reset();
        world.definitions.failSave = Error{ErrorCode::NoSpace, "full"};
        QCOMPARE(daemon.domains.create(kAlice, "work", {}).error().code, ErrorCode::NoSpace);
        QVERIFY(world.domains.all()->empty());
        QVERIFY(world.store.homes.empty());
        QVERIFY(daemon.table.all().empty());
    }

    void othersThings_doNotExist() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        startDomain(daemon, id);
        QCOMPARE(daemon.domains.find(kMallory, id).error().code, ErrorCode::NotFound);
        QCOMPARE(daemon.domains.findByName(kMallory, "work").error().code, ErrorCode::NotFound);
        QCOMPARE(daemon.domains.exec(kMallory, id, {.argv = {"id"}}).error().code, ErrorCode::NotFound);
        QCOMPARE(daemon.domains.status(kMallory, id).error().code, ErrorCode::NotFound);
        QCOMPARE(daemon.domains.remove(kMallory, id, {.force = true}).error().code, ErrorCode::NotFound);
        QCOMPARE(daemon.lifecycle.start(kMallory, id).error().code, ErrorCode::NotFound);
        QCOMPARE(daemon.lifecycle.stop(kMallory, id, {}).error().code, ErrorCode::NotFound);
        QVERIFY(daemon.domains.list(kMallory, false)->empty());
        QCOMPARE(daemon.domains.list(kMallory, true).error().code, ErrorCode::NotAuthorized);
        QCOMPARE(daemon.domains.list(kRoot, true)->size(), std::size_t{1});
        // The same name is free for everybody else.
        QVERIFY(daemon.domains.create(kMallory, "work", {}).has_value());
        QCOMPARE(daemon.domains.create(kAlice, "work", {}).error().code, ErrorCode::AlreadyExists);
    }

    void emulatorThatDies_failsItsDomain() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        world.hypervisor.endEmulator(instance);
        world.watch.end(instance);
        QTRY_COMPARE(stateOf(daemon, id), DomainState::Failed);
        QTRY_COMPARE(traces(world), QString());
        QVERIFY(daemon.table.find(id)->reason.find("emulator") != std::string::npos);
    }

    void cleanUpThatFails_isTriedAgain_data() {
        QTest::addColumn<bool>("isDisposable");
        QTest::newRow("app domain") << false;
        QTest::newRow("disposable") << true;
    }
    void cleanUpThatFails_isTriedAgain() {
        QFETCH(bool, isDisposable);
        Outside world;
        Daemon daemon(world);
        const auto id = isDisposable ? daemon.domains.createDisposable(kAlice, "", "").value() : makeDomain(daemon);
        world.hypervisor.setReachable(false);
        const auto job = daemon.wait(isDisposable ? daemon.lifecycle.startDisposable(kAlice, id).value()
                                                  : daemon.lifecycle.start(kAlice, id).value());
        QCOMPARE(job.error->code, ErrorCode::Unavailable);
        QVERIFY(!traces(world).isEmpty() || !world.hypervisor.list());
        world.hypervisor.setReachable(true);
        QTRY_COMPARE(traces(world), QString());
        if (isDisposable) {
            QTRY_VERIFY(!daemon.table.find(id));
            QVERIFY(world.domains.all()->empty());
        } else {
            startDomain(daemon, id);
        }
    }

    void stopThatFails_isFinishedLater() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        startDomain(daemon, id);
        world.hypervisor.setReachable(false);
        const auto job = daemon.wait(daemon.lifecycle.stop(kAlice, id, {.force = true, .grace = {}}).value());
        QCOMPARE(job.error->code, ErrorCode::Unavailable);
        QCOMPARE(stateOf(daemon, id), DomainState::Stopping);
        world.hypervisor.setReachable(true);
        QTRY_COMPARE(stateOf(daemon, id), DomainState::Stopped);
        QCOMPARE(traces(world), QString());
    }

    void guestThatBreaksTheProtocol_isCutOff() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        daemon.lifecycle.onLinkLost(instance,
                                    {.reason = "the guest broke the channel's protocol", .isViolation = true});
        QTRY_COMPARE_WITH_TIMEOUT(stateOf(daemon, id), DomainState::Failed, 10000);
        QCOMPARE(traces(world), QString());
        QVERIFY(daemon.table.find(id)->reason.find("protocol") != std::string::npos);
    }

    void lostLink_isMadeAnew() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        world.links.programs = 1;
        daemon.lifecycle.onLinkLost(instance, {.reason = "the channel process ended"});
        QTRY_COMPARE(world.links.reopened.load(), 1U);
        QCOMPARE(stateOf(daemon, id), DomainState::Running);
        // Not for ever: one that is lost again at once says something about the guest.
        QTRY_VERIFY(daemon.table.beginOperation(id, "a test").has_value());
        daemon.lifecycle.onLinkLost(instance, {.reason = "the channel process ended"});
        QTRY_COMPARE(stateOf(daemon, id), DomainState::Failed);
        QCOMPARE(world.links.reopened.load(), 1U);
        QTRY_COMPARE(traces(world), QString());
    }

    void lostLink_thatCannotBeMadeAnewFailsTheDomain() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        world.links.reopenError = Error{ErrorCode::TimedOut, "no answer"};
        daemon.lifecycle.onLinkLost(instance, {.reason = "the line closed"});
        QTRY_COMPARE(stateOf(daemon, id), DomainState::Failed);
        QTRY_COMPARE(traces(world), QString());
        const auto reason = daemon.table.find(id)->reason;
        QVERIFY(reason.find("the line closed") != std::string::npos);
        QVERIFY(reason.find("no answer") != std::string::npos);
    }

    void lostLink_endsADisposableWhoseProgramWentWithIt() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.createDisposable(kAlice, "", "").value();
        daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value());
        const auto instance = daemon.table.find(id)->instance->id;
        // None has run yet: the client that waits for it still gets its domain.
        daemon.lifecycle.onLinkLost(instance, {.reason = "the line closed"});
        QTRY_COMPARE(world.links.reopened.load(), 1U);
        QVERIFY(daemon.table.find(id).has_value());
        world.links.programs = 1;
        daemon.lifecycle.onLinkLost(instance, {.reason = "the line closed"});
        QTRY_VERIFY(!daemon.table.find(id));
        QCOMPARE(traces(world), QString());
        QCOMPARE(world.links.reopened.load(), 1U);
    }

    void vsock_givesEachStartAnAddressOfItsOwn() {
        Outside world;
        world.transport.transport = Transport::Vsock;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        startDomain(daemon, id);
        const auto first = *world.instances.all()->front().cid;
        QCOMPARE(world.instances.all()->front().transport, Transport::Vsock);
        QCOMPARE(*world.hypervisor.started().back().cid, first);
        QCOMPARE(*world.links.opened.back().cid, first);
        daemon.wait(daemon.lifecycle.stop(kAlice, id, {.force = true, .grace = {}}).value());
        startDomain(daemon, id);
        QVERIFY(*world.hypervisor.started().back().cid != first);
        // And a daemon that was started anew does not begin again.
        Daemon next(world);
        QVERIFY(next.reconciler.run().has_value());
        QVERIFY(*next.cids.lease() > *world.hypervisor.started().back().cid);
    }

    void transportThatIsNotPossible_failsTheStart() {
        Outside world;
        world.transport.error = Error{ErrorCode::Unavailable, "no vsock here; load the module"};
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto job = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
        QCOMPARE(job.error->code, ErrorCode::Unavailable);
        QVERIFY(job.error->message.find("load the module") != std::string::npos);
        QCOMPARE(traces(world), QString());
    }

    void restart_makesALostChannelAnew() {
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
            startDomain(daemon, id);
        }
        world.links.adoptError = Error{ErrorCode::NotFound, "nobody listens"};
        Daemon next(world);
        QCOMPARE(next.reconciler.run()->adopted, 1U);
        QTRY_COMPARE(world.links.reopened.load(), 1U);
        QCOMPARE(stateOf(next, id), DomainState::Running);
    }

    void disposable_goesWithItsProgram() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.createDisposable(kAlice, "", "").value();
        QCOMPARE(daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value()).state, JobState::Succeeded);
        const auto instance = daemon.table.find(id)->instance->id;
        const auto exec = daemon.domains.exec(kAlice, id, {.argv = {"true"}}).value().id;
        // The client may leave now: its program is what counts.
        daemon.lifecycle.onClientLeft(kAlice.busName);
        daemon.lifecycle.onExecFinished(instance, exec, 1);
        QVERIFY(daemon.table.find(id).has_value());
        daemon.lifecycle.onExecFinished(instance, exec, 0);
        QTRY_VERIFY(!daemon.table.find(id));
        QCOMPARE(traces(world), QString());
        QVERIFY(world.domains.all()->empty());
    }

    void disposable_goesWithItsClientBeforeAProgram() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.createDisposable(kAlice, "", "").value();
        daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value());
        daemon.lifecycle.onClientLeft(":1.77");
        QVERIFY(daemon.table.find(id).has_value());
        daemon.lifecycle.onClientLeft(kAlice.busName);
        QTRY_VERIFY(!daemon.table.find(id));
        QCOMPARE(traces(world), QString());
    }

    void disposable_goesWithItsLastWindow() {
        Outside world;
        Daemon daemon(world);
        const auto id = daemon.domains.createDisposable(kAlice, "", "").value();
        daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value());
        const auto instance = daemon.table.find(id)->instance->id;
        daemon.lifecycle.onWindowsChanged(instance, true);
        // From here on neither who made it counts, nor a program that is run in it meanwhile.
        daemon.lifecycle.onClientLeft(kAlice.busName);
        const auto exec = daemon.domains.exec(kAlice, id, {.argv = {"true"}}).value().id;
        daemon.lifecycle.onExecFinished(instance, exec, 0);
        QVERIFY(daemon.table.find(id).has_value());
        // A program that still runs is waited for.
        world.links.programs = 1;
        daemon.lifecycle.onWindowsChanged(instance, false);
        QVERIFY(daemon.table.find(id)->record.phase == DomainRecord::Phase::Present);
        world.links.programs = 0;
        daemon.lifecycle.onExecFinished(instance, exec, 0);
        QTRY_VERIFY(!daemon.table.find(id));
        QCOMPARE(traces(world), QString());
    }

    void lastWindow_isNothingToADomainThatStays() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        daemon.lifecycle.onWindowsChanged(instance, true);
        daemon.lifecycle.onWindowsChanged(instance, false);
        QCOMPARE(stateOf(daemon, id), DomainState::Running);
    }

    void restart_keepsADisposableWithWindows_data() {
        QTest::addColumn<bool>("hasWindows");
        QTest::newRow("open") << true;
        QTest::newRow("closed meanwhile") << false;
    }
    void restart_keepsADisposableWithWindows() {
        QFETCH(bool, hasWindows);
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = daemon.domains.createDisposable(kAlice, "", "").value();
            daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value());
        }
        world.links.adoptedWindows = hasWindows;
        Daemon next(world);
        QVERIFY(next.reconciler.run());
        if (!hasWindows) {
            QTRY_VERIFY(!next.table.find(id));
            return;
        }
        const auto instance = next.table.find(id)->instance->id;
        next.lifecycle.onExecFinished(instance, 1, 0);
        QCOMPARE(stateOf(next, id), DomainState::Running);
        next.lifecycle.onWindowsChanged(instance, false);
        QTRY_VERIFY(!next.table.find(id));
        QCOMPARE(traces(world), QString());
    }

    void failedRemoval_takesNothingAway() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        startDomain(daemon, id);
        world.hypervisor.setReachable(false);
        const auto failed = daemon.wait(daemon.domains.remove(kAlice, id, {.force = true}).value());
        QCOMPARE(failed.state, JobState::Failed);
        world.hypervisor.setReachable(true);
        QTRY_COMPARE(stateOf(daemon, id), DomainState::Stopped);
        // Nothing goes at the next start of the daemon either: the user was told that it was not removed.
        Daemon next(world);
        QVERIFY(next.reconciler.run().has_value());
        QVERIFY(next.table.find(id).has_value());
        QVERIFY(world.store.homes.contains(id));
    }

    void removalThatCannotBeFinished_leavesNothingUsable() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        world.store.failRemove = Error{ErrorCode::HostFailure, "input/output error"};
        QCOMPARE(daemon.wait(daemon.domains.remove(kAlice, id, {}).value()).state, JobState::Failed);
        const auto start = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
        QCOMPARE(start.error->code, ErrorCode::WrongState);
        world.store.failRemove.reset();
        QCOMPARE(daemon.wait(daemon.domains.remove(kAlice, id, {}).value()).state, JobState::Succeeded);
        QVERIFY(world.store.homes.empty());
    }

    void fullDisk_keepsNothingFromBeingStopped() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        world.database.failWrites = Error{ErrorCode::NoSpace, "full"};
        [[maybe_unused]] const auto job =
            daemon.wait(daemon.lifecycle.stop(kAlice, id, {.force = true, .grace = {}}).value());
        QVERIFY(!world.hypervisor.isRunning(instance));
        world.database.failWrites.reset();
        QTRY_COMPARE(stateOf(daemon, id), DomainState::Stopped);
        QTRY_COMPARE(traces(world), QString());
    }

    void lostDatabase_findsHomesByTheirNotes() {
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
        }
        world.database.domains.clear();
        Daemon next(world);
        QVERIFY(next.reconciler.run().has_value());
        QCOMPARE(next.domains.findByName(kAlice, "work").value().record.id, id);
        startDomain(next, id);
    }

    void guestOnAFullDisk_isPausedAndGoesOn() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto instance = startDomain(daemon, id);
        SpaceGuard guard(world.hypervisor, world.store, daemon.table, *daemon.workers);
        std::vector<InstanceId> resumed;
        guard.whenResumed([&](const InstanceId& told) { resumed.push_back(told); });
        guard.look();
        QCOMPARE(stateOf(daemon, id), DomainState::Running);
        world.hypervisor.pauseFromOutside(instance, false); // an admin's act is not ours to undo
        guard.look();
        QCOMPARE(stateOf(daemon, id), DomainState::Running);
        world.hypervisor.pauseFromOutside(instance, true);
        world.store.spaceNow = {100 * kGiB, 1 * kGiB};
        guard.look();
        QCOMPARE(stateOf(daemon, id), DomainState::Paused);
        QVERIFY(daemon.table.find(id)->reason.find("disk is full") != std::string::npos);
        QVERIFY(resumed.empty());
        world.store.spaceNow = {100 * kGiB, 50 * kGiB};
        guard.look();
        QCOMPARE(stateOf(daemon, id), DomainState::Running);
        QVERIFY(!world.hypervisor.list()->front().isPaused);
        QVERIFY(resumed == std::vector{instance}); // its clock stood
    }

    void quotas_boundOneUser() {
        Outside world;
        Daemon daemon(world);
        for (unsigned i = 0; i < DomainService::kMostDomains; ++i) {
            QVERIFY(daemon.domains.create(kAlice, "d" + std::to_string(i), {}).has_value());
        }
        const auto refused = daemon.domains.create(kAlice, "one-more", {});
        QCOMPARE(refused.error().code, ErrorCode::LimitExceeded);
        QVERIFY(refused.error().message.find("64") != std::string::npos);
        QVERIFY(daemon.domains.create(kMallory, "mine", {}).has_value());
        for (unsigned i = 0; i < DomainService::kMostDisposables; ++i) {
            QVERIFY(daemon.domains.createDisposable(kAlice, "", "").has_value());
        }
        QCOMPARE(daemon.domains.createDisposable(kAlice, "", "").error().code, ErrorCode::LimitExceeded);
        QVERIFY(daemon.domains.createDisposable(kRoot, "", "").has_value());
    }

    void jobs_areBoundedPerUser() {
        Outside world;
        Daemon daemon(world);
        std::atomic<bool> mayEnd = false;
        const JobBody waits = [&](const JobContext&) -> Result<JobResult> {
            while (!mayEnd) {
                std::this_thread::yield();
            }
            return JobResult{};
        };
        std::vector<JobId> ids;
        for (unsigned i = 0; i < JobService::kMostRunning; ++i) {
            ids.push_back(daemon.jobs.begin("test", kAlice.uid, waits).value());
        }
        QCOMPARE(daemon.jobs.begin("test", kAlice.uid, waits).error().code, ErrorCode::LimitExceeded);
        mayEnd = true;
        for (const auto& id : ids) {
            daemon.wait(id);
        }
        for (unsigned i = 0; i < 2 * JobService::kMostRemembered; ++i) {
            daemon.jobs.finished("test", kAlice.uid, {});
        }
        QCOMPARE(daemon.jobs.known().size(), std::size_t{JobService::kMostRemembered});
    }

    void secondOperation_isBusy() {
        Outside world;
        Daemon daemon(world);
        const auto id = makeDomain(daemon);
        const auto operation = daemon.table.beginOperation(id, "a test");
        const auto job = daemon.wait(daemon.lifecycle.start(kAlice, id).value());
        QCOMPARE(job.error->code, ErrorCode::Busy);
        QVERIFY(job.error->message.find("a test") != std::string::npos);
    }

    void restart_adoptsWhatRuns() {
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
            startDomain(daemon, id);
        }
        world.links.adoptedExecs = 1;
        Daemon next(world);
        const auto report = next.reconciler.run();
        QVERIFY(report.has_value());
        QCOMPARE(report->adopted, 1U);
        QCOMPARE(stateOf(next, id), DomainState::Running);
        // A new start does not take its uid.
        QVERIFY(*next.leases.lease() != world.instances.all()->front().uidSlot);
        QCOMPARE(next.wait(next.lifecycle.stop(kAlice, id, {.force = true, .grace = {}}).value()).state,
                 JobState::Succeeded);
        QCOMPARE(traces(world), QString());
    }

    void restart_tellsWhatDied() {
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
            world.hypervisor.endEmulator(startDomain(daemon, id));
        }
        Daemon next(world);
        QCOMPARE(next.reconciler.run()->ended, 1U);
        QCOMPARE(stateOf(next, id), DomainState::Failed);
        QVERIFY(!next.table.find(id)->reason.empty());
        QCOMPARE(traces(world), QString());
        // Said as well after one more restart, until it was started again.
        Daemon third(world);
        third.reconciler.run();
        QCOMPARE(stateOf(third, id), DomainState::Failed);
        startDomain(third, id);
        Daemon fourth(world);
        fourth.reconciler.run();
        QCOMPARE(stateOf(fourth, id), DomainState::Running);
    }

    void restart_undoesIntents_data() {
        QTest::addColumn<int>("phase");
        QTest::newRow("starting") << int(InstancePhase::Starting);
        QTest::newRow("stopping") << int(InstancePhase::Stopping);
    }
    void restart_undoesIntents() {
        QFETCH(int, phase);
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
            const auto instance = startDomain(daemon, id);
            QVERIFY(world.instances.setPhase(instance, InstancePhase(phase)).has_value());
        }
        Daemon next(world);
        QCOMPARE(next.reconciler.run()->undone, 1U);
        QCOMPARE(stateOf(next, id), DomainState::Stopped);
        QCOMPARE(traces(world), QString());
    }

    void restart_finishesRemovals_andUndoesCreations() {
        Outside world;
        DomainId removing;
        DomainId creating;
        {
            Daemon daemon(world);
            removing = makeDomain(daemon, "removing");
            creating = makeDomain(daemon, "creating");
            makeDomain(daemon, "staying");
            QVERIFY(world.domains.setPhase(removing, DomainRecord::Phase::Removing).has_value());
            QVERIFY(world.domains.setPhase(creating, DomainRecord::Phase::Creating).has_value());
        }
        Daemon next(world);
        QVERIFY(next.reconciler.run().has_value());
        QCOMPARE(next.table.all().size(), std::size_t{1});
        QCOMPARE(next.table.all().front().record.name, std::string("staying"));
        QCOMPARE(world.domains.all()->size(), std::size_t{1});
        QCOMPARE(world.store.homes.size(), std::size_t{1});
        QCOMPARE(world.definitions.domains.size(), std::size_t{1});
    }

    void restart_removesDisposablesThatAreDone() {
        Outside world;
        {
            Daemon daemon(world);
            const auto id = daemon.domains.createDisposable(kAlice, "", "").value();
            daemon.wait(daemon.lifecycle.startDisposable(kAlice, id).value());
        }
        world.links.adoptedExecs = 0;
        Daemon next(world);
        QVERIFY(next.reconciler.run().has_value());
        QTRY_VERIFY(next.table.all().empty());
        QCOMPARE(traces(world), QString());
    }

    void restart_leavesForeignEmulatorsAlone() {
        Outside world;
        const auto foreign = randomId<InstanceId>();
        world.hypervisor.addRunning({foreign, 1, false});
        Daemon daemon(world);
        QCOMPARE(daemon.reconciler.run()->foreign, 1U);
        QVERIFY(world.hypervisor.isRunning(foreign));
    }

    void restart_withoutHypervisor_changesNothing() {
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
            startDomain(daemon, id);
        }
        world.hypervisor.setReachable(false);
        Daemon next(world);
        QCOMPARE(next.reconciler.run().error().code, ErrorCode::Unavailable);
        QCOMPARE(world.instances.all()->size(), std::size_t{1});
        QCOMPARE(world.store.instancesOnDisk()->size(), std::size_t{1});
    }

    void brokenDefinition_isToldAtStart() {
        Outside world;
        DomainId id;
        {
            Daemon daemon(world);
            id = makeDomain(daemon);
        }
        world.definitions.domains.clear();
        // Another user's domain may have the same name; whose text is shown must not hang on it.
        world.definitions.problems = {
            {{ErrorCode::InvalidArgument, "/state/1000/work.toml:3:1: unknown key"}, {}, kAlice.uid, "work"},
            {{ErrorCode::InvalidArgument, "/state/1001/work.toml:9:9: secret"}, {}, kAlice.uid + 1, "work"},
            {{ErrorCode::InvalidArgument, "/etc/work.toml:8:8: nobody's"}, {}, std::nullopt, "work"}};
        Daemon next(world);
        next.reconciler.run();
        const auto job = next.wait(next.lifecycle.start(kAlice, id).value());
        QCOMPARE(job.error->code, ErrorCode::InvalidArgument);
        QVERIFY(job.error->message.find("work.toml:3:1") != std::string::npos);
        QVERIFY(world.store.homes.contains(id));
    }

    void templates_buildOnlyWhenSomethingChanged() {
        Outside world;
        Daemon daemon(world);
        QCOMPARE(daemon.templates.build(kAlice, "minimal", {}).error().code, ErrorCode::NotAuthorized);
        QCOMPARE(daemon.templates.build(kRoot, "nothing", {}).error().code, ErrorCode::NotFound);
        auto job = daemon.wait(daemon.templates.build(kRoot, "minimal", {}).value());
        QVERIFY(!std::get<TemplateBuildResult>(job.result).built);
        QCOMPARE(world.builder.builds, 0U);
        world.builder.hash = "definition-2";
        QVERIFY(daemon.templates.find("minimal")->isStale);
        job = daemon.wait(daemon.templates.build(kRoot, "minimal", {}).value());
        QVERIFY(std::get<TemplateBuildResult>(job.result).built);
        QVERIFY(!daemon.templates.find("minimal")->isStale);
        world.builder.error = Error{ErrorCode::HostFailure, "no such package"};
        job = daemon.wait(daemon.templates.build(kRoot, "minimal", {.force = true}).value());
        QCOMPARE(job.state, JobState::Failed);
        QVERIFY(job.error->message.find("no such package") != std::string::npos);
        QVERIFY(daemon.templates.find("minimal")->installed.has_value());
    }

    void templates_badPackageNames_beginNothing_data() {
        QTest::addColumn<QString>("package");
        for (const char* bad :
             {"", "a", "Git", "-x", "+x", "git vim", "git,vim", "git=1", "git/sid", "--help", "ä.b"}) {
            QTest::newRow(bad) << bad;
        }
    }
    void templates_badPackageNames_beginNothing() {
        QFETCH(QString, package);
        Outside world;
        Daemon daemon(world);
        const auto job = daemon.templates.build(kRoot, "minimal", {.packages = {"git", package.toStdString()}});
        QCOMPARE(job.error().code, ErrorCode::InvalidArgument);
        QVERIFY(job.error().message.find("is not the name of a Debian package") != std::string::npos);
        QCOMPARE(world.builder.builds, 0U);
    }

    void templates_install_addsPackages() {
        Outside world;
        Daemon daemon(world);
        world.definitions.templates[0].packages = {"git"};
        world.templates.add("minimal", *world.builder.definitionHash(world.definitions.templates[0]));
        const auto before = daemon.templates.newestVersion("minimal");
        QCOMPARE(daemon.templates.build(kAlice, "minimal", {.packages = {"sl"}}).error().code,
                 ErrorCode::NotAuthorized);
        auto job = daemon.wait(daemon.templates.build(kRoot, "minimal", {.packages = {"git"}}).value());
        QVERIFY(!std::get<TemplateBuildResult>(job.result).built); // has it already
        job = daemon.wait(daemon.templates.build(kRoot, "minimal", {.packages = {"sl", "git", "sl"}}).value());
        QVERIFY(std::get<TemplateBuildResult>(job.result).built);
        const auto info = daemon.templates.find("minimal");
        QVERIFY(!info->isStale);
        QVERIFY((info->definition.packages == std::vector<std::string>{"git", "sl"}));
        QVERIFY((info->definition.addedPackages == std::vector<std::string>{"sl"}));
        QVERIFY(daemon.templates.newestVersion("minimal") != before);
        QCOMPARE(daemon.templates.newestVersion("minimal"), std::optional(info->installed->version));
        job = daemon.wait(daemon.templates.build(kRoot, "minimal", {.packages = {"sl"}}).value());
        QVERIFY(!std::get<TemplateBuildResult>(job.result).built);
    }
    void templates_install_thatFails_changesNothing() {
        Outside world;
        Daemon daemon(world);
        const auto before = daemon.templates.newestVersion("minimal");
        const auto unchanged = [&] {
            const auto info = daemon.templates.find("minimal");
            return info->definition.packages.empty() && info->definition.addedPackages.empty() && !info->isStale &&
                   daemon.templates.newestVersion("minimal") == before;
        };
        const auto install = [&] {
            return daemon.wait(daemon.templates.build(kRoot, "minimal", {.packages = {"sl"}}).value());
        };
        world.builder.error = Error{ErrorCode::HostFailure, "E: Unable to locate package sl"};
        QVERIFY(install().error->message.find("nothing was added") != std::string::npos);
        QVERIFY(unchanged());
        world.builder.error.reset();
        world.templates.failInstall = Error{ErrorCode::NoSpace, "the disk is full"};
        QCOMPARE(install().error->code, ErrorCode::NoSpace);
        QVERIFY(unchanged());
        world.templates.failInstall.reset();
        world.definitions.failSave = Error{ErrorCode::HostFailure, "read-only"};
        QCOMPARE(install().error->code, ErrorCode::HostFailure);
        QVERIFY(unchanged());
        QCOMPARE(world.builder.discarded, 2U);
    }

    void templates_update_keepsTheVersionWithTheSamePackages() {
        Outside world;
        Daemon daemon(world);
        const auto before = daemon.templates.newestVersion("minimal");
        QVERIFY(before.has_value());
        QVERIFY(!daemon.templates.newestVersion("nothing"));
        world.templates.samePackages = true;
        auto job = daemon.wait(daemon.templates.build(kRoot, "minimal", {.update = true}).value());
        QVERIFY(!std::get<TemplateBuildResult>(job.result).built);
        QCOMPARE(world.builder.builds, 1U);
        QCOMPARE(world.builder.discarded, 1U);
        QCOMPARE(daemon.templates.newestVersion("minimal"), before);
        world.templates.samePackages = false;
        job = daemon.wait(daemon.templates.build(kRoot, "minimal", {.update = true}).value());
        QVERIFY(std::get<TemplateBuildResult>(job.result).built);
        QVERIFY(daemon.templates.newestVersion("minimal") != before);
    }
};

QTEST_GUILESS_MAIN(TestLifecycle)
#include "tst_lifecycle.moc"

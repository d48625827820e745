// SPDX-License-Identifier: Apache-2.0
// Emulators that wait for the next start from a warm image, over fakes: when there is one, who takes it, and that none
// is ever left.
#include "unit/core/fake_world.hpp"

#include <QTest>

#include <algorithm>
#include <future>
#include <set>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Cut = CallGate::Cut;

const Caller kAlice{1000, ":1.1"};
const Caller kRoot{0, ":1.3"};

/// A daemon that keeps one, over a world with a warm image.
struct Scene {
    explicit Scene(unsigned shells = 1) {
        world.waitingShells = shells;
        daemon = std::make_unique<Daemon>(world);
        makeImage();
    }
    void makeImage() { daemon->wait(daemon->warmImages.make(kRoot, "minimal", {}, true).value()); }
    /// Until everything is done that starts and changes of images have posted.
    void settle() {
        for (int i = 0; i < 2; ++i) { // what was posted for later is queued behind the first
            std::promise<void> done;
            daemon->shellWork->post([&done] { done.set_value(); });
            done.get_future().wait();
        }
    }
    /// What is made or ended because of the start comes after it.
    JobInfo start(const DomainId& id, bool isCold = false) {
        std::promise<void> started;
        daemon->shellWork->post([&started] { started.get_future().wait(); });
        const bool isDisposable = daemon->table.find(id)->record.kind == DomainKind::Disposable;
        auto job = daemon->wait((isDisposable ? daemon->lifecycle.startDisposable(kAlice, id, isCold)
                                              : daemon->lifecycle.start(kAlice, id, isCold))
                                    .value());
        started.set_value();
        settle();
        return job;
    }
    /// The domain, whatever became of its start.
    DomainId disposable(JobInfo* job = nullptr) {
        const auto id = daemon->domains.createDisposable(kAlice, "minimal", {}).value();
        auto ended = start(id);
        if (job != nullptr) {
            *job = std::move(ended);
        }
        return id;
    }
    /// One with a home of its own.
    DomainId domain(const std::string& name, std::optional<Bytes> homeSize = std::nullopt) {
        CreateOptions options;
        options.homeSize = homeSize;
        return daemon->domains.create(kAlice, name, options).value();
    }
    /// The one that waits.
    InstanceId shell() {
        settle();
        const auto waiting = daemon->shells.waiting();
        return waiting.size() == 1 ? waiting.front() : InstanceId();
    }
    InstanceId instanceOf(const DomainId& id) {
        const auto entry = daemon->table.find(id);
        return entry && entry->instance ? entry->instance->id : InstanceId();
    }
    InstanceRecord record(const InstanceId& id) {
        const auto all = world.instances.all().value();
        const auto found = std::find_if(all.begin(), all.end(), [&](const auto& other) { return other.id == id; });
        return found == all.end() ? InstanceRecord() : *found;
    }
    /// What emulators, files and records there are.
    std::size_t count() {
        const auto running = world.hypervisor.list()->size();
        return world.store.instancesOnDisk()->size() == running && world.instances.all()->size() == running ? running
                                                                                                            : 1000;
    }
    void restart() {
        daemon.reset();
        world.gate.heal();
        world.watch.forgetAll();
        daemon = std::make_unique<Daemon>(world);
    }

    Outside world;
    std::unique_ptr<Daemon> daemon;
};

} // namespace

class TestShellPool : public QObject {
    Q_OBJECT

private slots:
    void beforeAnyWarmStart_noneWaits() {
        Scene scene;
        const auto work = scene.domain("work");
        QCOMPARE(scene.start(work, true).state, JobState::Succeeded);
        QVERIFY(scene.daemon->shells.waiting().empty());
        QCOMPARE(scene.count(), std::size_t{1});
    }

    void domainWithItsOwnHome_takesOne_andItsHomeWithIt() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        const auto work = scene.domain("work");
        const auto job = scene.start(work);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(std::get<StartResult>(job.result).isWarm);
        QCOMPARE(scene.instanceOf(work), shell);
        // The emulator writes to that home, which is its user's; the notes say so.
        const auto& home = scene.world.store.homes.at(work);
        QCOMPARE(home.owner, UidLeases::emulatorUid(scene.record(shell).uidSlot));
        QCOMPARE(scene.world.machines.homesTaken.size(), std::size_t{1});
        const auto taken = scene.world.machines.homesTaken.front();
        QVERIFY(scene.world.machines.activeLayers(shell)->home == taken.layers.front().path);
        QVERIFY(scene.world.store.disks.at(shell).home == taken);
        QCOMPARE(scene.world.store.instances.at(shell), std::optional(work));
        QCOMPARE(scene.world.links.opened.back().hostname, std::string("work"));
        // It is given back, and the next start of it takes the next.
        const auto next = scene.shell();
        QVERIFY(!next.isNull() && next != shell);
        QCOMPARE(
            scene.daemon->wait(scene.daemon->lifecycle.stop(kAlice, work, {.force = true, .grace = {}}).value()).state,
            JobState::Succeeded);
        QCOMPARE(scene.world.store.homes.at(work).owner, uid_t{0});
        QCOMPARE(scene.start(work).state, JobState::Succeeded);
        QCOMPARE(scene.instanceOf(work), next);
    }
    void homeOfAnotherSize_takesNone_thenItsSizeWaits() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        const auto work = scene.domain("work", 3 * kGiB);
        QCOMPARE(scene.start(work).state, JobState::Succeeded);
        QVERIFY(scene.instanceOf(work) != shell && scene.world.machines.homesTaken.empty());
        QVERIFY(!scene.world.hypervisor.isRunning(shell));
        const auto other = scene.domain("other", 3 * kGiB);
        const auto next = scene.shell();
        QVERIFY(!next.isNull());
        QCOMPARE(scene.start(other).state, JobState::Succeeded);
        QCOMPARE(scene.instanceOf(other), next);
    }
    void homeThatCannotBeExchanged_isNoReasonToBoot() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        const auto work = scene.domain("work");
        scene.world.machines.nextLoadError = Error{ErrorCode::HostFailure, "the emulator did not take the home"};
        const auto job = scene.start(work);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(std::get<StartResult>(job.result).isWarm);
        QVERIFY(scene.instanceOf(work) != shell && !scene.world.hypervisor.isRunning(shell));
        QCOMPARE(scene.world.images.images.size(), std::size_t{1});
        QCOMPARE(scene.world.store.instances.at(scene.instanceOf(work)), std::optional(work));
    }

    void nextDisposable_takesTheOneThatWaits() {
        Scene scene;
        JobInfo job;
        const auto first = scene.disposable(&job);
        QCOMPARE(job.state, JobState::Succeeded);
        const auto shell = scene.shell();
        QVERIFY(!shell.isNull() && shell != scene.instanceOf(first));
        const auto spec = scene.world.hypervisor.started().back();
        QCOMPARE(spec.id, shell);
        QVERIFY(scene.world.hypervisor.isPaused(shell));
        QCOMPARE(scene.world.machines.loaded, std::vector{scene.instanceOf(first)});
        const auto slot = scene.record(shell).uidSlot;

        const auto second = scene.disposable(&job);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(std::get<StartResult>(job.result).isWarm);
        QCOMPARE(scene.instanceOf(second), shell);
        QCOMPARE(scene.world.machines.loaded.back(), shell);
        QCOMPARE(scene.world.links.rejuvenated.back(), shell);
        const auto& link = scene.world.links.opened.back();
        QCOMPARE(link.instance, shell);
        QCOMPARE(link.channelUid, UidLeases::channelUid(slot));
        QCOMPARE(link.hostname, scene.daemon->table.find(second)->record.name);
        QVERIFY(link.token != scene.world.links.opened.front().token);
        QCOMPARE(scene.record(shell).domain, second);
        QCOMPARE(scene.record(shell).phase, InstancePhase::Running);
        // And the next one waits already.
        QVERIFY(!scene.shell().isNull() && scene.shell() != shell);
        QCOMPARE(scene.count(), std::size_t{3});
    }

    void asManyAsWished_data() {
        QTest::addColumn<unsigned>("wished");
        QTest::newRow("none") << 0U;
        QTest::newRow("three") << 3U;
    }
    void asManyAsWished() {
        QFETCH(unsigned, wished);
        Scene scene(wished);
        scene.disposable();
        scene.settle();
        QCOMPARE(scene.daemon->shells.waiting().size(), std::size_t{wished});
        QCOMPARE(scene.count(), std::size_t{1} + wished);
    }

    void othersDoNotTakeIt() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        QCOMPARE(scene.start(scene.domain("work"), true).state, JobState::Succeeded);
        const auto cold = scene.daemon->domains.createDisposable(kAlice, "minimal", {}).value();
        QCOMPARE(scene.start(cold, true).state, JobState::Succeeded);
        scene.settle();
        QCOMPARE(scene.daemon->shells.waiting(), std::vector{shell});
        // Nor may one be used by another kind of machine.
        scene.world.machines.machine = "fake 2";
        const auto other = scene.disposable();
        QVERIFY(scene.instanceOf(other) != shell);
    }

    void imageRebuilt_theOneThatWaitsEnds() {
        Scene scene;
        scene.disposable();
        const auto before = scene.shell();
        QVERIFY(!before.isNull());
        scene.makeImage();
        const auto after = scene.shell();
        QVERIFY(!after.isNull() && after != before);
        QVERIFY(!scene.world.hypervisor.isRunning(before));
        QCOMPARE(scene.count(), std::size_t{2});
    }

    void newTemplateVersion_theOneThatWaitsEnds() {
        Scene scene;
        scene.disposable();
        QVERIFY(!scene.shell().isNull());
        scene.world.builder.hash = "definition-2";
        QCOMPARE(scene.daemon->wait(scene.daemon->templates.build(kRoot, "minimal", {}).value()).state,
                 JobState::Succeeded);
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
        QCOMPARE(scene.count(), std::size_t{1});
        // Until there is an image of that version.
        scene.makeImage();
        QVERIFY(!scene.shell().isNull());
    }

    void emulatorThatDies_isTidied() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        scene.world.hypervisor.endEmulator(shell);
        scene.world.watch.end(shell);
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
        QCOMPARE(scene.count(), std::size_t{1});
        JobInfo job;
        const auto next = scene.disposable(&job);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(std::get<StartResult>(job.result).isWarm);
        QVERIFY(scene.instanceOf(next) != shell);
        QVERIFY(!scene.shell().isNull());
    }

    void oneThatCannotLoad_isNoReasonToBoot() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        scene.world.machines.nextLoadError = Error{ErrorCode::HostFailure, "the emulator ended"};
        JobInfo job;
        const auto next = scene.disposable(&job);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(std::get<StartResult>(job.result).isWarm);
        QCOMPARE(std::get<StartResult>(job.result).note, std::string());
        QCOMPARE(scene.world.images.images.size(), std::size_t{1});
        QVERIFY(scene.instanceOf(next) != shell);
        QVERIFY(!scene.world.hypervisor.isRunning(shell));
    }

    void imageThatDoesNotLive_takesTheOneThatWaitsWithIt() {
        Scene scene;
        scene.disposable();
        QVERIFY(!scene.shell().isNull());
        scene.world.machines.loadError = Error{ErrorCode::HostFailure, "the image is broken"};
        JobInfo job;
        scene.disposable(&job);
        QCOMPARE(job.state, JobState::Succeeded);
        QVERIFY(!std::get<StartResult>(job.result).isWarm);
        QVERIFY(scene.world.images.images.empty());
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
        QCOMPARE(scene.count(), std::size_t{2});
    }

    void shortMemory_noneIsMade() {
        Scene scene;
        scene.world.memory.available = 1000 * kMiB; // room for one of 512 MiB, not for another beside it
        JobInfo job;
        scene.disposable(&job);
        QCOMPARE(job.state, JobState::Succeeded);
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
    }

    void startThatNeedsMemory_endsThoseThatWait() {
        Scene scene(2);
        scene.disposable();
        scene.settle();
        QCOMPARE(scene.count(), std::size_t{3});
        scene.world.memory.available = 100 * kMiB;
        JobInfo job;
        const auto refused = scene.disposable(&job);
        QCOMPARE(job.error->code, ErrorCode::LimitExceeded);
        QTRY_VERIFY(!scene.daemon->table.find(refused));
        QCOMPARE(scene.count(), std::size_t{1});
        // Nor are they made again as soon as that is over.
        scene.world.memory.available = 8 * kGiB;
        scene.disposable();
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
    }

    void failedMaking_leavesNothing_andIsNotTriedAtOnce_data() {
        QTest::addColumn<bool>("isPrepare");
        QTest::newRow("disks") << true;
        QTest::newRow("emulator") << false;
    }
    void failedMaking_leavesNothing_andIsNotTriedAtOnce() {
        QFETCH(bool, isPrepare);
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        // The next start takes that one, so that the first that is made is the next shell.
        const Error error{ErrorCode::NoSpace, "the disk is full"};
        if (isPrepare) {
            scene.world.store.failPrepare = error;
        } else {
            scene.world.hypervisor.failNextStart(error);
        }
        const auto next = scene.disposable();
        QCOMPARE(scene.instanceOf(next), shell);
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
        QCOMPARE(scene.count(), std::size_t{2});
        scene.world.store.failPrepare.reset();
        scene.disposable();
        scene.settle();
        QVERIFY(scene.daemon->shells.waiting().empty());
    }

    void oneThatCannotBeEnded_isTriedAgain() {
        Scene scene;
        scene.disposable();
        const auto shell = scene.shell();
        scene.world.hypervisor.setReachable(false);
        scene.world.watch.end(shell);
        scene.settle();
        QVERIFY(scene.world.hypervisor.isRunning(shell));
        scene.world.hypervisor.setReachable(true);
        QTRY_VERIFY(!scene.world.hypervisor.isRunning(shell));
        QTRY_COMPARE(scene.count(), std::size_t{1});
    }

    void orderlyEndOfTheDaemon_endsThem() {
        Scene scene(2);
        scene.disposable();
        scene.settle();
        scene.daemon->shells.stop(std::chrono::minutes(1));
        QCOMPARE(scene.count(), std::size_t{1});
        scene.disposable();
        scene.settle();
        QCOMPARE(scene.count(), std::size_t{2});
    }

    void killedDaemon_theNextOneEndsThem() {
        Scene scene(2);
        const auto domain = scene.disposable();
        scene.settle();
        QCOMPARE(scene.count(), std::size_t{3});
        scene.world.links.adoptedExecs = 1;
        scene.restart();
        const auto report = scene.daemon->reconciler.run();
        QVERIFY(report);
        QCOMPARE(report->undone, 2U);
        QCOMPARE(report->adopted, 1U);
        QCOMPARE(scene.count(), std::size_t{1});
        QVERIFY(!scene.instanceOf(domain).isNull());
    }

    /// A start that takes one and the making of the next, cut off at every single call of a port.
    void cutOffAnywhere_nothingStays_data() {
        QTest::addColumn<Cut>("cut");
        QTest::addColumn<bool>("isKept");
        QTest::newRow("killed before") << Cut::Before << false;
        QTest::newRow("killed after") << Cut::After << false;
        QTest::newRow("an error") << Cut::Once << false;
        QTest::newRow("killed before, a kept home") << Cut::Before << true;
        QTest::newRow("killed after, a kept home") << Cut::After << true;
        QTest::newRow("an error, a kept home") << Cut::Once << true;
    }
    void cutOffAnywhere_nothingStays() {
        QFETCH(Cut, cut);
        QFETCH(bool, isKept);
        std::set<std::string> seen;
        for (unsigned at = 1;; ++at) {
            Scene scene;
            scene.disposable();
            const auto shell = scene.shell();
            QVERIFY(!shell.isNull());
            const auto kept = isKept ? scene.domain("work") : DomainId();
            scene.world.gate.arm(cut, at);
            const auto created =
                isKept ? Result<DomainId>(kept) : scene.daemon->domains.createDisposable(kAlice, "minimal", {});
            if (created) {
                scene.start(*created);
            }
            const std::string where = scene.world.gate.cutAt();
            if (isKept && cut == Cut::Once) {
                scene.daemon->wait(scene.daemon->lifecycle.stop(kAlice, kept, {.force = true, .grace = {}}).value());
            }
            if (cut == Cut::Once) {
                scene.daemon->shells.stop(std::chrono::minutes(1));
                scene.daemon->lifecycle.onClientLeft(kAlice.busName);
            } else {
                scene.restart();
                QVERIFY(scene.daemon->reconciler.run());
            }
            const QString what = QString("%1: call %2 of %3").arg(QTest::currentDataTag()).arg(at).arg(where.c_str());
            // A domain that was told to run goes on running over the daemon's end; the first one is a disposable.
            const bool isUp = isKept && !scene.instanceOf(kept).isNull();
            QTRY_VERIFY2(scene.count() == (isUp ? 1U : 0U), qPrintable(what));
            const std::size_t domains = isKept ? 1 : 0;
            QTRY_VERIFY2(scene.daemon->table.all().size() == domains, qPrintable(what));
            if (isKept) {
                QVERIFY2((scene.world.store.homes.at(kept).owner != 0) == isUp, qPrintable(what));
            }
            if (where.empty()) {
                break;
            }
            seen.insert(where);
        }
        for (const char* call : {"InstanceRepository::assign", "Machines::load", "GuestLinks::open",
                                 "InstanceRepository::insert", "Hypervisor::start"}) {
            QVERIFY2(seen.contains(call), call);
        }
        QCOMPARE(seen.contains("LateHomes::giveHome"), isKept);
    }
};

QTEST_GUILESS_MAIN(TestShellPool)
#include "tst_shell_pool.moc"

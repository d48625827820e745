// SPDX-License-Identifier: Apache-2.0
// Domains that nobody uses for as long as they say are suspended; in no other case, and not for a moment that a program
// begins in.
#include "unit/core/snapshot_world.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;
using namespace std::chrono_literals;

namespace {

using State = DomainState;

struct World : SnapshotWorld {
    DomainId work;
    explicit World(const std::string& idle = "30m") {
        work = create("work");
        if (!idle.empty()) {
            [[maybe_unused]] const auto set =
                daemon->domains.setDefinition(kAlice, work, {{"idle-suspend", idle}}).value();
        }
        start(work);
        write(work, "file", "one");
        look();
    }
    void look() { daemon->idle.look(); }
    void after(std::chrono::minutes time) {
        daemon->now += time;
        look();
    }
    bool isSuspended() { return state(work) == State::Suspended && isFree(); }
    bool isFree() { return daemon->table.beginOperation(work, "test").has_value(); }
    std::size_t suspensions() {
        std::size_t count = 0;
        for (const JobId& id : daemon->jobs.known()) {
            const auto info = daemon->jobs.describe(kRoot, id);
            count += info && info->kind == "suspend" ? 1 : 0;
        }
        return count;
    }
    void waitForJobs() {
        for (const JobId& id : daemon->jobs.known()) {
            daemon->wait(id);
        }
    }
};

} // namespace

class TestIdleSuspend : public QObject {
    Q_OBJECT

private slots:
    void domainThatNobodyUses_isSuspended_afterItsTime() {
        World world;
        world.after(29min);
        QCOMPARE(world.suspensions(), std::size_t{0});
        world.after(1min);
        QTRY_VERIFY(world.isSuspended());
        const auto node = world.daemon->lineage.find(world.head(world.work).node.value()).value();
        QCOMPARE(node.reason, std::string(kReasonSuspend));
        QVERIFY(node.memory);
        QVERIFY(world.outside.hypervisor.list()->empty());
        QCOMPARE(world.problems(), QString());
        // It goes on where it was, and its time counts anew.
        world.start(world.work);
        QCOMPARE(world.home(world.work), (SnapshotWorld::Content{{"file", "one"}}));
        world.look();
        world.after(29min);
        QVERIFY(world.state(world.work) == State::Running);
        world.after(1min);
        QTRY_VERIFY(world.isSuspended());
    }
    void domainWithoutATime_runsOn() {
        for (const char* const never : {"", "off"}) {
            World world(never);
            world.after(std::chrono::hours(24 * 365));
            QCOMPARE(world.suspensions(), std::size_t{0});
        }
    }
    void use_countsAnew_data() {
        QTest::addColumn<QString>("what");
        for (const char* const what : {"program", "window", "short program"}) {
            QTest::newRow(what) << QString(what);
        }
    }
    void use_countsAnew() {
        QFETCH(QString, what);
        World world;
        auto& links = world.outside.links;
        world.after(29min);
        if (what == "short program") {
            ++links.uses; // between two looks
        } else {
            links.programs = what == "program" ? 1 : 0;
            links.isShowing = what == "window";
            world.after(24h * 30); // for as long as it lasts
            links.programs = 0;
            links.isShowing = false;
        }
        world.look();
        world.after(29min);
        QCOMPARE(world.suspensions(), std::size_t{0});
        world.after(1min);
        QTRY_VERIFY(world.isSuspended());
    }
    void timeThatIsChanged_holdsAtOnce() {
        World world("7d");
        world.after(60min);
        QCOMPARE(world.suspensions(), std::size_t{0});
        QVERIFY(world.daemon->domains.setDefinition(kAlice, world.work, {{"idle-suspend", std::string("1h")}}));
        world.look();
        QTRY_VERIFY(world.isSuspended());
    }
    void programThatBegan_holdsItOff() {
        World world;
        world.outside.links.programs = 1;
        // As if it had begun after the look that found nothing.
        const auto job = world.daemon->snapshots.suspendIdle(
            world.work, [&](const DomainEntry&) { return world.outside.links.programs == 0; }, [](const Status&) {});
        QCOMPARE(world.daemon->wait(job.value()).state, JobState::Succeeded);
        QCOMPARE(world.state(world.work), State::Running);
        QVERIFY(world.daemon->snapshots.list(kAlice)->empty());
    }
    void programThatIsAboutToBegin_holdsItOff_andNoneBeginsMeanwhile() {
        World world;
        {
            const auto beginning = world.daemon->table.beginProgram(world.work);
            QVERIFY(beginning);
            QVERIFY(!world.daemon->table.closeToPrograms(world.work));
        }
        {
            const auto closed = world.daemon->table.closeToPrograms(world.work);
            QVERIFY(closed);
            const auto refused = world.daemon->domains.exec(kAlice, world.work, {.argv = {"true"}});
            QCOMPARE(refused.error().code, ErrorCode::Busy);
            QVERIFY(!world.daemon->table.closeToPrograms(world.work));
        }
        QVERIFY(world.daemon->domains.exec(kAlice, world.work, {.argv = {"true"}}));
    }
    void suspensionThatFails_isTriedAgainLater_notAtOnce() {
        World world;
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "full"};
        world.after(30min);
        world.waitForJobs();
        QCOMPARE(world.state(world.work), State::Running);
        QCOMPARE(world.suspensions(), std::size_t{1});
        for (int i = 0; i < 9; ++i) {
            world.after(1min);
        }
        QCOMPARE(world.suspensions(), std::size_t{1});
        world.outside.snapshots.failBegin.reset();
        world.after(1min);
        QTRY_VERIFY(world.isSuspended());
        QCOMPARE(world.suspensions(), std::size_t{2});
        QCOMPARE(world.problems(), QString());
    }
    void adoptedDomain_hasItsWholeTime() {
        World world;
        world.after(29min);
        world.restart();
        world.look();
        world.after(29min);
        QCOMPARE(world.suspensions(), std::size_t{0});
        world.after(1min);
        QTRY_VERIFY(world.isSuspended());
    }
    void disposables_areLeftToOthers() {
        World world("");
        const auto kept = world.daemon->domains.createDisposable(kAlice, {}, {}, {.isKept = true}).value();
        world.done(world.daemon->lifecycle.startDisposable(kAlice, kept));
        world.look();
        world.after(24h * 30);
        QCOMPARE(world.suspensions(), std::size_t{0});
    }
};

QTEST_GUILESS_MAIN(TestIdleSuspend)
#include "tst_idle_suspend.moc"

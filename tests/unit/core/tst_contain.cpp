// SPDX-License-Identifier: Apache-2.0
// The first act after an incident, over fakes: what stands still, what is kept, and what may begin in it.
#include "unit/core/snapshot_world.hpp"

#include "core/services/contain_service.hpp"
#include "core/services/pause_service.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

using Content = SnapshotWorld::Content;

/// A domain that runs, was taken a snapshot of, and is not what it was any more.
struct World : SnapshotWorld {
    DomainId work;
    SnapshotId good;
    World() {
        work = create("work");
        start(work);
        write(work, "file", "good");
        good = take(work);
        write(work, "file", "bad");
    }
    PauseService pauses() {
        return PauseService(daemon->table, {outside.gated.hypervisor, outside.gated.links, outside.gated.instances},
                            daemon->jobs);
    }
    JobInfo tryToContain(const Caller& caller = kAlice) {
        PauseService pausing = pauses();
        ContainService service(daemon->table, pausing, daemon->taker, daemon->lineage, daemon->jobs);
        return end(service.contain(caller, work));
    }
    ContainResult contain() {
        const auto info = tryToContain();
        if (info.state != JobState::Succeeded) {
            throw std::logic_error(info.error ? info.error->message : "cancelled");
        }
        return std::get<ContainResult>(info.result);
    }
    /// What is wrong once it goes on; until then it standing still is what was asked for.
    QString problemsAfterwards() {
        auto pausing = pauses();
        done(pausing.unpause(kAlice, work));
        return problems();
    }
    bool standsStill() { return outside.hypervisor.isPaused(instance(work)); }
};

} // namespace

class TestContain : public QObject {
    Q_OBJECT

private slots:
    void runningDomain_standsStillAndIsKept() {
        World world;
        const auto asked = world.outside.links.pictures.size();
        const auto result = world.contain();
        QCOMPARE(world.state(world.work), DomainState::Paused);
        QVERIFY(world.standsStill());
        QCOMPARE(world.outside.links.pictures.size(), asked); // it is not asked: it may be somebody else's by now
        const auto evidence = world.daemon->lineage.find(result.evidence);
        QVERIFY(evidence && evidence->isPinned && evidence->memory);
        QCOMPARE(evidence->reason, std::string(kReasonEvidence));
        QVERIFY(world.held(result.evidence).home == (Content{{"file", "bad"}}));
        QVERIFY(result.lastGood == world.good);
        QCOMPARE(world.problemsAfterwards(), QString());
    }

    void restartOfTheDaemon_letsNothingGoOn() {
        World world;
        world.contain();
        world.restart();
        QCOMPARE(world.state(world.work), DomainState::Paused);
        QVERIFY(world.standsStill());
        // Also where the daemon died before the pause: what was said to be held is.
        QVERIFY(world.outside.hypervisor.resume(world.instance(world.work)));
        world.restart();
        QVERIFY(world.standsStill());
        auto pauses = world.pauses();
        world.done(pauses.unpause(kAlice, world.work));
        QVERIFY(!world.standsStill());
        world.restart();
        QCOMPARE(world.state(world.work), DomainState::Running);
        QVERIFY(!world.standsStill());
        QCOMPARE(world.problems(), QString());
    }

    void goingBack_keepsTheEvidence() {
        World world;
        const auto result = world.contain();
        world.revert(*result.lastGood);
        QCOMPARE(world.state(world.work), DomainState::Running);
        QVERIFY(!world.standsStill());
        QVERIFY(world.home(world.work) == (Content{{"file", "good"}}));
        QVERIFY(world.held(result.evidence).home == (Content{{"file", "bad"}}));
        QCOMPARE(world.daemon->snapshots.remove(kAlice, result.evidence, false).error().code, ErrorCode::WrongState);
        QCOMPARE(world.problems(), QString());
    }

    void whatBeginsInTheEvidence_reachesNothing() {
        World world;
        const auto result = world.contain();
        const auto fork = world.fork(result.evidence, "look");
        const auto entry = world.daemon->table.find(fork);
        QCOMPARE(entry->definition.egress, std::string("none"));
        QVERIFY(entry->definition.tags == std::vector<std::string>{std::string(kReasonEvidence)});
        SnapshotService::ForkOptions wish;
        wish.egress = "web";
        const auto refused = world.end(world.daemon->snapshots.fork(kAlice, result.evidence, "reach", wish));
        QCOMPARE(refused.error->code, ErrorCode::InvalidArgument);
        QCOMPARE(world.problemsAfterwards(), QString());
    }

    void evidenceThatCannotBeTaken_isSaidAndItStandsStill() {
        World world;
        world.outside.snapshots.failBegin = Error{ErrorCode::NoSpace, "the disk is full"};
        const auto info = world.tryToContain();
        QCOMPARE(info.state, JobState::Failed);
        QVERIFY2(info.error->message.find("is paused, but") != std::string::npos, info.error->message.c_str());
        QCOMPARE(info.error->code, ErrorCode::NoSpace);
        QVERIFY(world.standsStill());
        QCOMPARE(world.state(world.work), DomainState::Paused);
        world.outside.snapshots.failBegin.reset();
        QVERIFY(world.contain().lastGood == world.good); // and can be asked for again
        QCOMPARE(world.problemsAfterwards(), QString());
    }

    /// What an earlier incident left is nothing to go back to.
    void secondIncident_goesBackToBeforeTheFirst() {
        World world;
        const auto first = world.contain();
        auto pauses = world.pauses();
        world.done(pauses.unpause(kAlice, world.work));
        const auto second = world.contain();
        QVERIFY(second.evidence != first.evidence);
        QVERIFY(second.lastGood == world.good);
    }

    void stoppedDomain_itsDisksAreKept() {
        World world;
        world.stop(world.work);
        const auto result = world.contain();
        QCOMPARE(world.state(world.work), DomainState::Stopped);
        QVERIFY(world.held(result.evidence).home == (Content{{"file", "bad"}}));
        QVERIFY(world.daemon->lineage.find(result.evidence)->isPinned);
        QVERIFY(result.lastGood == world.good);
    }

    void suspendedDomain_itsMemoryIsTheEvidence() {
        World world;
        world.suspend(world.work);
        const auto head = *world.head(world.work).node;
        const auto result = world.contain();
        QCOMPARE(result.evidence, head);
        QVERIFY(world.daemon->lineage.find(head)->isPinned);
        QVERIFY(result.lastGood == world.good);
    }

    void guestOnAFullDisk_doesNotGoOnByItself() {
        World world;
        world.outside.hypervisor.pauseFromOutside(world.instance(world.work), true);
        QVERIFY(world.daemon->table.apply(world.work, DomainEvent::PauseRequested, "the host's disk is full"));
        world.contain();
        QVERIFY(world.daemon->table.find(world.work)->instance->isHeld);
    }

    void others_seeNothing() {
        World world;
        QCOMPARE(world.tryToContain(kMallory).error->code, ErrorCode::NotFound);
        QCOMPARE(world.state(world.work), DomainState::Running);
    }
};

QTEST_GUILESS_MAIN(TestContain)
#include "tst_contain.moc"

// SPDX-License-Identifier: Apache-2.0
#include "fake_world.hpp"

#include "core/services/pause_service.hpp"

#include <QTest>

using namespace bulkhead;
using namespace bulkhead::core;
using namespace bulkhead::tests;

namespace {

const Caller kAlice{1000, ":1.1"};
const Caller kMallory{1001, ":1.2"};

} // namespace

class TestPause : public QObject {
    Q_OBJECT

    struct Scene {
        Outside world;
        Daemon daemon{world};
        PauseService pauses{daemon.table,
                            {world.gated.hypervisor, world.gated.links, world.gated.instances},
                            daemon.jobs,
                            std::chrono::milliseconds(20)};
        DomainId id = daemon.domains.create(kAlice, "work", {}).value();

        InstanceId start() {
            daemon.wait(daemon.lifecycle.start(kAlice, id).value());
            return daemon.table.find(id)->instance->id;
        }
        JobInfo pause() { return daemon.wait(pauses.pause(kAlice, id).value()); }
        JobInfo unpause() { return daemon.wait(pauses.unpause(kAlice, id).value()); }
        [[nodiscard]] DomainState state() const { return daemon.table.find(id)->state; }
    };

private slots:
    void paused_standsStillAndGoesOn() {
        Scene scene;
        const auto instance = scene.start();
        QCOMPARE(scene.pause().state, JobState::Succeeded);
        QCOMPARE(scene.state(), DomainState::Paused);
        QVERIFY(scene.world.hypervisor.isPaused(instance));
        QCOMPARE(scene.pause().state, JobState::Succeeded); // as it is
        QCOMPARE(scene.unpause().state, JobState::Succeeded);
        QCOMPARE(scene.state(), DomainState::Running);
        QVERIFY(!scene.world.hypervisor.isPaused(instance));
        QCOMPARE(scene.unpause().state, JobState::Succeeded);
    }

    void notRunning_isRefused() {
        Scene scene;
        const auto paused = scene.pause();
        QCOMPARE(paused.state, JobState::Failed);
        QCOMPARE(paused.error->code, ErrorCode::WrongState);
        QCOMPARE(paused.error->message, std::string("domain \"work\" is stopped; only what runs can be paused"));
        const auto unpaused = scene.unpause();
        QCOMPARE(unpaused.error->message, std::string("domain \"work\" is stopped; only what is paused can go on"));
    }

    void others_seeNothing() {
        Scene scene;
        scene.start();
        QCOMPARE(scene.pauses.pause(kMallory, scene.id).error().code, ErrorCode::NotFound);
        QCOMPARE(scene.pauses.unpause(kMallory, scene.id).error().code, ErrorCode::NotFound);
        QCOMPARE(scene.state(), DomainState::Running);
    }

    void hypervisorAway_leavesTheStateAsItIs() {
        Scene scene;
        scene.start();
        scene.world.hypervisor.setReachable(false);
        QCOMPARE(scene.pause().state, JobState::Failed);
        QCOMPARE(scene.state(), DomainState::Running);
        scene.world.hypervisor.setReachable(true);
        QCOMPARE(scene.pause().state, JobState::Succeeded);
        scene.world.hypervisor.setReachable(false);
        const auto unpaused = scene.unpause();
        QCOMPARE(unpaused.state, JobState::Failed);
        QVERIFY(unpaused.error->message.starts_with("unpausing domain \"work\""));
        QCOMPARE(scene.state(), DomainState::Paused);
        scene.world.hypervisor.setReachable(true);
    }

    /// It goes on by itself, and could not go on now.
    void guestOnAFullDisk_isNotUnpaused() {
        Scene scene;
        const auto instance = scene.start();
        scene.world.hypervisor.pauseFromOutside(instance, true);
        QVERIFY(scene.daemon.table.apply(scene.id, DomainEvent::PauseRequested, "the host's disk is full"));
        const auto unpaused = scene.unpause();
        QCOMPARE(unpaused.state, JobState::Failed);
        QVERIFY(unpaused.error->message.ends_with("the host's disk is full"));
        QVERIFY(scene.world.hypervisor.isPaused(instance));
        // Paused by its owner on top of that, it is the owner's to let go on.
        QCOMPARE(scene.pause().state, JobState::Succeeded);
        QVERIFY(scene.daemon.table.find(scene.id)->instance->isHeld);
        QCOMPARE(scene.unpause().state, JobState::Succeeded);
        QCOMPARE(scene.state(), DomainState::Running);
    }

    void failedPause_isForgotten() {
        Scene scene;
        scene.start();
        scene.world.hypervisor.setReachable(false);
        QCOMPARE(scene.pause().state, JobState::Failed);
        QVERIFY(!scene.daemon.table.find(scene.id)->instance->isHeld);
        scene.world.hypervisor.setReachable(true);
    }

    /// A guest that stands still cannot answer on a new channel; nothing ends it for that.
    void lostChannel_waitsUntilItGoesOn() {
        Scene scene;
        const auto instance = scene.start();
        QCOMPARE(scene.pause().state, JobState::Succeeded);
        scene.daemon.lifecycle.onLinkLost(instance, {"the channel process ended", false});
        QCOMPARE(scene.unpause().state, JobState::Succeeded);
        QTRY_VERIFY(scene.world.links.reopened > 0U); // by then it can
        QCOMPARE(scene.state(), DomainState::Running);
    }

    void startOfAPausedOne_changesNothing() {
        Scene scene;
        scene.start();
        QCOMPARE(scene.pause().state, JobState::Succeeded);
        const auto ran = scene.daemon.table.find(scene.id)->record.ranWith;
        const auto started = scene.daemon.wait(scene.daemon.lifecycle.start(kAlice, scene.id).value());
        QCOMPARE(started.error->code, ErrorCode::WrongState);
        QVERIFY(started.error->message.find("domain unpause work") != std::string::npos);
        QVERIFY(scene.daemon.table.find(scene.id)->record.ranWith == ran);
    }

    void pausedOne_canBeStopped() {
        Scene scene;
        scene.start();
        QCOMPARE(scene.pause().state, JobState::Succeeded);
        // In order it cannot be: that would be a power cut that nobody asked for.
        const auto orderly = scene.daemon.wait(scene.daemon.lifecycle.stop(kAlice, scene.id, {}).value());
        QCOMPARE(orderly.error->code, ErrorCode::WrongState);
        QVERIFY(orderly.error->message.find("unpause") != std::string::npos);
        QCOMPARE(scene.state(), DomainState::Paused);
        QCOMPARE(scene.daemon.wait(scene.daemon.lifecycle.stop(kAlice, scene.id, {.force = true}).value()).state,
                 JobState::Succeeded);
        QCOMPARE(scene.state(), DomainState::Stopped);
    }
};

QTEST_GUILESS_MAIN(TestPause)
#include "tst_pause.moc"

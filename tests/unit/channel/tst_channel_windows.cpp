// SPDX-License-Identifier: Apache-2.0
#include "channel/window_watch.hpp"

#include <QTest>

using namespace bulkhead::channel;
using std::chrono::seconds;

/// When a domain's windows carry it, and when the last one has closed for good.
class TestChannelWindows : public QObject {
    Q_OBJECT

    static constexpr TimePoint kStart = TimePoint{} + seconds(100);
    static constexpr auto kGrace = WindowWatch::kGrace;

private slots:
    void noWindowYet_isNothing() {
        WindowWatch watch;
        QVERIFY(watch.turn(true, 0, kStart) == WindowsState::None);
        QVERIFY(watch.turn(true, 0, kStart + seconds(1000)) == WindowsState::None);
        QVERIFY(watch.nextDeadline() == TimePoint::max());
    }
    void lastOne_closesAfterTheGrace() {
        WindowWatch watch;
        QVERIFY(watch.turn(true, 2, kStart) == WindowsState::Open);
        QVERIFY(watch.turn(true, 1, kStart + seconds(50)) == WindowsState::Open);
        QVERIFY(watch.nextDeadline() == TimePoint::max());
        QVERIFY(watch.turn(true, 0, kStart + seconds(60)) == WindowsState::Open);
        QVERIFY(watch.nextDeadline() == kStart + seconds(60) + kGrace);
        QVERIFY(watch.turn(true, 0, watch.nextDeadline() - seconds(1)) == WindowsState::Open);
        QVERIFY(watch.turn(true, 0, watch.nextDeadline()) == WindowsState::Closed);
        QVERIFY(watch.nextDeadline() == TimePoint::max());
        QVERIFY(watch.turn(true, 1, kStart + seconds(1000)) == WindowsState::Open);
    }
    void splash_doesNotEndIt() {
        WindowWatch watch;
        (void)watch.turn(true, 1, kStart);
        (void)watch.turn(true, 0, kStart + seconds(1));
        QVERIFY(watch.turn(true, 1, kStart + seconds(9)) == WindowsState::Open);
        // The next gap has the whole grace again.
        (void)watch.turn(true, 0, kStart + seconds(10));
        QVERIFY(watch.turn(true, 0, kStart + seconds(10) + kGrace - seconds(1)) == WindowsState::Open);
    }
    /// Its windows are not known then, which is not the same as none.
    void sessionThatIsDown_stopsTheClock() {
        WindowWatch watch;
        (void)watch.turn(true, 1, kStart);
        QVERIFY(watch.turn(false, 0, kStart + seconds(1)) == WindowsState::Open);
        QVERIFY(watch.turn(false, 0, kStart + seconds(1000)) == WindowsState::Open);
        QVERIFY(watch.turn(true, 0, kStart + seconds(1001)) == WindowsState::Open);
        QVERIFY(watch.turn(true, 0, kStart + seconds(1001) + kGrace) == WindowsState::Closed);
    }
    void programThatCameFirst_carriesItInstead() {
        WindowWatch watch;
        watch.programStarted();
        QVERIFY(watch.turn(true, 1, kStart) == WindowsState::None);
        QVERIFY(watch.turn(true, 0, kStart + seconds(1000)) == WindowsState::None);
    }
    void programThatCameLater_changesNothing() {
        WindowWatch watch;
        (void)watch.turn(true, 1, kStart);
        watch.programStarted();
        (void)watch.turn(true, 0, kStart + seconds(1));
        QVERIFY(watch.turn(true, 0, kStart + seconds(1) + kGrace) == WindowsState::Closed);
    }
};

QTEST_GUILESS_MAIN(TestChannelWindows)
#include "tst_channel_windows.moc"

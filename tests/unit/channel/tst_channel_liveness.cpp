// SPDX-License-Identifier: Apache-2.0
#include "channel/liveness.hpp"

#include <QTest>

using namespace bulkhead::channel;
using Act = Liveness::Act;
using std::chrono::seconds;

class TestChannelLiveness : public QObject {
    Q_OBJECT

private slots:
    void nothingIsExpectedBeforeTheFirstWord() {
        Liveness liveness;
        QVERIFY(liveness.turn(TimePoint{} + seconds(1000)) == Act::Nothing);
        QVERIFY(liveness.nextDeadline() == TimePoint::max());
    }
    void asksThenSaysThatItIsSilentThenThatItIsBack() {
        Liveness liveness;
        const TimePoint start = TimePoint{} + seconds(100);
        liveness.heard(start);
        QVERIFY(liveness.nextDeadline() == start + seconds(10));
        QVERIFY(liveness.turn(start + seconds(9)) == Act::Nothing);
        QVERIFY(liveness.turn(start + seconds(10)) == Act::Ping);
        QVERIFY(liveness.turn(start + seconds(10)) == Act::Nothing);
        QVERIFY(liveness.nextDeadline() == start + seconds(60));
        QVERIFY(liveness.turn(start + seconds(60)) == Act::Silent);
        QVERIFY(liveness.turn(start + seconds(600)) == Act::Nothing);
        QVERIFY(liveness.nextDeadline() == TimePoint::max());
        liveness.heard(start + seconds(601));
        QVERIFY(liveness.turn(start + seconds(601)) == Act::Back);
        QVERIFY(liveness.turn(start + seconds(601)) == Act::Nothing);
        QVERIFY(liveness.turn(start + seconds(611)) == Act::Ping);
    }
    void anAnswerBeginsItAnew() {
        Liveness liveness;
        const TimePoint start = TimePoint{} + seconds(100);
        liveness.heard(start);
        QVERIFY(liveness.turn(start + seconds(10)) == Act::Ping);
        liveness.heard(start + seconds(11));
        QVERIFY(liveness.turn(start + seconds(20)) == Act::Nothing);
        QVERIFY(liveness.turn(start + seconds(21)) == Act::Ping);
    }
    void aLongPauseAsksBeforeItJudges() {
        Liveness liveness; // whoever asks was frozen, as was the guest: both bounds are past
        liveness.heard(TimePoint{});
        const TimePoint woken = TimePoint{} + seconds(1000);
        QVERIFY(liveness.turn(woken) == Act::Ping);
        QVERIFY(liveness.turn(woken) == Act::Nothing);
        QVERIFY(liveness.nextDeadline() == woken + seconds(50));
        QVERIFY(liveness.turn(woken + seconds(49)) == Act::Nothing);
        QVERIFY(liveness.turn(woken + seconds(50)) == Act::Silent);
    }
};

QTEST_GUILESS_MAIN(TestChannelLiveness)
#include "tst_channel_liveness.moc"

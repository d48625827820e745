// SPDX-License-Identifier: Apache-2.0
// How long the host slept, from its clocks. That the kernel tells of a jump is tested in the rig, where a clock may be
// set.
#include "process/host_clock_watch.hpp"
#include "process/poller.hpp"

#include <QTest>

#include <atomic>
#include <condition_variable>
#include <mutex>

using namespace bulkhead::process;
using namespace std::chrono_literals;

class TestHostClock : public QObject {
    Q_OBJECT

private slots:
    void sleepIsWhatOneClockCountsAndTheOtherDoesNot() {
        SleepMeter meter({.boot = 5000s, .monotonic = 1000s});
        QCOMPARE(meter.slept({.boot = 5060s, .monotonic = 1060s}), 0ms);
        QCOMPARE(meter.slept({.boot = 8660s, .monotonic = 1061s}), 3599s);
        QCOMPARE(meter.slept({.boot = 8670s, .monotonic = 1071s}), 0ms); // told once
    }
    void twoReadingsAreNotOneMoment() {
        SleepMeter meter({.boot = 5000s, .monotonic = 1000s});
        for (int i = 1; i <= 100; ++i) {
            QCOMPARE(meter.slept({.boot = 5000s + i * 1s + 20ms, .monotonic = 1000s + i * 1s}), 0ms);
            QCOMPARE(meter.slept({.boot = 5000s + i * 1s - 20ms, .monotonic = 1000s + i * 1s}), 0ms);
        }
        QCOMPARE(meter.slept({.boot = 5110s, .monotonic = 1100s}), 10s);
    }
    void shortSleepsAddUp() {
        SleepMeter meter({.boot = 0s, .monotonic = 0s});
        QCOMPARE(meter.slept({.boot = 1150ms, .monotonic = 1000ms}), 0ms);
        QCOMPARE(meter.slept({.boot = 2300ms, .monotonic = 2000ms}), 300ms);
    }
    /// The kernel takes such a timer, and one that never comes does not.
    void awakeHost_tellsNothing() {
        Poller poller;
        std::atomic<int> told = 0;
        {
            const HostClockWatch watch(poller, [&](std::chrono::milliseconds) { ++told; });
            std::mutex mutex;
            std::condition_variable passed;
            bool hasPassed = false;
            poller.startTimer(50ms, [&] {
                const std::lock_guard lock(mutex);
                hasPassed = true;
                passed.notify_one();
            });
            std::unique_lock lock(mutex);
            passed.wait(lock, [&] { return hasPassed; });
        }
        QCOMPARE(told, 0);
    }
};

QTEST_GUILESS_MAIN(TestHostClock)
#include "tst_host_clock.moc"

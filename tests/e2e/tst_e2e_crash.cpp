// SPDX-License-Identifier: Apache-2.0
// What survives which death: the daemon, libvirtd, the emulator, the channel process, and a guest that lies.
#include "e2e_support.hpp"

#include <QDateTime>
#include <QTest>

using namespace bulkhead::e2e;

namespace {

/// Counts upwards, one number each 0.1 s, and ends with "done" when /tmp/end is there.
const QString kCounter = "i=0; while [ ! -e /tmp/end ]; do i=$((i+1)); echo n$i; sleep 0.1; done; echo done; exit 9";

} // namespace

class TestE2eCrash : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "work"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
    }

    void daemonKilled_programGoesOn() {
        Running running({"bulkhead", "run", "--domain", "work", "--", "sh", "-c", kCounter});
        QVERIFY(running.waitFor("n3\n"));
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        // With no daemon there at all its output still arrives.
        QVERIFY(running.waitFor("n15\n"));
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(stateOf("work"), QString("running"));
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "touch", "/tmp/end"}), 0);
        const auto outcome = running.wait();
        QVERIFY2(outcome.output.endsWith("done\n"), outcome.text().constData());
        COMPARE_STATUS(outcome, 9);
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        QCOMPARE(stateOf("work"), QString("stopped"));
        VERIFY_NO_TRACES();
    }

    void daemonKilled_disposableIsCleanedUpLater() {
        Running running({"bulkhead", "run", "--disposable", "--", "sh", "-c", "echo ready; read line; echo got $line"});
        QVERIFY(running.waitFor("ready\n"));
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        running.write("hello\n");
        running.closeInput();
        const auto outcome = running.wait();
        COMPARE_STATUS(outcome, 0);
        QVERIFY2(outcome.output.contains("got hello"), outcome.text().constData());
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        VERIFY_NO_TRACES();
    }

    void daemonKilledWhileStarting_isUndone() {
        Running running({"bulkhead", "run", "--disposable", "--", "true"});
        QTRY_VERIFY_WITH_TIMEOUT(!emulatorPids().isEmpty(), 30000);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(running.wait(), 125);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        VERIFY_NO_TRACES();
    }

    void libvirtdKilled_programGoesOn() {
        Running running({"bulkhead", "run", "--domain", "work", "--", "sh", "-c", kCounter});
        QVERIFY(running.waitFor("n3\n"));
        COMPARE_STATUS(run({"ph-libvirtd", "kill"}), 0);
        QVERIFY(running.waitFor("n15\n"));
        COMPARE_STATUS(run({"ph-libvirtd", "start"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "touch", "/tmp/end"}), 0);
        COMPARE_STATUS(running.wait(), 9);
        QCOMPARE(stateOf("work"), QString("running"));
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        VERIFY_NO_TRACES();
        COMPARE_STATUS(cli({"run", "--disposable", "--", "true"}), 0);
        VERIFY_NO_TRACES();
    }

    void libvirtdAway_isToldAsSuch() {
        COMPARE_STATUS(run({"ph-libvirtd", "kill"}), 0);
        const auto refused = cli({"run", "--disposable", "--", "true"});
        COMPARE_STATUS(run({"ph-libvirtd", "start"}), 0);
        COMPARE_STATUS(refused, 125);
        QVERIFY2(refused.error.contains("libvirt"), refused.text().constData());
        VERIFY_NO_TRACES();
    }

    void emulatorKilled_isToldAndCleanedUp() {
        Running running({"bulkhead", "run", "--domain", "work", "--", "sh", "-c", "echo ready; sleep 1000"});
        QVERIFY(running.waitFor("ready\n"));
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(emulatorPids())});
        const auto outcome = running.wait();
        COMPARE_STATUS(outcome, 125);
        QVERIFY2(outcome.error.contains("work"), outcome.text().constData());
        QTRY_COMPARE_WITH_TIMEOUT(stateOf("work"), QString("failed"), 20000);
        VERIFY_NO_TRACES();
        const auto shown = cli({"domain", "show", "work"});
        QVERIFY2(shown.output.contains("emulator"), shown.text().constData());
        // It can be used again at once.
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "true"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
    }

    void guestPowersOff_isTold() {
        const auto outcome =
            cli({"run", "--disposable", "--user", "root", "--", "sh", "-c", "echo o > /proc/sysrq-trigger; sleep 100"});
        COMPARE_STATUS(outcome, 125);
        VERIFY_NO_TRACES();
    }

    void guestThatSendsGarbage_isCutOff() {
        // Root in the guest takes the agent's own descriptor of the channel and writes what it likes.
        const QByteArray garbage = "import ctypes, os\n"
                                   "libc = ctypes.CDLL(None, use_errno=True)\n"
                                   "pidfd = libc.syscall(434, 1, 0)\n"
                                   "for n in range(64):\n"
                                   "    try: name = os.readlink('/proc/1/fd/%d' % n)\n"
                                   "    except OSError: continue\n"
                                   "    if 'vport' in name or ('socket' in name and n > 2):\n"
                                   "        fd = libc.syscall(438, pidfd, n, 0)\n"
                                   "        print('writing', flush=True)\n"
                                   "        for i in range(64): os.write(fd, os.urandom(4096))\n"
                                   "import time; time.sleep(60)\n";
        const auto outcome =
            cli({"run", "--domain", "work", "--user", "root", "--", "python3", "-c", QString::fromLatin1(garbage)});
        COMPARE_STATUS(outcome, 125);
        QVERIFY2(outcome.error.contains("rules of the channel"), outcome.text().constData());
        QTRY_COMPARE_WITH_TIMEOUT(stateOf("work"), QString("failed"), 20000);
        const auto shown = cli({"domain", "show", "work"});
        QVERIFY2(shown.output.contains("protocol"), shown.text().constData());
        VERIFY_NO_TRACES();
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "true"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
    }

    void channelProcessKilled_domainGoesOn() {
        Running running({"bulkhead", "run", "--domain", "work", "--", "sh", "-c", "echo ready; sleep 1000"});
        QVERIFY(running.waitFor("ready\n"));
        const auto emulator = emulatorPids();
        const auto channel = pidsOf("bulkhead-channel");
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(channel)});
        // What ran through it is over, and is told so; the guest is not, and can be spoken to again.
        COMPARE_STATUS(running.wait(), 125);
        QTRY_COMPARE_WITH_TIMEOUT(cli({"run", "--domain", "work", "--", "echo", "again"}).output, QByteArray("again\n"),
                                  20000);
        QCOMPARE(stateOf("work"), QString("running"));
        QCOMPARE(emulatorPids(), emulator);
        QVERIFY(pidsOf("bulkhead-channel") != channel);
        // The guest has hung up the lost program.
        const auto left = cli({"run", "--domain", "work", "--", "sh", "-c", "pgrep -c -x sleep || true"});
        QCOMPARE(left.output, QByteArray("0\n"));
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        VERIFY_NO_TRACES();
    }

    void channelProcessKilledWithoutADaemon_domainGoesOn() {
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(pidsOf("bulkhead-channel"))});
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(stateOf("work"), QString("running"));
        // The daemon does not wait for guests before it answers: the new channel comes a moment later.
        QTRY_COMPARE_WITH_TIMEOUT(cli({"run", "--domain", "work", "--", "echo", "again"}).output, QByteArray("again\n"),
                                  20000);
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        VERIFY_NO_TRACES();
    }

    void channelProcessKilled_endsADisposable() {
        Running running({"bulkhead", "run", "--disposable", "--", "sh", "-c", "echo ready; sleep 1000"});
        QVERIFY(running.waitFor("ready\n"));
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(pidsOf("bulkhead-channel"))});
        COMPARE_STATUS(running.wait(), 125);
        VERIFY_NO_TRACES();
    }

    void pausedGuest_hasTheRightTimeAfterItsAdoption() {
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        const auto name = QString::fromLatin1(run({"virsh", "list", "--name"}).output.trimmed());
        COMPARE_STATUS(run({"virsh", "suspend", name}), 0);
        QTest::qWait(5000); // what the guest's clock is behind afterwards, unless somebody sets it
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        const auto inside = cli({"run", "--domain", "work", "--", "date", "+%s"}).output.trimmed().toLongLong();
        const auto behind = QDateTime::currentSecsSinceEpoch() - inside;
        QVERIFY2(behind >= -1 && behind <= 2, qPrintable(QString::number(behind)));
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2eCrash)
#include "tst_e2e_crash.moc"

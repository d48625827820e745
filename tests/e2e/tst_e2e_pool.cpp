// SPDX-License-Identifier: Apache-2.0
// The emulator that waits for the next disposable, with real guests: who takes it, and that it is never left behind.
#include "e2e_support.hpp"

#include <QDirIterator>
#include <QFile>

using namespace bulkhead::e2e;

namespace {

/// The process of the emulator of which the daemon said last that it waits, when that is the only one that there is;
/// otherwise 0. (libvirt shows others as paused for a moment, too: when they begin, and when they end.)
pid_t waitingPid() {
    static const QRegularExpression kSaid("an emulator waits for the next start[^\n]*INSTANCE=([0-9a-f-]{36})");
    QString last;
    const auto log = QString::fromUtf8(run({"ph-daemon", "log"}).output);
    for (auto said = kSaid.globalMatch(log); said.hasNext();) {
        last = said.next().captured(1);
    }
    const auto pid = run({"pgrep", "--full", "qemu-system-x86_64 -name guest=bh-" + last}).output.trimmed();
    return !last.isEmpty() && pid == emulatorPids() ? pid.toInt() : 0;
}

/// Until one waits and all else is gone; 0: it never came. `before`: the one that a disposable took.
pid_t waitForShell(pid_t before = 0) {
    pid_t pid = 0;
    const auto look = [&] { return (pid = waitingPid()) != 0 && pid != before; };
    return QTest::qWaitFor(look, kPatienceMs) ? pid : 0;
}

bool isThere(pid_t pid) {
    return QFile::exists("/proc/" + QString::number(pid));
}

/// The memory that it maps, or will.
QString imageOf(pid_t pid) {
    QFile file("/proc/" + QString::number(pid) + "/cmdline");
    return file.open(QIODevice::ReadOnly)
               ? QRegularExpression("mem-path=([^,]*)").match(QString::fromLatin1(file.readAll())).captured(1)
               : QString();
}

Outcome inDisposable(const QString& command) {
    return cli({"run", "--disposable", "--", "sh", "-c", command});
}

/// Of a disposable for which none had waited.
pid_t shellAfterADisposable() {
    return inDisposable("true").status == 0 ? waitForShell() : 0;
}

} // namespace

class TestE2ePool : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start", "--waiting-shells=1"}), 0);
        COMPARE_STATUS(cli({"template", "warm", "minimal", "--force"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
    }

    void beforeAnyDisposable_noneWaits() { VERIFY_NO_TRACES(); }

    void nextDisposable_takesTheOneThatWaits() {
        const pid_t first = shellAfterADisposable();
        QVERIFY(first != 0);
        // All that a disposable has: a home that it may write to, and random numbers of its own.
        const QString look = "df --output=target ~ | tail -n 1; echo kept > ~/file && cat ~/file; hostname; "
                             "head -c 16 /dev/urandom | od -A n -t x1";
        const auto one = inDisposable(look);
        COMPARE_STATUS(one, 0);
        const pid_t second = waitForShell(first);
        QVERIFY(second != 0);
        QVERIFY(!isThere(first));
        const auto two = inDisposable(look);
        COMPARE_STATUS(two, 0);
        const auto lines = one.output.split('\n');
        const auto others = two.output.split('\n');
        QVERIFY2(lines.size() == 5 && others.size() == 5, (one.output + two.output).constData());
        QCOMPARE(lines[0], QByteArray("/home"));
        QCOMPARE(lines[1], QByteArray("kept"));
        QVERIFY(lines[2] != others[2] && lines[3] != others[3]);

        // It is that very emulator: with it, the program goes.
        const pid_t third = waitForShell(second);
        QVERIFY(third != 0);
        Running program({"bulkhead", "run", "--disposable", "--", "sh", "-c", "echo here; exec sleep 3600"});
        QVERIFY(program.waitFor("here\n"));
        QCOMPARE(::kill(third, SIGKILL), 0);
        const auto ended = program.wait();
        QVERIFY2(ended.status != 0 && !ended.error.contains("[killed by the test"), ended.text().constData());
        QVERIFY(waitForShell(third) != 0);
    }

    void domainWithItsOwnHome_takesItToo() {
        const QString look = "cat /etc/machine-id";
        const auto other = inDisposable(look).output;
        COMPARE_STATUS(cli({"domain", "create", "work"}), 0);
        const auto inWork = [](const QString& command) {
            return cli({"run", "--domain", "work", "--", "sh", "-c", command});
        };
        pid_t shell = waitForShell();
        QVERIFY(shell != 0);
        COMPARE_STATUS(inWork("echo one > ~/one; sync"), 0);
        // What is below the home's active layer from now on.
        COMPARE_STATUS(cli({"snapshot", "create", "work", "--disk"}), 0);
        COMPARE_STATUS(inWork("echo two > ~/two; head -c 20M /dev/urandom > ~/noise; sha256sum ~/noise > ~/sum"), 0);
        // With the domain that emulator ends, so it was that domain's.
        QVERIFY(isThere(shell));
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        QVERIFY(!isThere(shell));

        shell = waitForShell(shell);
        QVERIFY(shell != 0);
        const auto again = inWork("cat ~/one ~/two && sha256sum --quiet -c ~/sum && " + look);
        COMPARE_STATUS(again, 0);
        const auto lines = again.output.split('\n');
        QVERIFY2(lines.size() == 4 && lines[0] == "one" && lines[1] == "two", again.output.constData());
        QVERIFY2(lines[2].size() == 32 && lines[2] + '\n' != other, again.output.constData());
        QVERIFY(isThere(shell));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "work"}), 0);
        QVERIFY(!isThere(shell));
        QVERIFY(!run({"ph-daemon", "log"}).output.contains("a waiting emulator could not be used"));
        QVERIFY(waitForShell() != 0);
    }

    void killedShell_leavesNothing() {
        const pid_t shell = waitForShell();
        QVERIFY(shell != 0);
        QCOMPARE(::kill(shell, SIGKILL), 0);
        VERIFY_NO_TRACES();
        QVERIFY(shellAfterADisposable() != 0);
    }

    void killedDaemon_theNextOneEndsIt() {
        const pid_t shell = waitForShell();
        QVERIFY(shell != 0);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        QVERIFY(isThere(shell));
        COMPARE_STATUS(run({"ph-daemon", "start", "--waiting-shells=1"}), 0);
        VERIFY_NO_TRACES();
    }

    void imageMadeAnew_endsIt() {
        const pid_t before = shellAfterADisposable();
        QVERIFY(before != 0);
        const QString image = imageOf(before);
        QVERIFY2(image.endsWith("/memory"), qPrintable(image));
        COMPARE_STATUS(cli({"template", "warm", "minimal", "--force"}), 0);
        QTRY_VERIFY_WITH_TIMEOUT(!isThere(before), kPatienceMs);
        const pid_t after = waitForShell(before);
        QVERIFY(after != 0);
        QVERIFY2(imageOf(after).endsWith("/memory") && imageOf(after) != image, qPrintable(imageOf(after)));
    }

    void orderlyEndOfTheDaemon_endsIt() {
        QVERIFY(waitForShell() != 0);
        COMPARE_STATUS(run({"ph-daemon", "stop"}), 0);
        QCOMPARE(emulatorPids(), QByteArray());
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        VERIFY_NO_TRACES();
        // As that daemon was told, none waits.
        COMPARE_STATUS(inDisposable("true"), 0);
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2ePool)
#include "tst_e2e_pool.moc"

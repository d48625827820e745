// SPDX-License-Identifier: Apache-2.0
// `bulkhead run` on real guests: data, exit statuses, signals, limits, and nothing left afterwards.
#include "e2e_support.hpp"

#include <QCryptographicHash>
#include <QFile>
#include <QRandomGenerator>
#include <QTemporaryDir>
#include <QTest>

using namespace bulkhead::e2e;

class TestE2eRun : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { COMPARE_STATUS(run({"ph-daemon", "start"}), 0); }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
        }
    }

    void sortsWhatIsPipedIn() {
        QByteArray numbers;
        for (int i = 1; i <= 200'000; ++i) {
            numbers += QByteArray::number(i) + '\n';
        }
        const auto sorted = cli({"run", "--disposable", "--", "sort", "-rn"}, numbers);
        COMPARE_STATUS(sorted, 0);
        QVERIFY(sorted.output.startsWith("200000\n199999\n199998\n"));
        QCOMPARE(sorted.output.count('\n'), 200'000);
        VERIFY_NO_TRACES();
    }

    void pipelineThatStopsReading_ends() {
        const auto head = run({"sh", "-c", "seq 1 200000 | bulkhead run --disposable -- sort -rn | head -3"});
        COMPARE_STATUS(head, 0);
        QCOMPARE(head.output, QByteArray("200000\n199999\n199998\n"));
        const auto endless = run({"bash", "-c", "bulkhead run --disposable -- yes | head -1; exit ${PIPESTATUS[0]}"});
        QCOMPARE(endless.output, QByteArray("y\n"));
        // As with ssh: the program in the guest is ended by SIGPIPE.
        COMPARE_STATUS(endless, 128 + SIGPIPE);
        VERIFY_NO_TRACES();
    }

    void exitStatuses() {
        COMPARE_STATUS(cli({"domain", "create", "status", "--template", "minimal"}), 0);
        const auto status = [](const QStringList& command) {
            return cli(QStringList{"run", "--domain", "status", "--"} + command);
        };
        COMPARE_STATUS(status({"true"}), 0);
        COMPARE_STATUS(status({"sh", "-c", "exit 7"}), 7);
        COMPARE_STATUS(status({"sh", "-c", "exit 255"}), 255);
        COMPARE_STATUS(status({"sh", "-c", "kill -9 $$"}), 137);
        COMPARE_STATUS(status({"sh", "-c", "kill -TERM $$"}), 143);
        const auto missing = status({"no-such-command"});
        COMPARE_STATUS(missing, 127);
        QVERIFY2(missing.error.contains("no-such-command"), missing.text().constData());
        COMPARE_STATUS(status({"/etc/passwd"}), 126);
        COMPARE_STATUS(status({"/"}), 126);

        const auto both = status({"sh", "-c", "echo out; echo err >&2"});
        QCOMPARE(both.output, QByteArray("out\n"));
        QCOMPARE(both.error, QByteArray("err\n"));

        const auto late = cli({"run", "--domain", "status", "--timeout", "1s", "--", "sleep", "100"});
        COMPARE_STATUS(late, 124);

        const auto who = status({"id", "-un"});
        QCOMPARE(who.output, QByteArray("user\n"));
        const auto root = cli({"run", "--domain", "status", "--user", "root", "--", "id", "-u"});
        QCOMPARE(root.output, QByteArray("0\n"));
        const auto place = cli({"run", "--domain", "status", "--cwd", "/usr", "--env", "GREETING=hello", "--", "sh",
                                "-c", "pwd; echo $GREETING; echo $HOME"});
        QCOMPARE(place.output, QByteArray("/usr\nhello\n/home/user\n"));
        const auto nobody = cli({"run", "--domain", "status", "--user", "nobody-here", "--", "true"});
        COMPARE_STATUS(nobody, 125);
        QVERIFY2(nobody.error.contains("nobody-here"), nobody.text().constData());
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "status"}), 0);
        VERIFY_NO_TRACES();
    }

    void bigData_comesBackTheSame() {
        constexpr qsizetype kSize = 100 * 1000 * 1000;
        const QTemporaryDir folder;
        QFile input(folder.filePath("in"));
        QVERIFY(input.open(QIODevice::WriteOnly));
        QCryptographicHash wanted(QCryptographicHash::Sha256);
        for (qsizetype done = 0; done < kSize;) {
            QList<quint32> block(250'000);
            QRandomGenerator::global()->fillRange(block.data(), block.size());
            const QByteArray bytes(reinterpret_cast<const char*>(block.constData()), 1'000'000);
            wanted.addData(bytes);
            done += input.write(bytes);
        }
        input.close();
        const auto copied =
            run({"sh", "-c", "bulkhead run --disposable -- cat <" + folder.filePath("in") + " | sha256sum"});
        COMPARE_STATUS(copied, 0);
        QCOMPARE(copied.output.left(64), wanted.result().toHex());
    }

    void outputThatNobodyReads_growsNowhere() {
        // `yes` writes as fast as it can; the reader takes one line, then nothing.
        Running running({"bash", "-c", "bulkhead run --disposable -- yes | { head -c 2; echo ready; sleep 8; }"});
        QVERIFY(running.waitFor("ready"));
        QTest::qWait(6000);
        for (const char* name : {"bulkhead-channel", "bulkhead"}) {
            const auto pids = pidsOf(name).split(' ');
            QVERIFY2(!pids.front().isEmpty(), name);
            for (const auto& pid : pids) {
                const auto status = run({"grep", "VmRSS", "/proc/" + pid + "/status"}).output;
                const auto kib = status.simplified().split(' ').value(1).toLongLong();
                QVERIFY2(kib > 0 && kib < 64 * 1024, (QByteArray(name) + ": " + status).constData());
            }
        }
        running.signal(SIGTERM);
        running.wait();
    }

    void interruptReachesTheProgram() {
        // It waits in a builtin: dash forgets a signal that comes while it starts a command.
        Running running({"bulkhead", "run", "--disposable", "--", "sh", "-c",
                         "trap 'echo caught; exit 3' INT; sleep 1000 >/dev/null 2>&1 & echo ready; wait"});
        QVERIFY(running.waitFor("ready\n"));
        running.signal(SIGINT);
        const auto outcome = running.wait();
        QVERIFY2(outcome.output.contains("caught"), outcome.text().constData());
        COMPARE_STATUS(outcome, 3);
        VERIFY_NO_TRACES();
    }

    void clientThatIsKilled_leavesNothing() {
        Running running({"bulkhead", "run", "--disposable", "--", "sh", "-c", "echo ready; sleep 1000"});
        QVERIFY(running.waitFor("ready\n"));
        running.signal(SIGKILL);
        running.wait();
        VERIFY_NO_TRACES();
        // Before its program has begun, too.
        Running early({"bulkhead", "run", "--disposable", "--", "sleep", "1000"});
        QTRY_VERIFY_WITH_TIMEOUT(!jsonRows({"domain", "ls"}).isEmpty(), 20000);
        early.signal(SIGKILL);
        early.wait();
        VERIFY_NO_TRACES();
    }

    void terminal_isOneForTheProgram() {
        // tmux plays the user's terminal. As a user would, it types only when the shell or the program shows that it
        // waits: between the two the terminal changes its modes, and keys of that moment are anybody's.
        const QStringList tmux{"tmux", "-L", "bulkhead-e2e"};
        const auto endTerminal = qScopeGuard([&] { run(tmux + QStringList{"kill-server"}); });
        const auto screen = [&] { return run(tmux + QStringList{"capture-pane", "-p", "-t", "t"}).output; };
        const auto isAtPrompt = [&] { return screen().trimmed().endsWith("$"); };
        const auto type = [&](const QString& keys) {
            run(tmux + QStringList{"send-keys", "-t", "t", "-l", keys});
            run(tmux + QStringList{"send-keys", "-t", "t", "Enter"});
        };
        COMPARE_STATUS(run(tmux + QStringList{"new-session", "-d", "-s", "t", "-x", "90", "-y", "20",
                                              "bulkhead run -t --disposable -- bash --norc; echo ended $?; sleep 100"}),
                       0);
        QTRY_VERIFY2_WITH_TIMEOUT(isAtPrompt(), screen().constData(), kPatienceMs);
        type("stty size; tty; echo $TERM");
        QTRY_VERIFY2_WITH_TIMEOUT(screen().contains("20 90"), screen().constData(), 20000);
        QTRY_VERIFY2_WITH_TIMEOUT(screen().contains("/dev/pts/"), screen().constData(), 20000);
        QTRY_VERIFY2_WITH_TIMEOUT(isAtPrompt(), screen().constData(), 20000);
        // Keys and the window's size take different ways: the shell waits for the one that was sent first.
        run(tmux + QStringList{"resize-window", "-t", "t", "-x", "70", "-y", "15"});
        type("until [ \"$(stty size)\" = '15 70' ]; do sleep 0.1; done; clear; echo re''sized");
        QTRY_VERIFY2_WITH_TIMEOUT(screen().contains("resized"), screen().constData(), 20000);
        QTRY_VERIFY2_WITH_TIMEOUT(isAtPrompt(), screen().constData(), 20000);
        type("echo rea''dy; cat");
        QTRY_VERIFY2_WITH_TIMEOUT(screen().contains("\nready"), screen().constData(), 20000);
        type("answer");
        QTRY_VERIFY2_WITH_TIMEOUT(screen().count("answer") == 2, screen().constData(), 20000);
        run(tmux + QStringList{"send-keys", "-t", "t", "C-c"});
        QTRY_VERIFY2_WITH_TIMEOUT(isAtPrompt(), screen().constData(), 20000);
        type("echo status=$?");
        QTRY_VERIFY2_WITH_TIMEOUT(screen().contains("status=130"), screen().constData(), 20000);
        QTRY_VERIFY2_WITH_TIMEOUT(isAtPrompt(), screen().constData(), 20000);
        type("exit 5");
        QTRY_VERIFY2_WITH_TIMEOUT(screen().contains("ended 5"), screen().constData(), 20000);
        run(tmux + QStringList{"kill-server"});
        VERIFY_NO_TRACES();
    }

    void mistakes_areClear() {
        const auto unknownDomain = cli({"run", "--domain", "nowhere", "--", "true"});
        COMPARE_STATUS(unknownDomain, 125);
        QVERIFY2(unknownDomain.error.contains("nowhere"), unknownDomain.text().constData());
        const auto unknownTemplate = cli({"run", "--disposable=nothing", "--", "true"});
        COMPARE_STATUS(unknownTemplate, 125);
        QVERIFY2(unknownTemplate.error.contains("minimal"), unknownTemplate.text().constData());
        const auto unknownSize = cli({"run", "--disposable", "--size", "gigantic", "--", "true"});
        COMPARE_STATUS(unknownSize, 125);
        QVERIFY2(unknownSize.error.contains("small"), unknownSize.text().constData());
        const auto tooLarge = cli({"run", "--disposable", "--size", "huge", "--", "true"});
        COMPARE_STATUS(tooLarge, 125);
        QVERIFY2(tooLarge.error.contains("64 GiB"), tooLarge.text().constData());
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2eRun)
#include "tst_e2e_run.moc"

// SPDX-License-Identifier: Apache-2.0
// Disposables of real guests that begin in a snapshot, and those that are kept: they go on where they were, and leave
// nothing behind when they go.
#include "e2e_support.hpp"

using namespace bulkhead::e2e;

namespace {

/// A program that holds its state in memory alone; it tells it when asked by a file's appearance.
constexpr const char* kCounter = "setsid python3 -c 'import os, time\n"
                                 "n = 0\n"
                                 "while True:\n"
                                 "    n += 1\n"
                                 "    if os.path.exists(\"/tmp/ask\"):\n"
                                 "        with open(\"/tmp/told\", \"w\") as told: told.write(str(n))\n"
                                 "        os.remove(\"/tmp/ask\")\n"
                                 "    time.sleep(0.05)\n"
                                 "' </dev/null >/dev/null 2>&1 & ";
/// Says the counter's number; fails when it does not run.
constexpr const char* kAsk = "rm -f /tmp/told; touch /tmp/ask; for i in $(seq 300); do "
                             "[ -s /tmp/told ] && [ ! -e /tmp/ask ] && break; sleep 0.1; done; cat /tmp/told; ";

QStringList shell(const QStringList& verb, const QString& script) {
    return verb + QStringList{"--", "sh", "-c", script};
}

/// What the CLI calls the disposable that it has kept.
QString nameIn(const QByteArray& said) {
    return QRegularExpression("disp-[0-9a-f]{8}").match(QString::fromUtf8(said)).captured();
}

QJsonObject lastJson(const QByteArray& error) {
    return QJsonDocument::fromJson(error.trimmed().split('\n').last()).object();
}

QStringList snapshotIds() {
    QStringList ids;
    for (const auto& row : jsonRows({"snapshot", "ls"})) {
        ids << row.toObject().value("id").toString();
    }
    return ids;
}

QStringList disposables() {
    QStringList names;
    for (const auto& row : jsonRows({"domain", "ls"})) {
        if (row.toObject().value("kind").toString() == "disposable") {
            names << row.toObject().value("name").toString();
        }
    }
    return names;
}

QStringList instanceFolders() {
    return QDir("/var/lib/bulkhead/instances").entryList(QDir::AllEntries | QDir::NoDotAndDotDot);
}

} // namespace

class TestE2eKeep : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { COMPARE_STATUS(run({"ph-daemon", "start"}), 0); }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
    }

    void keptRun_goesOnWithResume() {
        const auto kept = cli(shell({"run", "--keep"}, QString(kCounter) + kAsk +
                                                           "echo; echo state > ~/file; echo system > "
                                                           "/var/tmp/file; exit 7"));
        COMPARE_STATUS(kept, 7);
        const int atEnd = kept.output.trimmed().toInt();
        QVERIFY2(atEnd > 0, kept.text());
        const QString name = nameIn(kept.error);
        QVERIFY2(!name.isEmpty(), kept.text());
        QVERIFY2(kept.error.contains("bulkhead resume " + name.toLatin1()) &&
                     kept.error.contains("bulkhead domain rm " + name.toLatin1()),
                 kept.text());
        QCOMPARE(stateOf(name), QString("suspended"));
        QVERIFY(emulatorPids().isEmpty());
        QVERIFY(instanceFolders().isEmpty());

        // Also over a daemon that was killed.
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(stateOf(name), QString("suspended"));

        const auto resumed = cli(shell({"resume", name}, QString(kAsk) + "echo; cat ~/file /var/tmp/file; exit 3"));
        COMPARE_STATUS(resumed, 3);
        const auto lines = resumed.output.split('\n');
        QVERIFY2(lines.size() >= 3 && lines[1] == "state" && lines[2] == "system", resumed.text());
        const int later = lines[0].toInt();
        QVERIFY2(later > atEnd && later < atEnd + 2000, resumed.text());
        QCOMPARE(stateOf(name), QString("suspended"));

        // Without a command it stays; a program that is run in it then ends as the first one did.
        COMPARE_STATUS(cli({"resume", name}), 0);
        QCOMPARE(stateOf(name), QString("running"));
        const auto again = cli({"resume", name, "--json", "--", "true"});
        COMPARE_STATUS(again, 125);
        QCOMPARE(lastJson(again.error).value("error").toObject().value("code").toString(), QString("WrongState"));
        const auto asked = cli(shell({"run", "--domain", name}, kAsk));
        COMPARE_STATUS(asked, 0);
        QVERIFY2(asked.output.toInt() > later, asked.text());
        QTRY_COMPARE_WITH_TIMEOUT(stateOf(name), QString("suspended"), kPatienceMs);

        COMPARE_STATUS(cli({"domain", "rm", name}), 0);
        QTRY_VERIFY_WITH_TIMEOUT(disposables().isEmpty(), kPatienceMs);
        VERIFY_NO_TRACES();
        QCOMPARE(snapshotIds(), QStringList());
        QVERIFY(QDir("/var/lib/bulkhead/snapshots").isEmpty(QDir::AllEntries | QDir::NoDotAndDotDot));
    }

    void killedClient_keepsItAllTheSame() {
        Running client(shell({"bulkhead", "run", "--keep"}, QString(kCounter) + kAsk + "echo ready; cat; sleep 600"));
        QVERIFY(client.waitFor("ready"));
        const auto names = disposables();
        QCOMPARE(names.size(), 1);
        client.signal(SIGKILL);
        client.wait();
        QTRY_COMPARE_WITH_TIMEOUT(stateOf(names.front()), QString("suspended"), kPatienceMs);
        const auto resumed = cli(shell({"resume", names.front()}, kAsk));
        COMPARE_STATUS(resumed, 0);
        QVERIFY2(resumed.output.toInt() > 0, resumed.text());
        COMPARE_STATUS(cli({"domain", "rm", names.front()}), 0);
        VERIFY_NO_TRACES();
        QCOMPARE(snapshotIds(), QStringList());
    }

    void resume_ofWhatIsNotThere() {
        const auto missing = cli({"resume", "disp-00000000", "--json"});
        COMPARE_STATUS(missing, 125);
        QCOMPARE(lastJson(missing.error).value("error").toObject().value("code").toString(), QString("NotFound"));
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        const auto stopped = cli({"resume", "one"});
        COMPARE_STATUS(stopped, 125);
        QVERIFY2(stopped.error.contains("no full snapshot"), stopped.text());
    }

    void fromAFullSnapshot_goesOnInItsMemory() {
        const auto started = cli(shell({"run", "--domain", "one"}, QString(kCounter) + kAsk +
                                                                       "echo before > ~/file; echo; hostname; "
                                                                       "cat /etc/machine-id"));
        COMPARE_STATUS(started, 0);
        const auto source = started.output.split('\n');
        QVERIFY2(source.size() >= 3, started.text());
        const auto node = QJsonDocument::fromJson(cli({"snapshot", "create", "one", "--json"}).output)
                              .object()
                              .value("id")
                              .toString();
        QVERIFY(!node.isEmpty());
        COMPARE_STATUS(cli(shell({"run", "--domain", "one"}, "echo later > ~/file")), 0);
        const auto emulator = emulatorPids();
        const auto folders = instanceFolders();
        QCOMPARE(folders.size(), 1);

        const auto forked = cli(shell({"run", "--from", node.left(8)},
                                      QString(kAsk) + "echo; hostname; cat /etc/machine-id; cat ~/file; echo mine > "
                                                      "~/file; exit 5"));
        COMPARE_STATUS(forked, 5);
        const auto lines = forked.output.split('\n');
        QVERIFY2(lines.size() >= 4, forked.text());
        QVERIFY2(lines[0].toInt() > source[0].toInt(), forked.text());
        QVERIFY2(lines[1].startsWith("disp-") && lines[2] != source[2], forked.text());
        QCOMPARE(lines[3], QByteArray("before"));

        // Nothing of it is left, and nothing else was changed.
        QTRY_VERIFY_WITH_TIMEOUT(disposables().isEmpty(), kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(instanceFolders(), folders, kPatienceMs);
        QCOMPARE(emulatorPids(), emulator);
        QCOMPARE(snapshotIds(), QStringList{node});
        QCOMPARE(cli(shell({"run", "--domain", "one"}, "cat ~/file")).output, QByteArray("later\n"));

        // The node stays for as long as something lives in it.
        Running living(shell({"bulkhead", "run", "--from", node}, "echo ready; cat"));
        QVERIFY(living.waitFor("ready"));
        const auto refused = cli({"snapshot", "rm", node});
        COMPARE_STATUS(refused, 1);
        QVERIFY2(refused.error.contains("disposable"), refused.text());
        // Also when its daemon is killed: then it goes as other disposables do.
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        living.closeInput();
        living.wait();
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QTRY_VERIFY_WITH_TIMEOUT(disposables().isEmpty(), kPatienceMs);
        QTRY_COMPARE_WITH_TIMEOUT(instanceFolders(), folders, kPatienceMs);
        QCOMPARE(snapshotIds(), QStringList{node});
    }

    void fromDisks_boots() {
        const auto nodes = snapshotIds();
        QCOMPARE(nodes.size(), 1);
        const QString& node = nodes.front();
        const auto forked = cli(shell({"run", "--from", node, "--disk"}, "cat ~/file; pgrep -f '[o]s.path' || true"));
        COMPARE_STATUS(forked, 0);
        QCOMPARE(forked.output, QByteArray("before\n"));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "one", "--force"}), 0);
        QTRY_VERIFY_WITH_TIMEOUT(disposables().isEmpty(), kPatienceMs);
        COMPARE_STATUS(cli({"snapshot", "rm", node}), 0);
        VERIFY_NO_TRACES();
        for (const char* folder : {"snapshots", "memory", "homes"}) {
            const QDir left("/var/lib/bulkhead/" + QString(folder));
            QVERIFY2(left.isEmpty(QDir::AllEntries | QDir::NoDotAndDotDot), folder);
        }
    }
};

QTEST_GUILESS_MAIN(TestE2eKeep)
#include "tst_e2e_keep.moc"

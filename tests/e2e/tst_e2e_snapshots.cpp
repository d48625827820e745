// SPDX-License-Identifier: Apache-2.0
// Snapshots of real guests: what comes back with revert, what forks have of their own, and what their source keeps.
#include "e2e_support.hpp"

#include <QDateTime>
#include <QFile>
#include <QSet>

#include <algorithm>

#include <fcntl.h>

using namespace bulkhead::e2e;

namespace {

/// "failed" and why, where the command did not succeed: no answer that is expected.
QByteArray inDomain(const QString& domain, const QString& command) {
    const auto outcome = cli({"run", "--domain", domain, "--", "sh", "-c", command});
    return outcome.status == 0 ? outcome.output.trimmed() : "failed: " + outcome.text();
}

/// A program that holds its state in memory alone; it tells it when asked by a file's appearance, so that nobody has to
/// read a file that it writes in the same moment.
constexpr const char* kCounter =
    "setsid python3 -c 'import os, time\n"
    "n = 0\n"
    "while True:\n"
    "    n += 1\n"
    "    if os.path.exists(\"/tmp/ask\"):\n"
    "        with open(\"/tmp/told\", \"w\") as told: told.write(str(n) + \" \" + os.urandom(16).hex())\n"
    "        os.remove(\"/tmp/ask\")\n"
    "    time.sleep(0.05)\n"
    "' </dev/null >/dev/null 2>&1 & ";

/// The counter's number and its random bytes; empty when it does not run.
QByteArray askCounter(const QString& domain) {
    return inDomain(domain, "rm -f /tmp/told; touch /tmp/ask; for i in $(seq 100); do "
                            "[ -s /tmp/told ] && [ ! -e /tmp/ask ] && break; sleep 0.1; done; cat /tmp/told");
}

int numberOf(const QByteArray& told) {
    return told.split(' ').front().toInt();
}

QString idOf(const Outcome& created) {
    return QJsonDocument::fromJson(created.output).object().value("id").toString();
}

QString snapshotOf(const QString& domain, const QStringList& more = {}) {
    return idOf(cli(QStringList{"snapshot", "create", domain, "--json"} + more));
}

/// Content of all files of snapshots, by name. Of the sparse home images, which have gigabytes of holes, only when they
/// were last written to.
QMap<QString, QByteArray> contents() {
    QMap<QString, QByteArray> found;
    const auto said = run({"sh", "-c",
                           "cd /var/lib/bulkhead/snapshots && find . -type f ! -name manifest.toml "
                           "-size -200M -exec sha256sum {} + && find . -type f -name home.img "
                           "-printf '%T@ %p\\n'"});
    for (const auto& line : said.output.split('\n')) {
        const auto name = line.lastIndexOf(' ') + 1;
        found.insert(QString::fromLatin1(line.mid(name)), line.left(name));
    }
    return found;
}

/// True: the guest's clock is within 100 ms of ours, as far as that can be told. Its answer lies between our two
/// readings if it is right. The time that a message takes to it on a busy machine is in both, and is allowed for.
bool isClockRight(const QString& domain) {
    QElapsedTimer timer;
    timer.start();
    inDomain(domain, "true");
    const auto slack = 100 + timer.elapsed();
    const auto before = QDateTime::currentMSecsSinceEpoch();
    const auto said = inDomain(domain, "date +%s%3N").toLongLong();
    const auto after = QDateTime::currentMSecsSinceEpoch();
    return said > before - slack && said < after + slack;
}

} // namespace

class TestE2eSnapshots : public QObject {
    Q_OBJECT

    QString m_first;

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
    }

    void runningDomain_comesBackAsItWas() {
        inDomain("one", QString(kCounter) + "echo before > ~/file; echo system > /var/tmp/file");
        const int atSnapshot = numberOf(askCounter("one"));
        QVERIFY(atSnapshot > 0);
        m_first = snapshotOf("one", {"--label", "first"});
        QVERIFY(!m_first.isEmpty());
        // It goes on as if nothing had been.
        QVERIFY(numberOf(askCounter("one")) > atSnapshot);
        QVERIFY(isClockRight("one"));
        QCOMPARE(inDomain("one", "pkill -f '[o]s.urandom'; rm ~/file; echo after > ~/other; rm /var/tmp/file; ls ~"),
                 QByteArray("other"));

        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_first}), 0);
        QCOMPARE(stateOf("one"), QString("running"));
        QCOMPARE(inDomain("one", "cat ~/file /var/tmp/file; ls ~"), QByteArray("before\nsystem\nfile"));
        const int now = numberOf(askCounter("one"));
        QVERIFY2(now > atSnapshot && now < atSnapshot + 2000, QByteArray::number(now));
        QVERIFY(isClockRight("one"));
        // What was there before is kept.
        const auto rows = jsonRows({"snapshot", "ls", "one"});
        QCOMPARE(rows.size(), 2);
        QCOMPARE(rows.at(1).toObject().value("reason").toString(), QString("before-revert"));
    }

    void threeGenerations_haveTheirOwnLives() {
        QSet<QByteArray> seen;
        QSet<QByteArray> programs;
        const auto look = [&](const QString& domain) {
            const auto own = inDomain(domain, "cat /etc/machine-id; cat /proc/sys/kernel/random/boot_id; head -c 16 "
                                              "/dev/urandom | od -An -tx1; hostname")
                                 .split('\n');
            QCOMPARE(own.size(), 4);
            QCOMPARE(own.back(), domain.toLatin1());
            for (const auto& text : own) {
                QVERIFY2(!seen.contains(text), text);
                seen.insert(text);
            }
            // A program that was running already, too.
            const auto random = askCounter(domain).split(' ').back();
            QVERIFY2(random.size() == 32 && !programs.contains(random), random);
            programs.insert(random);
            QVERIFY(isClockRight(domain));
        };
        look("one");
        QString parent = "one";
        for (const QString& child : {QString("two"), QString("three"), QString("four")}) {
            COMPARE_STATUS(cli({"snapshot", "fork", parent, child}), 0);
            QCOMPARE(stateOf(child), QString("suspended"));
            COMPARE_STATUS(cli({"domain", "start", child}), 0);
            QCOMPARE(inDomain(child, "cat ~/file"), QByteArray("before"));
            COMPARE_STATUS(cli({"run", "--domain", child, "--", "sh", "-c", "echo " + child + " > ~/who"}), 0);
            look(child);
            if (parent != "one") {
                COMPARE_STATUS(cli({"domain", "stop", parent}), 0);
            }
            parent = child;
        }
        QCOMPARE(inDomain("four", "cat ~/who"), QByteArray("four"));
        QCOMPARE(inDomain("one", "ls ~"), QByteArray("file"));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "four", "--force"}), 0);
        // The third has its disks, whatever became of those that came from it.
        COMPARE_STATUS(cli({"domain", "start", "three"}), 0);
        QCOMPARE(inDomain("three", "cat ~/who ~/file"), QByteArray("three\nbefore"));
        COMPARE_STATUS(cli({"domain", "stop", "three"}), 0);
    }

    void sourceIsNotDisturbed() {
        // A terminal, and a stream of 100 MB whose bytes are checked, while ten snapshots are taken.
        Running terminal({"script", "-qfec",
                          "bulkhead run --domain one -t -- sh -c 'stty -echo; echo ready; read word; "
                          "echo got $word'",
                          "/dev/null"});
        QVERIFY(terminal.waitFor("ready"));
        Running stream(
            {"sh", "-c", "bulkhead run --domain one -- sh -c 'yes 0123456789abcdef | head -c 100000000' | sha256sum"});
        for (int i = 0; i < 10; ++i) {
            const auto created = cli({"snapshot", "create", "one", "--json"});
            COMPARE_STATUS(created, 0);
        }
        const auto expected = run({"sh", "-c", "yes 0123456789abcdef | head -c 100000000 | sha256sum"});
        QCOMPARE(stream.wait().output, expected.output);
        terminal.write("word\n");
        QVERIFY(terminal.waitFor("got word"));
        QCOMPARE(terminal.wait().status, 0);
        QCOMPARE(inDomain("one", "cat ~/file"), QByteArray("before"));
    }

    void nodesNeverChange() {
        const auto before = contents();
        QVERIFY(before.size() > 20);
        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_first, "--no-keep"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "head -c 5000000 /dev/urandom > ~/big; sync"}),
                       0);
        const auto after = contents();
        for (auto at = before.begin(); at != before.end(); ++at) {
            QVERIFY2(after.value(at.key()) == at.value(), qPrintable(at.key()));
        }
    }

    void diskSnapshot_comesBackByBooting() {
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "echo disk > ~/file; sync"}), 0);
        const auto node = snapshotOf("one", {"--disk"});
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "echo later > ~/file"}), 0);
        const auto boot = inDomain("one", "cat /proc/sys/kernel/random/boot_id");
        COMPARE_STATUS(cli({"snapshot", "revert", "one", node, "--no-keep"}), 0);
        QCOMPARE(inDomain("one", "cat ~/file"), QByteArray("disk"));
        QVERIFY(inDomain("one", "cat /proc/sys/kernel/random/boot_id") != boot);
        QVERIFY(inDomain("one", "pgrep -f '[o]s.urandom'").startsWith("failed"));
    }

    void suspendAndResume() {
        inDomain("one", kCounter);
        const int before = numberOf(askCounter("one"));
        QVERIFY(before > 0);
        COMPARE_STATUS(cli({"domain", "suspend", "one"}), 0);
        QCOMPARE(stateOf("one"), QString("suspended"));
        QVERIFY(emulatorPids().isEmpty());
        // Also over a daemon that was killed.
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(stateOf("one"), QString("suspended"));
        COMPARE_STATUS(cli({"domain", "resume", "one"}), 0);
        const int after = numberOf(askCounter("one"));
        QVERIFY2(after > before && after < before + 2000, QByteArray::number(after));
        QVERIFY(isClockRight("one"));
    }

    void stoppedDomain() {
        const auto leftByStops = [] {
            const auto rows = jsonRows({"snapshot", "ls", "one"});
            return std::count_if(rows.begin(), rows.end(), [](const QJsonValue& row) {
                return row.toObject().value("reason") == QJsonValue("on-stop");
            });
        };
        COMPARE_STATUS(cli({"domain", "set", "one", "snapshot-on-stop=true"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "echo stopped > ~/file"}), 0);
        QCOMPARE(int(leftByStops()), 0);
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
        QCOMPARE(int(leftByStops()), 1);
        COMPARE_STATUS(cli({"domain", "set", "one", "snapshot-on-stop=false"}), 0);
        const auto node = snapshotOf("one");
        QVERIFY(!node.isEmpty());
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "echo thrown away > ~/file"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "one", "--discard"}), 0);
        QCOMPARE(stateOf("one"), QString("stopped"));
        QCOMPARE(inDomain("one", "cat ~/file"), QByteArray("stopped"));
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
    }

    void damageIsFoundOnUse() {
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        const auto node = snapshotOf("one", {"--label", "to be damaged"});
        const QString delta = "/var/lib/bulkhead/snapshots/" + node + "/memory.delta";
        QVERIFY(QFile::exists(delta));
        COMPARE_STATUS(run({"sh", "-c",
                            "chmod u+w " + delta + " && python3 -c 'f = open(\"" + delta +
                                "\", \"r+b\"); f.seek(70000); b = f.read(1)[0]; f.seek(70000); "
                                "f.write(bytes([b ^ 255]))' && chmod 0400 " +
                                delta}),
                       0);
        const auto reverted = cli({"snapshot", "revert", "one", node, "--no-keep"});
        // Its disks are whole, so it boots from them, and says so.
        COMPARE_STATUS(reverted, 0);
        QVERIFY2((reverted.output + reverted.error).contains("booted"), reverted.text().constData());
        const auto again = cli({"snapshot", "revert", "one", node, "--no-keep"});
        COMPARE_STATUS(again, 1);
        QVERIFY2(again.error.contains("cannot be trusted") && again.error.contains("last good"),
                 again.text().constData());
        QCOMPARE(stateOf("one"), QString("running"));
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
    }

    void lostDatabase_isRebuilt() {
        const auto nodes = jsonRows({"snapshot", "ls", "one"}).size();
        QVERIFY(nodes > 10);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"sh", "-c", "rm /var/lib/bulkhead/bulkhead.db*"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(jsonRows({"snapshot", "ls", "one"}).size(), nodes);
        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_first}), 0);
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        QCOMPARE(inDomain("one", "cat ~/file"), QByteArray("before"));
        QVERIFY(numberOf(askCounter("one")) > 0);
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
    }

    /// With its home and its place in its lineage, also over a daemon that was killed; a domain that got its name
    /// meanwhile has nothing of it.
    void removedDomain_comesBack() {
        COMPARE_STATUS(cli({"run", "--domain", "one", "--", "sh", "-c", "echo kept > ~/file"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
        const auto removed = cli({"domain", "rm", "one"});
        COMPARE_STATUS(removed, 0);
        QVERIFY2(removed.output.contains("bulkhead domain restore one"), removed.text().constData());
        COMPARE_STATUS(cli({"domain", "show", "one"}), 4);
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "show", "one"}), 4);
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        QCOMPARE(inDomain("one", "ls ~"), QByteArray());
        const auto refused = cli({"domain", "restore", "one"});
        COMPARE_STATUS(refused, 1);
        QVERIFY2(refused.error.contains("--as"), refused.text().constData());
        COMPARE_STATUS(cli({"domain", "restore", "one", "--as", "back"}), 0);
        QCOMPARE(inDomain("back", "cat ~/file"), QByteArray("kept"));
        COMPARE_STATUS(cli({"snapshot", "revert", "back", "first", "--no-keep"}), 0);
        QCOMPARE(inDomain("back", "cat ~/file"), QByteArray("before"));
        QVERIFY(numberOf(askCounter("back")) > 0);
    }

    void removed_withAllFiles() {
        for (const char* domain : {"one", "back", "two", "three"}) {
            COMPARE_STATUS(cli({"domain", "rm", "--now", domain, "--force"}), 0);
        }
        VERIFY_NO_TRACES();
        for (const auto& row : jsonRows({"snapshot", "ls"})) {
            cli({"snapshot", "rm", row.toObject().value("id").toString(), "--cascade"});
        }
        QCOMPARE(jsonRows({"snapshot", "ls"}).size(), 0);
        for (const char* folder : {"snapshots", "memory", "homes"}) {
            const auto left =
                QDir("/var/lib/bulkhead/" + QString(folder)).entryList(QDir::AllEntries | QDir::NoDotAndDotDot);
            QVERIFY2(left.isEmpty(), qPrintable(QString(folder) + ": " + left.join(", ")));
        }
    }
};

QTEST_GUILESS_MAIN(TestE2eSnapshots)
#include "tst_e2e_snapshots.moc"

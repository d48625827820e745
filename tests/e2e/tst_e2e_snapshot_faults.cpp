// SPDX-License-Identifier: Apache-2.0
// What is left when the daemon, an emulator or libvirtd is killed in the middle of a verb of snapshots, at many moments
// each, with real guests; and a full disk. (Every single step is cut off in unit/core/tst_snapshot_faults.)
#include "e2e_support.hpp"

#include <QFile>

using namespace bulkhead::e2e;

namespace {

/// "failed" and why, where the command did not succeed: no answer that is expected.
QByteArray inDomain(const QString& command) {
    const auto outcome = cli({"run", "--domain", "one", "--", "sh", "-c", command});
    return outcome.status == 0 ? outcome.output.trimmed() : "failed: " + outcome.text();
}

QStringList snapshots() {
    QStringList ids;
    for (const auto& row : jsonRows({"snapshot", "ls", "one"})) {
        ids << row.toObject().value("id").toString();
    }
    return ids;
}

QByteArray libvirtState() {
    return run({"sh", "-c", "for name in $(virsh list --all --name); do virsh domstate $name; done"})
        .output.simplified();
}

void killAll(const QByteArray& pids) {
    if (!pids.isEmpty()) {
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(pids)});
    }
}

/// Moments in the middle of a verb, in milliseconds from its call: each takes a few hundred.
const QList<int> kMoments{20, 60, 100, 150, 200, 250, 300, 400, 600};

} // namespace

class TestE2eSnapshotFaults : public QObject {
    Q_OBJECT

    QString m_node; ///< one that was reported done at the beginning: it must outlive everything

    void verb(const QStringList& arguments, int moment, const std::function<void()>& kill) {
        Running running(QStringList{"bulkhead"} + arguments);
        QTest::qSleep(moment);
        kill();
        running.wait(60'000);
    }
    static void restartDaemon() {
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
    }
    /// The domain can be used, and what it had at the beginning is there.
    void usable(const char* when, int moment) {
        const QByteArray at = QByteArray(when) + " at " + QByteArray::number(moment) + " ms";
        if (stateOf("one") != "running") {
            const auto started = cli({"domain", "start", "one"});
            QVERIFY2(started.status == 0, at + ": " + started.text());
        }
        QVERIFY2(libvirtState() == "running", at + ": " + libvirtState());
        const auto kept = inDomain("cat ~/kept");
        QVERIFY2(kept == "kept", at + ": " + kept);
        QVERIFY2(snapshots().contains(m_node), at);
    }

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        QCOMPARE(inDomain("echo kept > ~/kept; sync"), QByteArray());
        const auto created = cli({"snapshot", "create", "one", "--json"});
        COMPARE_STATUS(created, 0);
        m_node = QJsonDocument::fromJson(created.output).object().value("id").toString();
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(6000);
        }
    }

    void daemonKilled_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::newRow("snapshot") << QStringList{"snapshot", "create", "one"};
        QTest::newRow("revert") << QStringList{"snapshot", "revert", "one", "NODE"};
        QTest::newRow("fork") << QStringList{"snapshot", "fork", "one", "other"};
        QTest::newRow("suspend") << QStringList{"domain", "suspend", "one"};
        QTest::newRow("resume") << QStringList{"domain", "resume", "one"};
        QTest::newRow("remove") << QStringList{"snapshot", "rm", "LAST"};
    }
    void daemonKilled() {
        QFETCH(QStringList, arguments);
        arguments.replaceInStrings("NODE", m_node);
        const bool removes = arguments.contains("rm");
        // A removal takes less time than the others.
        for (const int moment : removes ? QList<int>{20, 50, 100} : kMoments) {
            if (arguments.contains("resume")) {
                COMPARE_STATUS(cli({"domain", "suspend", "one"}), 0);
            }
            QStringList wanted = arguments;
            QString going;
            if (removes) {
                const auto created = cli({"snapshot", "create", "one", "--json"});
                going = QJsonDocument::fromJson(created.output).object().value("id").toString();
                QVERIFY2(!going.isEmpty(), created.text());
                wanted.replaceInStrings("LAST", going);
            }
            auto before = snapshots();
            before.removeAll(going); // that one may be there or not
            verb(wanted, moment, [] { run({"ph-daemon", "kill"}); });
            COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
            usable(QTest::currentDataTag(), moment);
            if (QTest::currentTestFailed()) {
                return;
            }
            for (const auto& node : before) {
                QVERIFY(snapshots().contains(node));
            }
            cli({"domain", "rm", "--now", "other", "--force"});
        }
        // The next one is as good as any.
        COMPARE_STATUS(cli({"snapshot", "create", "one"}), 0);
        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_node, "--no-keep"}), 0);
        usable("afterwards", 0);
    }

    void emulatorKilled() {
        for (const QStringList& arguments :
             {QStringList{"snapshot", "create", "one"}, QStringList{"snapshot", "revert", "one", m_node},
              QStringList{"domain", "suspend", "one"}}) {
            for (const int moment : {30, 80, 130, 200, 300}) {
                verb(arguments, moment, [] { killAll(emulatorPids()); });
                // The news of its emulator's end may be under way, and so may a boot.
                QTRY_VERIFY_WITH_TIMEOUT(stateOf("one") != "starting" && stateOf("one") != "stopping" &&
                                             (stateOf("one") != "running" || libvirtState() == "running"),
                                         240'000);
                usable(qPrintable("emulator: " + arguments.join(' ')), moment);
                if (QTest::currentTestFailed()) {
                    return;
                }
            }
        }
        COMPARE_STATUS(cli({"snapshot", "create", "one"}), 0);
    }

    void libvirtdKilled() {
        for (const QStringList& arguments :
             {QStringList{"snapshot", "create", "one"}, QStringList{"snapshot", "revert", "one", m_node}}) {
            for (const int moment : {40, 90, 140, 220}) {
                Running running(QStringList{"bulkhead"} + arguments);
                QTest::qSleep(moment);
                COMPARE_STATUS(run({"ph-libvirtd", "kill"}), 0);
                COMPARE_STATUS(run({"ph-libvirtd", "start"}), 0);
                running.wait(150'000);
                QTRY_VERIFY2_WITH_TIMEOUT(libvirtState() != "paused", libvirtState(), 30'000);
                usable(qPrintable("libvirtd: " + arguments.join(' ')), moment);
                if (QTest::currentTestFailed()) {
                    return;
                }
            }
        }
        // libvirt may have lost track of the disks; another start puts that right.
        COMPARE_STATUS(cli({"domain", "stop", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "one"}), 0);
        COMPARE_STATUS(cli({"snapshot", "create", "one"}), 0);
    }

    void nothingIsLeft() {
        restartDaemon();
        const auto folders =
            QDir("/var/lib/bulkhead/snapshots").entryList(QDir::Dirs | QDir::Hidden | QDir::NoDotAndDotDot);
        const auto known = snapshots();
        QVERIFY(known.contains(m_node));
        COMPARE_STATUS(cli({"snapshot", "revert", "one", m_node, "--no-keep"}), 0);
        QCOMPARE(inDomain("cat ~/kept"), QByteArray("kept"));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "one", "--force"}), 0);
        for (const auto& row : jsonRows({"snapshot", "ls"})) {
            cli({"snapshot", "rm", row.toObject().value("id").toString(), "--cascade"});
        }
        restartDaemon();
        for (const char* folder : {"snapshots", "memory", "homes", "instances"}) {
            const auto left = QDir("/var/lib/bulkhead/" + QString(folder))
                                  .entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
            QVERIFY2(left.isEmpty(), qPrintable(QString(folder) + ": " + left.join(", ")));
        }
        VERIFY_NO_TRACES();
    }

    /// A store of its own, so small that a snapshot does not fit.
    void fullDisk_isACleanRefusal() {
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"sh", "-ec",
                            "truncate -s 3G /tmp/store.img; mkfs.ext4 -q /tmp/store.img; mkdir -p /tmp/store; "
                            "mount -o loop /tmp/store.img /tmp/store; cp -a --sparse=always /var/lib/bulkhead/. "
                            "/tmp/store; umount /tmp/store; mount -o loop /tmp/store.img /var/lib/bulkhead"}),
                       0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "one"}), 0);
        QCOMPARE(inDomain("echo kept > ~/kept; sync"), QByteArray());
        // All but a little of what may be used is taken.
        COMPARE_STATUS(run({"sh", "-ec",
                            "set -- $(df -B1 --output=size,avail /var/lib/bulkhead | tail -1); "
                            "fallocate -l $(($2 - $1 / 20 - 8000000)) /var/lib/bulkhead/filler"}),
                       0);
        const auto refused = cli({"snapshot", "create", "one"});
        COMPARE_STATUS(refused, 1);
        QVERIFY2(refused.error.contains("space"), refused.text().constData());
        QCOMPARE(snapshots(), QStringList());
        QCOMPARE(QDir("/var/lib/bulkhead/snapshots").entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot),
                 QStringList());
        QCOMPARE(inDomain("cat ~/kept"), QByteArray("kept"));
        QVERIFY(QFile::remove("/var/lib/bulkhead/filler"));
        COMPARE_STATUS(cli({"snapshot", "create", "one"}), 0);
        COMPARE_STATUS(cli({"domain", "rm", "--now", "one", "--force"}), 0);
        VERIFY_NO_TRACES();
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"sh", "-c", "umount -l /var/lib/bulkhead; rm -f /tmp/store.img"}), 0);
    }
};

QTEST_GUILESS_MAIN(TestE2eSnapshotFaults)
#include "tst_e2e_snapshot_faults.moc"

// SPDX-License-Identifier: Apache-2.0
// A second local user as the attacker: what mallory can learn of alice's domains. Each look has its control: the same
// look by alice or root finds what is there.
#include "e2e_support.hpp"

#include <QTest>

using namespace bulkhead::e2e;

namespace {

const QString kName = "secretproject";
const QString kArgument = "secretargument";

Outcome as(const QString& user, const QStringList& command) {
    return run(QStringList{"ph-user", user} + command);
}
Outcome alice(const QStringList& command) {
    return as("ph-alice", command);
}
Outcome mallory(const QStringList& command) {
    return as("ph-mallory", command);
}

} // namespace

class TestE2eOtherUser : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        m_monitor =
            std::make_unique<Running>(QStringList{"ph-user", "ph-mallory", "stdbuf", "-oL", "busctl", "--system",
                                                  "monitor", "--match", "type='signal',sender='org.bulkhead1'"});
        m_signals = std::make_unique<Running>(
            QStringList{"ph-user", "ph-mallory", "dbus-monitor", "--system", "type='signal'"});
        COMPARE_STATUS(alice({"bulkhead", "domain", "create", kName}), 0);
        COMPARE_STATUS(alice({"bulkhead", "run", "--domain", kName, "--", "true"}), 0);
        m_program = std::make_unique<Running>(QStringList{"ph-user", "ph-alice", "bulkhead", "run", "--domain", kName,
                                                          "--", "sh", "-c", "echo ready; sleep 1000", kArgument});
        QVERIFY(m_program->waitFor("ready\n"));
        const auto shown =
            QJsonDocument::fromJson(alice({"bulkhead", "domain", "show", kName, "--json"}).output).object();
        QCOMPARE(shown.value("name").toString(), kName);
        m_id = shown.value("id").toString().remove('-');
        QCOMPARE(m_id.size(), 32);
    }
    void cleanupTestCase() {
        m_program->signal(SIGTERM);
        m_program->wait();
    }

    void listsNothing() {
        QVERIFY(alice({"bulkhead", "domain", "ls"}).output.contains(kName.toLatin1()));
        const auto list = mallory({"bulkhead", "domain", "ls", "--json"});
        QCOMPARE(QJsonDocument::fromJson(list.output).array().size(), 0);
        COMPARE_STATUS(mallory({"bulkhead", "domain", "show", kName}), 4);
        COMPARE_STATUS(mallory({"bulkhead", "domain", "stop", kName}), 4);
        COMPARE_STATUS(mallory({"bulkhead", "domain", "rm", "--now", "--force", kName}), 4);
        COMPARE_STATUS(mallory({"bulkhead", "run", "--domain", kName, "--", "true"}), 125);
        COMPARE_STATUS(mallory({"bulkhead", "template", "build", "minimal"}), 5);
    }

    void bus_data() {
        QTest::addColumn<QStringList>("call");
        const QString domain = "/org/bulkhead1/domains/" + m_id;
        QTest::newRow("Describe") << QStringList{domain, "org.bulkhead1.Domain", "Describe"};
        QTest::newRow("Start") << QStringList{domain, "org.bulkhead1.Domain", "Start", "a{sv}", "0"};
        QTest::newRow("Stop") << QStringList{domain, "org.bulkhead1.Domain", "Stop", "a{sv}", "1", "force", "b",
                                             "true"};
        QTest::newRow("Remove") << QStringList{domain, "org.bulkhead1.Domain", "Remove", "a{sv}", "1", "force", "b",
                                               "true"};
        QTest::newRow("Exec") << QStringList{domain, "org.bulkhead1.Domain", "Exec", "asa{sv}", "1", "id", "0"};
        QTest::newRow("Status") << QStringList{domain, "org.bulkhead1.Domain", "Status"};
        QTest::newRow("all domains") << QStringList{
            "/org/bulkhead1", "org.bulkhead1.Manager", "ListDomains", "a{sv}", "1", "all", "b", "true"};
        QTest::newRow("by name") << QStringList{"/org/bulkhead1", "org.bulkhead1.Manager", "FindDomain", "s", kName};
        QTest::newRow("introspection") << QStringList{"/org/bulkhead1", "org.freedesktop.DBus.Introspectable",
                                                      "Introspect"};
        QTest::newRow("introspection of the domains")
            << QStringList{"/org/bulkhead1/domains", "org.freedesktop.DBus.Introspectable", "Introspect"};
        QTest::newRow("properties") << QStringList{domain, "org.freedesktop.DBus.Properties", "GetAll", "s",
                                                   "org.bulkhead1.Domain"};
        QTest::newRow("object manager") << QStringList{"/org/bulkhead1", "org.freedesktop.DBus.ObjectManager",
                                                       "GetManagedObjects"};
    }
    void bus() {
        QFETCH(QStringList, call);
        const auto refused = mallory(QStringList{"busctl", "--system", "call", "org.bulkhead1"} + call);
        QVERIFY2(refused.status != 0, refused.text().constData());
        QVERIFY2(!refused.output.contains(kName.toLatin1()) && !refused.error.contains("ph-alice"),
                 refused.text().constData());
        // The control: alice's own call of the first of them works.
        if (call.value(2) == "Describe") {
            const auto own = alice(QStringList{"busctl", "--system", "call", "org.bulkhead1"} + call);
            QVERIFY2(own.output.contains(kName.toLatin1()), own.text().constData());
        }
    }

    void callerIsWhoConnected_notWhatTheProcessBecame() {
        const auto as = [](const QString& uid) {
            return run({"python3", BULKHEAD_SOURCE_DIR "/tests/e2e/changed_uid.py", uid}).output;
        };
        const auto mallorysUid = QString::fromLatin1(run({"id", "-u", "ph-mallory"}).output.trimmed());
        const auto refused = as(mallorysUid);
        QVERIFY2(refused.startsWith("refused") && refused.contains("NotAuthorized"), refused.constData());
        QVERIFY2(!refused.contains(kName.toLatin1()), refused.constData());
        // The control: the same bytes over a connection that root made.
        const auto answered = as("0");
        QVERIFY2(answered.startsWith("answered") && answered.contains(kName.toLatin1()), answered.constData());
    }

    void jobsOfOthers_doNotExist() {
        const auto job = alice({"busctl", "--system", "call", "org.bulkhead1", "/org/bulkhead1/domains/" + m_id,
                                "org.bulkhead1.Domain", "Start", "a{sv}", "0"});
        COMPARE_STATUS(job, 0);
        const auto path = QString::fromLatin1(job.output.split('"').value(1));
        QVERIFY(path.startsWith("/org/bulkhead1/jobs/"));
        COMPARE_STATUS(alice({"busctl", "--system", "call", "org.bulkhead1", path, "org.bulkhead1.Job", "Describe"}),
                       0);
        const auto refused =
            mallory({"busctl", "--system", "call", "org.bulkhead1", path, "org.bulkhead1.Job", "Describe"});
        QVERIFY2(refused.status != 0 && refused.error.contains("no such"), refused.text().constData());
    }

    void processes_tellNoNames() {
        // What alice typed herself stands in her own command's line; what is ours must not add to it.
        const auto list = mallory({"ps", "-eo", "user:20,args"}).output;
        QVERIFY(list.contains("qemu-system-x86_64"));
        for (const auto& line : list.split('\n')) {
            if (line.contains("qemu-system") || line.contains("bulkhead-channel") || line.contains("bulkheadd")) {
                QVERIFY2(!line.contains(kName.toLatin1()) && !line.contains(kArgument.toLatin1()) &&
                             !line.contains("ph-alice"),
                         line.constData());
            }
        }
    }

    void emulatorAndChannel_haveUidsOfTheirOwn() {
        const auto list = run({"ps", "-eo", "uid,comm"}).output;
        QByteArrayList uids;
        for (const auto& line : list.split('\n')) {
            if (line.contains("qemu-system") || line.contains("bulkhead-channe")) {
                uids << line.simplified().split(' ').front();
            }
        }
        QCOMPARE(uids.size(), 2);
        QVERIFY(uids[0] != uids[1]);
        for (const auto& uid : uids) {
            QVERIFY(uid.toLongLong() >= 1'900'000'000);
        }
    }

    void libvirt_tellsNoNames() {
        const auto list = mallory({"virsh", "-r", "list", "--all", "--name"});
        COMPARE_STATUS(list, 0);
        const auto name = QString::fromLatin1(list.output.trimmed());
        QVERIFY2(name.startsWith("bh-"), list.text().constData());
        const auto xml = mallory({"virsh", "-r", "dumpxml", name});
        QVERIFY(xml.output.contains("<domain"));
        QVERIFY2(!xml.output.contains(kName.toLatin1()) && !xml.output.contains("ph-alice") &&
                     !xml.output.contains("4201"),
                 xml.output.constData());
        // Read-write is not theirs.
        QVERIFY(mallory({"virsh", "-c", "qemu:///system", "list"}).status != 0);
    }

    void filesCannotBeOpened() {
        const auto everything =
            run({"find", "/var/lib/bulkhead", "/run/bulkhead", "-mindepth", "1"}).output.split('\n');
        int seen = 0;
        for (const auto& path : everything) {
            if (path.isEmpty() || path.endsWith("/templates") || path.endsWith("/instances") ||
                path.endsWith("/homes") || path.endsWith("/bases")) {
                continue;
            }
            ++seen;
            const auto open = mallory({"sh", "-c", "exec 3<\"$1\"", "sh", path});
            QVERIFY2(open.status != 0, path.constData());
        }
        QVERIFY(seen > 8);
        // Names below the image store cannot even be listed.
        for (const char* folder : {"templates", "instances", "homes"}) {
            QVERIFY(mallory({"ls", QString("/var/lib/bulkhead/") + folder}).status != 0);
        }
        QVERIFY(mallory({"ls", "/var/lib/bulkhead/domains"}).status != 0);
    }

    void signalsTellNothing() {
        COMPARE_STATUS(alice({"bulkhead", "run", "--disposable", "--", "true", kArgument}), 0);
        // The control: signals did arrive.
        QVERIFY(m_signals->waitFor("StateChanged", 20000));
        m_signals->signal(SIGTERM);
        m_monitor->signal(SIGTERM);
        const auto heard = m_signals->wait();
        QVERIFY(heard.output.contains("org.bulkhead1.Domain"));
        for (const auto& text : {heard.output, m_monitor->wait().output}) {
            QVERIFY2(!text.contains(kName.toLatin1()) && !text.contains(kArgument.toLatin1()), text.constData());
        }
    }

private:
    std::unique_ptr<Running> m_monitor;
    std::unique_ptr<Running> m_signals;
    std::unique_ptr<Running> m_program;
    QString m_id;
};

QTEST_GUILESS_MAIN(TestE2eOtherUser)
#include "tst_e2e_other_user.moc"

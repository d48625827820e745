// SPDX-License-Identifier: Apache-2.0
// Domains that last: what is kept and what is lost, definitions, and bad input.
#include "e2e_clock.hpp"
#include "e2e_support.hpp"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QFile>
#include <QTest>

#include <cerrno>
#include <sys/timex.h>

using namespace bulkhead::e2e;

namespace {

void writeFile(const QString& path, const QByteArray& text) {
    QDir().mkpath(QFileInfo(path).path());
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
}

} // namespace

class TestE2eDomain : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { COMPARE_STATUS(run({"ph-daemon", "start"}), 0); }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
        }
    }

    void homeIsKept_systemIsNot() {
        COMPARE_STATUS(cli({"domain", "create", "work", "--template", "minimal"}), 0);
        QCOMPARE(stateOf("work"), QString("stopped"));
        // Starts the domain by itself.
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "sh", "-c", "echo x > ~/kept; touch /tmp/lost"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "work", "--user", "root", "--", "touch", "/usr/share/lost"}), 0);
        QCOMPARE(stateOf("work"), QString("running"));
        const auto files = QStringList{
            "run", "--domain", "work", "--", "sh", "-c", "ls ~/kept /tmp/lost /usr/share/lost 2>/dev/null; true"};
        QCOMPARE(cli(files).output, QByteArray("/home/user/kept\n/tmp/lost\n/usr/share/lost\n"));
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        QCOMPARE(stateOf("work"), QString("stopped"));
        VERIFY_NO_TRACES();
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        QCOMPARE(cli(files).output, QByteArray("/home/user/kept\n"));
        QCOMPARE(cli({"run", "--domain", "work", "--", "cat", "kept"}).output, QByteArray("x\n"));

        // A second start is no error, a removal of what runs is.
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        const auto refused = cli({"domain", "rm", "--now", "work"});
        COMPARE_STATUS(refused, 1);
        QVERIFY2(refused.error.contains("--force"), refused.text().constData());
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        COMPARE_STATUS(cli({"domain", "rm", "--now", "work"}), 0);
        COMPARE_STATUS(cli({"domain", "show", "work"}), 4);
        QVERIFY(QDir("/var/lib/bulkhead/homes").isEmpty());
        VERIFY_NO_TRACES();
    }

    /// The test is the login manager here.
    void hostWakes_guestsClockIsSet() {
        COMPARE_STATUS(cli({"domain", "create", "sleeper", "--template", "minimal"}), 0);
        COMPARE_STATUS(setClockWrong("sleeper"), 0);
        auto bus = QDBusConnection::connectToBus(qEnvironmentVariable("DBUS_SYSTEM_BUS_ADDRESS"), "login");
        const auto say = [&](bool isBeginning) {
            auto signal = QDBusMessage::createSignal("/org/freedesktop/login1", "org.freedesktop.login1.Manager",
                                                     "PrepareForSleep");
            signal << isBeginning;
            QVERIFY(bus.send(signal));
        };
        say(false); // from somebody else it says nothing
        QVERIFY(bus.registerService("org.freedesktop.login1"));
        say(true);
        QTRY_VERIFY_WITH_TIMEOUT(run({"ph-daemon", "log"}).output.contains("the host goes to sleep"), 30'000);
        QVERIFY(clockIsOffBy("sleeper") > 1'000'000);
        say(false);
        QTRY_COMPARE_WITH_TIMEOUT(clockIsOffBy("sleeper"), 0, 30'000);
        QCOMPARE(run({"ph-daemon", "log"}).output.count("the host has woken"), 1);
        QDBusConnection::disconnectFromBus("login");

        // Without a login manager the kernel tells of the jump that a wake is for the clock. One of a nanosecond is as
        // good.
        timex jump{};
        jump.modes = ADJ_SETOFFSET | ADJ_NANO;
        jump.time.tv_usec = 1;
        COMPARE_STATUS(setClockWrong("sleeper"), 0);
        QVERIFY(clockIsOffBy("sleeper") > 1'000'000);
        if (::adjtimex(&jump) < 0) {
            QCOMPARE(errno, EPERM);
            qWarning("root may not set the clock here (a container): that the kernel tells of it is not tested");
        } else {
            QTRY_COMPARE_WITH_TIMEOUT(clockIsOffBy("sleeper"), 0, 30'000);
            QVERIFY(run({"ph-daemon", "log"}).output.contains("the host's clock was set"));
        }
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "sleeper"}), 0);
    }

    void definition_isChanged_andTheHomeGrows() {
        COMPARE_STATUS(cli({"domain", "create", "work", "--template", "minimal", "--home-size", "128MiB"}), 0);
        const QStringList homeMiB{"run", "--domain", "work", "--", "sh", "-c", "df -m --output=size /home | tail -1"};
        COMPARE_STATUS(cli({"run", "--domain", "work", "--", "sh", "-c", "echo x > ~/kept"}), 0);
        const int small = cli(homeMiB).output.trimmed().toInt();
        QVERIFY2(small > 60 && small < 128, qPrintable(QString::number(small)));
        const auto running = cli({"domain", "set", "work", "home-size=512MiB"});
        COMPARE_STATUS(running, 1);
        QVERIFY2(running.error.contains("bulkhead domain stop work"), running.text().constData());
        const auto bad = cli({"domain", "set", "work", "label=pink", "tags=a"});
        COMPARE_STATUS(bad, 2);
        QVERIFY2(bad.error.contains("there are: red, orange"), bad.text().constData());
        COMPARE_STATUS(cli({"domain", "set", "work", "label=red", "tags=a,b"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        COMPARE_STATUS(cli({"domain", "set", "work", "home-size=512MiB"}), 0);
        COMPARE_STATUS(cli({"domain", "set", "work", "home-size=256MiB"}), 2);
        QVERIFY(cli(homeMiB).output.trimmed().toInt() > 400);
        QCOMPARE(cli({"run", "--domain", "work", "--", "cat", "kept"}).output, QByteArray("x\n"));
        // It stands in the file, so a new daemon knows it too.
        COMPARE_STATUS(run({"ph-daemon", "restart"}), 0);
        const auto shown = cli({"domain", "show", "work", "--json"});
        QVERIFY2(shown.output.contains("\"label\": \"red\""), shown.text().constData());
        QVERIFY2(shown.output.contains("\"home_size\": 536870912"), shown.text().constData());
        COMPARE_STATUS(cli({"domain", "rm", "--now", "work", "--force"}), 0);
        VERIFY_NO_TRACES();
    }

    void namesAndOptions_areChecked() {
        for (const char* name : {"Work", "../work", "host", "disp-1", "a b", ""}) {
            const auto refused = cli({"domain", "create", name});
            QVERIFY2(refused.status == 1 || refused.status == 2, refused.text().constData());
            QVERIFY2(!refused.error.isEmpty(), name);
        }
        COMPARE_STATUS(cli({"domain", "create", "twice"}), 0);
        const auto again = cli({"domain", "create", "twice"});
        COMPARE_STATUS(again, 1);
        QVERIFY2(again.error.contains("exists"), again.text().constData());
        COMPARE_STATUS(cli({"domain", "create", "other", "--template", "nothing"}), 4);
        COMPARE_STATUS(cli({"domain", "create", "other", "--size", "gigantic"}), 2);
        COMPARE_STATUS(cli({"domain", "start", "nowhere"}), 4);
        COMPARE_STATUS(cli({"domain", "rm", "--now", "twice"}), 0);
        QVERIFY(jsonRows({"domain", "ls"}).isEmpty());
    }

    void definitionFiles() {
        COMPARE_STATUS(run({"ph-daemon", "stop"}), 0);
        writeFile("/etc/bulkhead/domains.d/managed.toml",
                  "owner = \"root\"\ntemplate = \"minimal\"\nlabel = \"red\"\n");
        writeFile("/etc/bulkhead/domains.d/broken.toml", "owner = \"root\"\ntemplate = [minimal\n");
        writeFile("/etc/bulkhead/domains.d/misspelt.toml", "owner = \"root\"\ntempalte = \"minimal\"\n");
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QCOMPARE(stateOf("managed"), QString("stopped"));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "managed"}), 5);
        COMPARE_STATUS(cli({"run", "--domain", "managed", "--", "true"}), 0);
        COMPARE_STATUS(cli({"domain", "stop", "managed"}), 0);
        // The broken ones are told with their place, and keep nobody else from working.
        const auto log = run({"ph-daemon", "log"}).output;
        QVERIFY2(log.contains("broken.toml:2:"), log.constData());
        QVERIFY2(log.contains("misspelt.toml:2:1"), log.constData());
        QVERIFY2(log.contains("template"), log.constData());
        const auto report = cli({"doctor"});
        QVERIFY2(report.output.contains("misspelt.toml:2:1"), report.text().constData());
        for (const char* name : {"managed", "broken", "misspelt"}) {
            QFile::remove(QString("/etc/bulkhead/domains.d/%1.toml").arg(name));
        }
    }

    void fullDisk_isToldAndLeavesNothing() {
        COMPARE_STATUS(cli({"domain", "ls"}), 0);
        const auto before = QDir("/var/lib/bulkhead/homes").entryList(QDir::AllEntries | QDir::NoDotAndDotDot);
        // A tiny file system over the homes: the space check and the writes both meet it.
        COMPARE_STATUS(run({"mount", "-t", "tmpfs", "-o", "size=256k,mode=710", "tmpfs", "/var/lib/bulkhead/homes"}),
                       0);
        const auto full = cli({"domain", "create", "full"});
        COMPARE_STATUS(run({"umount", "/var/lib/bulkhead/homes"}), 0);
        COMPARE_STATUS(full, 1);
        QVERIFY2(full.error.contains("space"), full.text().constData());
        COMPARE_STATUS(cli({"domain", "show", "full"}), 4);
        QCOMPARE(QDir("/var/lib/bulkhead/homes").entryList(QDir::AllEntries | QDir::NoDotAndDotDot), before);
        COMPARE_STATUS(cli({"domain", "create", "full"}), 0);
        COMPARE_STATUS(cli({"domain", "rm", "--now", "full"}), 0);
    }

    void doctor_findsTheHost() {
        const auto report = cli({"doctor", "--json"});
        const auto findings = QJsonDocument::fromJson(report.output).object().value("findings").toArray();
        QStringList checks;
        for (const auto& finding : findings) {
            checks << finding.toObject().value("check").toString();
            const bool isOk = finding.toObject().value("status").toString() == "ok";
            QVERIFY2(isOk || !finding.toObject().value("fix").toString().isEmpty(),
                     qPrintable("no fix for " + checks.last()));
        }
        for (const char* check :
             {"acceleration", "channel", "libvirt", "qemu", "disk", "memory", "templates", "policy"}) {
            QVERIFY2(checks.contains(check), (QByteArray(check) + " is missing: " + report.output).constData());
        }
    }
};

QTEST_GUILESS_MAIN(TestE2eDomain)
#include "tst_e2e_domain.moc"

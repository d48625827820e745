// SPDX-License-Identifier: Apache-2.0
// A template gets a package: domains that run keep what they have until they are restarted, and apt in a domain says
// where changes belong. One build, on this world's own copy of the template.
#include "e2e_support.hpp"

#include <QFile>
#include <QTest>

using namespace bulkhead::e2e;

namespace {

constexpr const char* kDropIn = "/etc/bulkhead/templates.d/minimal.d/50-installed.toml";
constexpr const char* kNotice = "sudo bulkhead template install minimal PACKAGE";

QJsonObject shown(const QString& domain) {
    return QJsonDocument::fromJson(cli({"domain", "show", domain, "--json"}).output).object();
}

Outcome inDomain(const QStringList& options, const QStringList& command) {
    return cli(QStringList{"run", "--domain", "work"} + options + QStringList{"--"} + command);
}

/// As timedatectl does it.
Outcome setHostZone(const QString& zone) {
    return run({"sh", "-c",
                "ln -sf \"/usr/share/zoneinfo/$1\" /etc/localtime.new && mv /etc/localtime.new /etc/localtime", "sh",
                zone});
}

} // namespace

class TestE2eTemplates : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        // A host with a time zone of its own; the machine's stays as it is.
        COMPARE_STATUS(run({"sh", "-c",
                            "set -e; own=$BULKHEAD_PRIVATE_HOST/etc; cp -a /etc \"$own\"; mount --bind \"$own\" /etc"}),
                       0);
        COMPARE_STATUS(setHostZone("Asia/Tokyo"), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "work", "--template", "minimal"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
        }
    }

    void badNames_beginNothing() {
        const auto bad = cli({"template", "install", "minimal", "hello", "hello,sl"});
        COMPARE_STATUS(bad, 2);
        QVERIFY2(bad.error.contains("\"hello,sl\" is not the name of a Debian package"), bad.text().constData());
        QVERIFY(!QFile::exists(kDropIn));
    }

    void installedPackage_comesWithTheNextStart() {
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        const auto before = shown("work");
        QCOMPARE(before.value("update_available").toBool(true), false);
        COMPARE_STATUS(inDomain({}, {"hello"}), 127);

        const auto installed = cli({"template", "install", "minimal", "hello"});
        COMPARE_STATUS(installed, 0);
        QVERIFY2(installed.output.startsWith("Template minimal has hello now: version "), installed.text().constData());
        QFile dropIn(kDropIn);
        QVERIFY(dropIn.open(QIODevice::ReadOnly));
        QVERIFY(dropIn.readAll().contains("\"hello\""));

        // What runs stays as it is, and says what a restart would do.
        const auto running = shown("work");
        QCOMPARE(running.value("state").toString(), QString("running"));
        QCOMPARE(running.value("template_version"), before.value("template_version"));
        QCOMPARE(running.value("update_available").toBool(), true);
        QVERIFY(cli({"domain", "ls"}).output.contains("restart to update"));
        COMPARE_STATUS(inDomain({}, {"hello"}), 127);

        COMPARE_STATUS(cli({"domain", "stop", "work"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
        const auto restarted = shown("work");
        QVERIFY(restarted.value("template_version") != before.value("template_version"));
        QCOMPARE(restarted.value("update_available").toBool(true), false);
        const auto greeting = inDomain({}, {"hello"});
        COMPARE_STATUS(greeting, 0);
        QCOMPARE(greeting.output, QByteArray("Hello, world!\n"));
    }

    void apt_saysWhereChangesBelong() {
        const auto removed = inDomain({"--user", "root"}, {"apt-get", "-qq", "-y", "purge", "hello"});
        COMPARE_STATUS(removed, 0);
        QVERIFY2(removed.error.contains(kNotice), removed.text().constData());
        QVERIFY2(!removed.output.contains(kNotice), removed.text().constData());
        COMPARE_STATUS(inDomain({}, {"hello"}), 127);
        // Whoever is not root gets no further, and hears of it before apt's own refusal, whose status stays.
        const auto refused = inDomain({}, {"apt", "install", "hello"});
        COMPARE_STATUS(refused, 100);
        QVERIFY2(refused.error.indexOf(kNotice) < refused.error.indexOf("E: "), refused.text().constData());
        QVERIFY2(refused.error.contains(kNotice), refused.text().constData());
        const auto asked = inDomain({}, {"apt-get", "--version"});
        COMPARE_STATUS(asked, 0);
        QVERIFY2(!asked.error.contains(kNotice), asked.text().constData());
        // Without anybody who listens, it works as well.
        const auto deaf = inDomain({"--user", "root"}, {"sh", "-c", "exec apt-get -qq -y purge file 2>&-"});
        COMPARE_STATUS(deaf, 0);
    }

    void timeZone_isTheHosts_andFollowsIt() {
        QCOMPARE(inDomain({}, {"date", "+%Z %z"}).output, QByteArray("JST +0900\n"));
        COMPARE_STATUS(setHostZone("Africa/Nairobi"), 0);
        QTRY_COMPARE_WITH_TIMEOUT(inDomain({}, {"date", "+%Z %z"}).output, QByteArray("EAT +0300\n"), kPatienceMs);
        QCOMPARE(inDomain({}, {"cat", "/etc/timezone"}).output, QByteArray("Africa/Nairobi\n"));
    }

    void end() {
        COMPARE_STATUS(cli({"domain", "rm", "--now", "--force", "work"}), 0);
        VERIFY_NO_TRACES();
    }
};

QTEST_GUILESS_MAIN(TestE2eTemplates)
#include "tst_e2e_templates.moc"

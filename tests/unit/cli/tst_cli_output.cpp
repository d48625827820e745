// SPDX-License-Identifier: Apache-2.0
#include "cli/output/describe.hpp"
#include "cli/output/json.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/table.hpp"
#include "client/terminal_text.hpp"

#include <QFile>
#include <QTest>

using namespace bulkhead;
using namespace bulkhead::cli;

namespace {

/// Compares with tests/fixtures/cli/NAME. BULKHEAD_TEST_ACCEPT=1 writes the golden anew; the diff is reviewed.
void compareGolden(const char* name, const std::string& text) {
    QFile file(QStringLiteral(BULKHEAD_SOURCE_DIR "/tests/fixtures/cli/") + QLatin1String(name));
    if (qEnvironmentVariableIsSet("BULKHEAD_TEST_ACCEPT")) {
        QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
        file.write(text.c_str());
        return;
    }
    QVERIFY2(file.open(QIODevice::ReadOnly), name);
    QCOMPARE(QString::fromStdString(text), QString::fromUtf8(file.readAll()));
}

client::DomainInfo runningDomain() {
    client::DomainInfo domain;
    domain.id = "3f0c9a52-7a1e-4b7c-9d5e-0a1b2c3d4e5f";
    domain.name = "work";
    domain.kind = "app";
    domain.state = "running";
    domain.templateName = "minimal";
    domain.templateVersion = "9f2ab4";
    domain.size = "small";
    domain.label = "blue";
    domain.egress = "none";
    domain.tags = QStringList{"dev", "team-a"};
    domain.owner = 1000;
    domain.homeSize = 2ULL << 30U;
    domain.file = "/var/lib/bulkhead/domains/1000/work.toml";
    domain.memory = 512ULL << 20U;
    domain.vcpus = 2;
    domain.acceleration = "emulation";
    domain.transport = "virtio-serial";
    domain.startedAt = 1795964645;
    domain.programs = 1;
    domain.snapshotOnStop = true;
    domain.idleSuspend = "30m";
    return domain;
}

client::DomainInfo failedDomain() {
    client::DomainInfo domain;
    domain.name = "alpha-with-a-long-name";
    domain.kind = "app";
    domain.state = "failed";
    domain.reason = "guest said \x1b]0;owned\x07 and died";
    domain.templateName = "minimal";
    domain.size = "small";
    domain.egress = "none";
    domain.owner = 1000;
    return domain;
}

client::DomainInfo suspendedDomain() {
    client::DomainInfo domain = runningDomain();
    domain.state = "suspended";
    domain.isSuspended = true;
    domain.head = "1a2b3c4d-7a1e-4b7c-9d5e-0a1b2c3d4e5f";
    domain.startedAt.reset();
    domain.acceleration.clear();
    domain.transport.clear();
    domain.templateVersion.clear();
    return domain;
}

client::DomainInfo disposable() {
    client::DomainInfo domain = failedDomain();
    domain.name = "a-disposable";
    domain.kind = "disposable";
    domain.state = "starting";
    domain.reason.clear();
    return domain;
}

client::TemplateInfo minimalTemplate() {
    client::TemplateInfo info;
    info.name = "minimal";
    info.description = "Headless Debian";
    info.built = true;
    info.version = "9f2ab4c1d2e3f405";
    info.sizeOnDisk = 263ULL << 20U;
    info.builtAt = 1795964645;
    info.sizes = {{"small", {512ULL << 20U, 1}}, {"large", {3ULL << 29U, 2}}};
    info.defaultSize = "small";
    info.packages = QStringList{"apt", "git"};
    info.artefacts = {{"system.raw", "blake2b:00ff"}};
    info.definitionHash = "blake2b:1234";
    info.file = "/etc/bulkhead/templates/minimal.toml";
    info.warmImages = {{"small", "emulation", "virtio-serial", 97ULL << 20U, 1795964700, "red", 1795965700}};
    return info;
}

client::TemplateInfo unbuiltTemplate() {
    client::TemplateInfo info;
    info.name = "desktop";
    info.description = "Xorg, openbox, Firefox";
    return info;
}

QList<client::Finding> findings() {
    return {{"daemon", "ok", "bulkheadd 0.1.0 answers", ""},
            {"acceleration", "warning", "/dev/kvm opens but boots no guest; emulation is used",
             "see whether virtualisation is enabled in the firmware\nthen: bulkhead doctor --refresh"},
            {"disk", "problem", "3 % of /var/lib/bulkhead is free", "remove what is not needed"}};
}

} // namespace

class TestCliOutput : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("TZ", "UTC"); }

    void terminalSafe_data() {
        QTest::addColumn<QByteArray>("in");
        QTest::addColumn<QByteArray>("out");
        QTest::newRow("plain") << QByteArray("héllo, wörld 日本") << QByteArray("héllo, wörld 日本");
        QTest::newRow("escape sequence") << QByteArray("\x1b[2J") << QByteArray("\\x1b[2J");
        QTest::newRow("line break") << QByteArray("a\nbulkhead: done") << QByteArray("a\\x0abulkhead: done");
        QTest::newRow("carriage return") << QByteArray("a\rb") << QByteArray("a\\x0db");
        QTest::newRow("C1 CSI") << QByteArray("\xc2\x9b"
                                              "2J")
                                << QByteArray("\\x9b"
                                              "2J");
        QTest::newRow("lone byte") << QByteArray("a\x9b") << QByteArray("a\\x9b");
        QTest::newRow("override") << QByteArray("a\xe2\x80\xae"
                                                "b")
                                  << QByteArray("a\\u{202e}b");
        QTest::newRow("zero width") << QByteArray("a\xe2\x80\x8b"
                                                  "b")
                                    << QByteArray("a\\u{200b}b");
        QTest::newRow("tag character") << QByteArray("\xf3\xa0\x81\x81") << QByteArray("\\u{e0041}");
        QTest::newRow("overlong") << QByteArray("\xc0\xaf") << QByteArray("\\xc0\\xaf");
        QTest::newRow("surrogate") << QByteArray("\xed\xa0\x80") << QByteArray("\\xed\\xa0\\x80");
        QTest::newRow("beyond Unicode") << QByteArray("\xf4\x90\x80\x80") << QByteArray("\\xf4\\x90\\x80\\x80");
        QTest::newRow("cut short") << QByteArray("\xe2\x82") << QByteArray("\\xe2\\x82");
        QTest::newRow("no lead byte") << QByteArray("\xff\xf8") << QByteArray("\\xff\\xf8");
    }
    void terminalSafe() {
        QFETCH(QByteArray, in);
        QFETCH(QByteArray, out);
        QCOMPARE(QByteArray::fromStdString(client::terminalSafe(in.toStdString())), out);
    }
    void terminalSafe_zeroByte() {
        QCOMPARE(client::terminalSafe(std::string_view("a\0b", 3)), std::string("a\\x00b"));
    }

    void cut() {
        QCOMPARE(client::cutToWidth("äöü", 3), std::string("äöü"));
        QCOMPARE(client::cutToWidth("äöüß", 3), std::string("äö…"));
        QCOMPARE(client::cutToWidth("abc", 1), std::string("…"));
        QCOMPARE(client::cutToWidth("abc", 0), std::string());
    }

    void table_alignsByCharactersAndEscapes() {
        QCOMPARE(tableText({"NAME", "X"}, {{"äö", "1"}, {"\x1b", ""}, {"abcdef", "22"}}),
                 std::string("NAME    X\näö      1\n\\x1b    -\nabcdef  22\n"));
    }

    void bytes_data() {
        QTest::addColumn<qulonglong>("bytes");
        QTest::addColumn<QString>("text");
        QTest::newRow("none") << 0ULL << "0 B";
        QTest::newRow("bytes") << 1023ULL << "1023 B";
        QTest::newRow("whole") << (512ULL << 20U) << "512 MiB";
        QTest::newRow("fraction") << (3ULL << 29U) << "1.5 GiB";
        QTest::newRow("large") << (263ULL << 20U) + 99999 << "263 MiB";
    }
    void bytes() {
        QFETCH(qulonglong, bytes);
        QTEST(QString::fromStdString(bytesText(bytes)), "text");
    }

    void goldens() {
        compareGolden("domain_ls.txt", domainTable({disposable(), runningDomain(), failedDomain()}, false));
        compareGolden("domain_ls_all.txt", domainTable({runningDomain()}, true));
        compareGolden("domain_ls_empty.txt", domainTable({}, false));
        compareGolden("domain_ls.json", jsonText(jsonOf(QList<client::DomainInfo>{runningDomain(), failedDomain()})));
        compareGolden("domain_ls_empty.json", jsonText(jsonOf(QList<client::DomainInfo>{})));
        compareGolden("domain_show.txt", domainText(runningDomain()));
        compareGolden("domain_show_suspended.txt", domainText(suspendedDomain()));
        compareGolden("domain_show_suspended.json", jsonText(jsonOf(suspendedDomain())));
        compareGolden("domain_show_failed.txt", domainText(failedDomain()));
        compareGolden("template_ls.txt", templateTable({minimalTemplate(), unbuiltTemplate()}));
        compareGolden("template_ls_empty.txt", templateTable({}));
        compareGolden("template_ls.json",
                      jsonText(jsonOf(QList<client::TemplateInfo>{minimalTemplate(), unbuiltTemplate()})));
        compareGolden("template_show.txt", templateText(minimalTemplate()));
        compareGolden("template_show.json", jsonText(jsonOf(minimalTemplate(), true)));
        compareGolden("doctor.txt", findingsText(findings()));
        compareGolden("doctor.json", jsonText(jsonOf(findings())));
    }

    void json_isAscii_evenWithBrokenText() {
        const std::string text = jsonLine(Json{{"a", "\xff\xc2\x9b\x7f"}});
        for (const char c : text) {
            QVERIFY(c == '\n' || (c >= 0x20 && c < 0x7f));
        }
    }

    void progress() {
        QCOMPARE(progressText("Starting work", "", -1, false, 80), std::string("Starting work…"));
        QCOMPARE(progressText("Starting work", "booting", 0.5, false, 80), std::string("Starting work (booting)…"));
        QCOMPARE(progressText("Building m", "packages", 0.5, true, 80),
                 std::string("Building m  [############............]  50 %  packages"));
        QCOMPARE(progressText("Building m", "packages", -1, true, 80), std::string("Building m (packages)…"));
        QCOMPARE(progressText("Building m", "", 7.0, true, 80),
                 std::string("Building m  [########################] 100 %"));
        QCOMPARE(client::textWidth(progressText("Building m", "packages", 0.5, true, 20)), std::size_t{19});
    }
};

QTEST_APPLESS_MAIN(TestCliOutput)
#include "tst_cli_output.moc"

// SPDX-License-Identifier: Apache-2.0
#include "config/domain_toml.hpp"
#include "config/nearest_name.hpp"
#include "config/template_toml.hpp"
#include "config/toml_text.hpp"

#include <QDirIterator>
#include <QFile>
#include <QFileInfo>
#include <QTest>

#include <filesystem>

using namespace bulkhead;
using namespace bulkhead::config;

namespace {

std::optional<uid_t> fakeUsers(const std::string& name) {
    return name == "alice" ? std::optional<uid_t>(1234) : std::nullopt;
}

const QString kFixtures = QStringLiteral(BULKHEAD_SOURCE_DIR "/tests/fixtures/config/");

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void fixtureRows(const QString& below) {
    QTest::addColumn<QString>("path");
    QTest::addColumn<QString>("folder");
    for (const char* folder : {"domains", "users", "templates"}) {
        QDirIterator files(kFixtures + below + "/" + folder, {"*.toml"});
        while (files.hasNext()) {
            const QString path = files.next();
            QTest::newRow(qPrintable(QString(folder) + "/" + files.fileName())) << path << QString(folder);
        }
    }
}

/// The problems of a file by the reader that its folder is for; names are shown without folders.
Problems problemsOf(const QString& path, const QString& folder) {
    const std::string text = contentOf(path).toStdString();
    const std::string shown = QFileInfo(path).fileName().toStdString();
    const std::string name = QFileInfo(path).completeBaseName().toStdString();
    if (folder == "templates") {
        const auto parsed = parseTemplateToml(text, shown, name);
        return parsed ? Problems{} : parsed.error();
    }
    const auto owner = folder == "users" ? std::optional<uid_t>(1000) : std::nullopt;
    const auto parsed = parseDomainToml(text, {shown, name, owner}, fakeUsers);
    return parsed ? Problems{} : parsed.error();
}

} // namespace

class TestConfig : public QObject {
    Q_OBJECT

private slots:
    void good_data() { fixtureRows("good"); }
    void good() {
        QFETCH(QString, path);
        QFETCH(QString, folder);
        const auto problems = problemsOf(path, folder);
        QVERIFY2(problems.empty(), problems.empty() ? "" : problems.front().message.c_str());
    }
    void bad_data() { fixtureRows("bad"); }
    void bad() {
        QFETCH(QString, path);
        QFETCH(QString, folder);
        QByteArray seen;
        for (const Error& problem : problemsOf(path, folder)) {
            QCOMPARE(problem.code, ErrorCode::InvalidArgument);
            seen += QByteArray::fromStdString(problem.message) + "\n";
        }
        const QString expectedPath = path.chopped(5) + ".expected";
        if (qEnvironmentVariableIsSet("BULKHEAD_WRITE_GOLDENS")) {
            QFile file(expectedPath);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(seen);
        }
        const QByteArray expected = contentOf(expectedPath);
        QVERIFY(!expected.isEmpty());
        QCOMPARE(seen, expected);
    }

    void domain_hasWhatTheFileSays() {
        const auto domain = parseDomainToml(contentOf(kFixtures + "good/domains/full.toml").toStdString(),
                                            {"/x/full.toml", "full", {}}, fakeUsers);
        QVERIFY(domain);
        core::DomainDefinition expected;
        expected.name = "full";
        expected.owner = 1000;
        expected.kind = core::DomainKind::Standalone;
        expected.templateName = "minimal";
        expected.size = "large";
        expected.label = "red";
        expected.tags = {"untrusted", "web-2"};
        expected.homeSize = 2 * kGiB;
        expected.egress = "web";
        expected.isManaged = true;
        expected.file = "/x/full.toml";
        QVERIFY(*domain == expected);
    }
    void domain_defaults() {
        const auto domain = parseDomainToml("template = \"minimal\"", {"f", "work", 1000}, fakeUsers);
        QVERIFY(domain);
        QCOMPARE(domain->label, std::string("gray"));
        QCOMPARE(domain->egress, std::string("none"));
        QVERIFY(domain->kind == core::DomainKind::App);
        QVERIFY(!domain->homeSize);
        QVERIFY(!domain->isManaged);
    }
    void domain_whatHappensByItself() {
        const auto read = [](const std::string& lines) {
            return parseDomainToml("template = \"minimal\"\n" + lines, {"f", "work", 1000}, fakeUsers);
        };
        const auto domain = read("snapshot_on_stop = true\nidle_suspend = \"90m\"");
        QVERIFY(domain && domain->snapshotOnStop);
        QVERIFY(domain->idleSuspend == std::chrono::minutes(90));
        QVERIFY(writeDomainToml(*domain).ends_with("snapshot_on_stop = true\nidle_suspend = \"90m\"\n"));
        const auto off = read("snapshot_on_stop = false\nidle_suspend = \"off\"");
        QVERIFY(off && !off->snapshotOnStop && !off->idleSuspend);
        for (const char* const bad :
             {"snapshot_on_stop = \"true\"", "idle_suspend = 30", "idle_suspend = \"0m\"", "idle_suspend = \"8d\"",
              "idle_suspend = \"30s\"", "idle_suspend = \"\"", "idle_suspend = \"-5m\""}) {
            const auto problems = read(bad);
            QVERIFY2(!problems && problems.error().size() == 1, bad);
            QVERIFY2(problems.error().front().message.find("f:2:") != std::string::npos,
                     problems.error().front().message.c_str());
        }
    }
    void domain_whatHappensByItself_isEdited() {
        const std::string text = "# mine\ntemplate = \"minimal\"\nidle_suspend = \"1h\" # long\n";
        auto wanted = parseDomainToml(text, {"f", "work", 1000}, fakeUsers).value();
        wanted.idleSuspend.reset();
        wanted.snapshotOnStop = true;
        const auto edited = editDomainToml(text, wanted);
        QVERIFY(edited);
        QCOMPARE(*edited, std::string("# mine\ntemplate = \"minimal\"\nidle_suspend = \"off\" # long\n"
                                      "snapshot_on_stop = true\n"));
        wanted.snapshotOnStop = false;
        const auto back = editDomainToml(*edited, wanted);
        QVERIFY(back && back->ends_with("snapshot_on_stop = false\n"));
    }
    void domain_ownerByName() {
        const auto domain = parseDomainToml("template = \"minimal\"\nowner = \"alice\"", {"f", "work", {}}, fakeUsers);
        QVERIFY(domain);
        QCOMPARE(domain->owner, uid_t{1234});
        QCOMPARE(lookUpUser("root"), std::optional<uid_t>(0));
        QVERIFY(!lookUpUser("no such user"));
    }
    void domain_roundTrip() {
        core::DomainDefinition domain;
        domain.name = "work";
        domain.owner = 1000;
        domain.kind = core::DomainKind::Standalone;
        domain.templateName = "minimal";
        domain.size = "large";
        domain.label = "red";
        domain.tags = {"one", "two"};
        domain.homeSize = 1536 * kMiB;
        domain.audio = core::Audio::Out;
        domain.egress = "web";
        domain.file = "f";
        const std::string text = writeDomainToml(domain);
        QCOMPARE(text, std::string("# Written by bulkheadd.\n"
                                   "kind = \"standalone\"\n"
                                   "template = \"minimal\"\n"
                                   "size = \"large\"\n"
                                   "label = \"red\"\n"
                                   "egress = \"web\"\n"
                                   "tags = [\"one\", \"two\"]\n"
                                   "home_size = \"1536MiB\"\n"
                                   "audio = \"out\"\n"));
        const auto back = parseDomainToml(text, {"f", "work", 1000}, fakeUsers);
        QVERIFY(back);
        QVERIFY(*back == domain);
    }

    void template_hasWhatTheFileSays() {
        const auto parsed = parseTemplateToml(contentOf(kFixtures + "good/templates/minimal.toml").toStdString(),
                                              "/x/minimal.toml", "minimal");
        QVERIFY(parsed);
        QCOMPARE(parsed->suite, std::string("bookworm"));
        QCOMPARE(parsed->packages.size(), std::size_t{6});
        QCOMPARE(parsed->systemSize, 8 * kGiB);
        QCOMPARE(parsed->sizes.at("large").memory, 2 * kGiB);
        QCOMPARE(parsed->sizes.at("large").vcpus, 2U);
        QCOMPARE(parsed->defaultSize, std::string("small"));
    }

    void template_withADisplay() {
        const auto text = contentOf(kFixtures + "good/templates/desktop.toml").toStdString();
        const auto parsed = parseTemplateToml(text, "/x/desktop.toml", "desktop");
        QVERIFY(parsed);
        QCOMPARE(nameOf(parsed->init), nameOf(core::TemplateInit::Systemd));
        QCOMPARE(parsed->heads, 16U);
        QCOMPARE(*parsed->files, std::filesystem::path("/x/some-files"));
        const auto minimal = parseTemplateToml(contentOf(kFixtures + "good/templates/minimal.toml").toStdString(),
                                               "/x/minimal.toml", "minimal");
        QCOMPARE(nameOf(minimal->init), nameOf(core::TemplateInit::Agent));
        QCOMPARE(minimal->heads, 0U);
        QVERIFY(!minimal->files);
    }
    /// The definitions that we ship.
    void template_ofOurs_data() {
        QTest::addColumn<QString>("path");
        QDirIterator files(BULKHEAD_SOURCE_DIR "/resources/templates", {"*.toml"});
        while (files.hasNext()) {
            const QString path = files.next();
            QTest::newRow(qPrintable(files.fileName())) << path;
        }
    }
    void template_ofOurs() {
        QFETCH(QString, path);
        const auto parsed = parseTemplateToml(contentOf(path).toStdString(), path.toStdString(),
                                              QFileInfo(path).completeBaseName().toStdString());
        QVERIFY2(parsed, parsed ? "" : parsed.error().front().message.c_str());
        QVERIFY(!parsed->files || std::filesystem::is_directory(*parsed->files));
    }

    void deepNesting_isRefusedNotFatal() {
        const std::string deep = "template = " + std::string(60'000, '[');
        QVERIFY(!parseDomainToml(deep, {"f", "work", 1000}, fakeUsers));
        std::string tables = "[a";
        for (int i = 0; i < 20'000; ++i) {
            tables += ".a";
        }
        QVERIFY(!parseDomainToml(tables + "]\n", {"f", "work", 1000}, fakeUsers));
    }

    void nearestName_findsTypingErrorsOnly() {
        const std::vector<std::string> names{"template", "size", "label"};
        QCOMPARE(nearestName("tempalte", names), std::optional<std::string>("template"));
        QCOMPARE(nearestName("sizes", names), std::optional<std::string>("size"));
        QVERIFY(!nearestName("network_card", names));
        QVERIFY(!nearestName(std::string(100'000, 'a'), names));
    }
    void quoting_isTotal() {
        QCOMPARE(tomlQuoted("a\"b\\c\n\x7f"), std::string("\"a\\\"b\\\\c\\u000a\\u007f\""));
        QCOMPARE(exactBytes(kGiB), std::string("1GiB"));
        QCOMPARE(exactBytes(1000), std::string("1000"));
        QCOMPARE(exactBytes(0), std::string("0"));
    }
};

QTEST_GUILESS_MAIN(TestConfig)
#include "tst_config.moc"

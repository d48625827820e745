// SPDX-License-Identifier: Apache-2.0
// The contract against the code: every method of the XML has a row in the table of actions, and the other way round.
#ifndef Q_MOC_RUN // it cannot read all of C++20
#include "dbus/describe.hpp"
#endif
#include "dbus/method_table.hpp"
#include "dbus/options.hpp"
#ifndef Q_MOC_RUN
#include "dbus/snapshot_options.hpp"
#endif

#include <QDir>
#include <QFile>
#include <QTest>
#include <QXmlStreamReader>

#include <set>

using namespace bulkhead;
using namespace bulkhead::dbus;

namespace {

using Methods = std::set<std::pair<QString, QString>>;

Methods methodsInXml() {
    Methods methods;
    const QDir folder(QStringLiteral(BULKHEAD_SOURCE_DIR "/daemon/dbus/interfaces"));
    for (const auto& name : folder.entryList({"*.xml"})) {
        QFile file(folder.filePath(name));
        if (!file.open(QIODevice::ReadOnly)) {
            continue;
        }
        QXmlStreamReader xml(&file);
        QString interface;
        while (!xml.atEnd()) {
            if (xml.readNext() != QXmlStreamReader::StartElement) {
                continue;
            }
            const auto attribute = xml.attributes().value("name").toString();
            if (xml.name() == u"interface") {
                interface = attribute;
            } else if (xml.name() == u"method") {
                methods.emplace(interface, attribute);
            }
        }
    }
    return methods;
}

QString text(std::string_view view) {
    return QString::fromUtf8(view.data(), static_cast<qsizetype>(view.size()));
}

} // namespace

class TestBusContract : public QObject {
    Q_OBJECT

private slots:
    void runningDomain_saysWhenARestartBringsANewerVersion_data() {
        QTest::addColumn<bool>("isRunning");
        QTest::addColumn<QString>("newest");
        QTest::addColumn<QString>("expected"); // empty: nothing is said
        QTest::newRow("the newest") << true << "v1"
                                    << "no";
        QTest::newRow("an older one") << true << "v2"
                                      << "yes";
        QTest::newRow("nothing is built any more") << true << ""
                                                   << "no";
        QTest::newRow("stopped") << false << "v2"
                                 << "";
    }
    void runningDomain_saysWhenARestartBringsANewerVersion() {
        QFETCH(bool, isRunning);
        QFETCH(QString, newest);
        core::DomainEntry entry;
        if (isRunning) {
            entry.instance.emplace();
            entry.instance->templateVersion = "v1";
        }
        const auto described = describeDomain(
            entry, 0, newest.isEmpty() ? std::nullopt : std::optional<std::string>(newest.toStdString()));
        const auto said = described.find("update-available");
        QTEST(said == described.end() ? QString() : QString(said->second.get<bool>() ? "yes" : "no"), "expected");
    }

    void everyMethodHasItsRow() {
        Methods inTable;
        for (const auto& row : methodTable()) {
            QVERIFY2(inTable.emplace(text(row.interface), text(row.method)).second, row.method.data());
        }
        const auto inXml = methodsInXml();
        QVERIFY(inXml.size() >= 15);
        for (const auto& [interface, method] : inXml) {
            QVERIFY2(inTable.contains({interface, method}), qPrintable(interface + "." + method + " has no row"));
        }
        for (const auto& [interface, method] : inTable) {
            QVERIFY2(inXml.contains({interface, method}), qPrintable(interface + "." + method + " is no method"));
        }
    }

    void methodsOutsideTheTable_areRefused() {
        const core::Caller root{0, ":1.1"};
        const core::Caller alice{1000, ":1.2"};
        QVERIFY(!mayCall(root, "org.bulkhead1.Manager", "NoSuchMethod"));
        QVERIFY(!mayCall(root, "org.bulkhead1.NoSuch", "Describe"));
        QVERIFY(mayCall(alice, "org.bulkhead1.Manager", "CreateDomain").has_value());
        const auto refused = mayCall(alice, "org.bulkhead1.Manager", "BuildTemplate");
        QCOMPARE(refused.error().code, ErrorCode::NotAuthorized);
        QVERIFY(mayCall(root, "org.bulkhead1.Manager", "BuildTemplate").has_value());
    }

    void options_takeTheirTypeOrText() {
        const Options options{{"force", sdbus::Variant(std::string("true"))},
                              {"grace", sdbus::Variant(std::uint64_t{5})},
                              {"home-size", sdbus::Variant(std::string("2GiB"))},
                              {"env", sdbus::Variant(std::vector<std::string>{"A=b"})},
                              {"size", sdbus::Variant(std::string("small"))}};
        OptionReader reader(options);
        QVERIFY(reader.flag("force"));
        QVERIFY(!reader.flag("other"));
        QCOMPARE(reader.number("grace", 1, 10), std::uint64_t{5});
        QCOMPARE(reader.bytes("home-size").value(), 2 * kGiB);
        QCOMPARE(reader.list("env").size(), std::size_t{1});
        QCOMPARE(reader.text("size"), std::string("small"));
        QVERIFY(reader.finish().has_value());
    }

    void settings_keepTheirType() {
        const auto settings = settingsFrom({{"size", sdbus::Variant(std::string("large"))},
                                            {"home-size", sdbus::Variant(std::uint64_t{2 * kGiB})},
                                            {"tags", sdbus::Variant(std::vector<std::string>{"a"})}});
        QVERIFY(settings);
        QVERIFY(*settings == (core::Settings{{"size", std::string("large")},
                                             {"home-size", Bytes{2 * kGiB}},
                                             {"tags", std::vector<std::string>{"a"}}}));
        const auto refused = settingsFrom({{"label", sdbus::Variant(1.5)}});
        QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
        QVERIFY(refused.error().message.starts_with("label: "));
    }

    void domain_saysWhereItStands() {
        core::DomainEntry entry;
        auto described = describeDomain(entry, 0, std::nullopt);
        QCOMPARE(described.at("head").get<std::string>(), std::string());
        QVERIFY(!described.at("suspended").get<bool>());
        entry.head = {randomId<SnapshotId>(), true};
        described = describeDomain(entry, 0, std::nullopt);
        QCOMPARE(described.at("head").get<std::string>(), entry.head.node->text());
        QVERIFY(described.at("suspended").get<bool>());
    }

    void snapshot_isDescribed() {
        core::SnapshotRecord record;
        record.id = randomId<SnapshotId>();
        record.domain = randomId<DomainId>();
        record.domainName = "work";
        record.kind = core::SnapshotKind::Full;
        record.createdAt = 1795964645;
        record.isPinned = true;
        record.sizeOnDisk = 3 * kGiB;
        auto described = describeSnapshot(record);
        QCOMPARE(described.at("id").get<std::string>(), record.id.text());
        QCOMPARE(described.at("parent").get<std::string>(), std::string());
        QCOMPARE(described.at("domain").get<sdbus::ObjectPath>(), domainPath(record.domain));
        QCOMPARE(described.at("kind").get<std::string>(), std::string("full"));
        QCOMPARE(described.at("created-at").get<std::int64_t>(), std::int64_t{1795964645});
        QVERIFY(described.at("pinned").get<bool>());
        QCOMPARE(described.at("size-on-disk").get<std::uint64_t>(), 3 * kGiB);
        record.parent = randomId<SnapshotId>();
        QCOMPARE(describeSnapshot(record).at("parent").get<std::string>(), record.parent->text());
    }

    void results_ofSnapshotAndRevert_areDescribed() {
        core::JobInfo job;
        job.state = core::JobState::Succeeded;
        const auto snapshot = randomId<SnapshotId>();
        const auto domain = randomId<DomainId>();
        job.result = core::SnapshotResult{snapshot, 80};
        auto result = describeJob(job).at("result").get<Options>();
        QCOMPARE(result.at("snapshot").get<std::string>(), snapshot.text());
        QCOMPARE(result.at("pause-ms").get<std::uint64_t>(), std::uint64_t{80});
        job.result = core::RevertResult{domain, snapshot, true, "it had to boot"};
        result = describeJob(job).at("result").get<Options>();
        QCOMPARE(result.at("domain").get<sdbus::ObjectPath>(), domainPath(domain));
        QCOMPARE(result.at("kept").get<std::string>(), snapshot.text());
        QVERIFY(result.at("running").get<bool>());
        QCOMPARE(result.at("note").get<std::string>(), std::string("it had to boot"));
        job.result = core::RevertResult{domain, std::nullopt, false, {}};
        result = describeJob(job).at("result").get<Options>();
        QCOMPARE(result.at("kept").get<std::string>(), std::string());
    }

    void snapshotIds_areChecked_data() {
        QTest::addColumn<QByteArray>("given");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("the beginning of one") << QByteArray("1a2b3c4d");
        QTest::newRow("a path") << QByteArray("../../../etc/passwd");
        QTest::newRow("large letters") << QByteArray("1A2B3C4D-0000-4000-8000-000000000001");
        QTest::newRow("something behind") << QByteArray("1a2b3c4d-0000-4000-8000-000000000001\n");
        QTest::newRow("escape sequence") << QByteArray("\x1b]0;owned\x07");
    }
    void snapshotIds_areChecked() {
        QFETCH(QByteArray, given);
        const auto id = snapshotIdFrom(given.toStdString());
        QVERIFY(!id);
        QCOMPARE(id.error().code, ErrorCode::InvalidArgument);
        for (const char c : id.error().message) {
            QVERIFY(c >= 0x20 && c < 0x7f);
        }
    }
    void snapshotIds_areTaken() {
        const auto id = randomId<SnapshotId>();
        QCOMPARE(snapshotIdFrom(id.text()).value(), id);
    }

    void snapshotOptions_haveTheirDefaults() {
        QVERIFY(revertOptionsFrom({})->keepsPresent);
        QVERIFY(!revertOptionsFrom({{"keep", sdbus::Variant(false)}})->keepsPresent);
        QVERIFY(!revertOptionsFrom({{"keep", sdbus::Variant(std::string("false"))}})->keepsPresent);
        QVERIFY(revertOptionsFrom({{"disk", sdbus::Variant(true)}})->isDiskOnly);
        QVERIFY(!forkOptionsFrom({})->label);
        QCOMPARE(forkOptionsFrom({{"label", sdbus::Variant(std::string("red"))}})->label.value(), std::string("red"));
        QCOMPARE(takeOptionsFrom({{"reason", sdbus::Variant(std::string("why"))}})->reason, std::string("why"));
        QVERIFY(!snapshotChangesFrom({})->isPinned);
        QCOMPARE(snapshotChangesFrom({{"pinned", sdbus::Variant(false)}})->isPinned, std::optional(false));
        QCOMPARE(snapshotChangesFrom({{"label", sdbus::Variant(std::string())}})->label, std::optional(std::string()));
    }
    void snapshotOptions_refuse() {
        QCOMPARE(revertOptionsFrom({{"keep", sdbus::Variant(1.5)}}).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(forkOptionsFrom({{"size", sdbus::Variant(std::string("large"))}}).error().code,
                 ErrorCode::InvalidArgument);
        QCOMPARE(takeOptionsFrom({{"label", sdbus::Variant(true)}}).error().code, ErrorCode::InvalidArgument);
        QCOMPARE(snapshotChangesFrom({{"suspect", sdbus::Variant(std::string("x"))}}).error().code,
                 ErrorCode::InvalidArgument);
    }

    void options_refuse_data() {
        QTest::addColumn<QString>("key");
        QTest::addColumn<QString>("value");
        QTest::newRow("unknown key") << "tempalte"
                                     << "minimal";
        QTest::newRow("not a flag") << "force"
                                    << "maybe";
        QTest::newRow("not a number") << "grace"
                                      << "soon";
        QTest::newRow("too large a number") << "grace"
                                            << "11";
        QTest::newRow("not a size") << "home-size"
                                    << "2GB";
        QTest::newRow("not a list") << "env"
                                    << "A=b";
    }
    void options_refuse() {
        QFETCH(QString, key);
        QFETCH(QString, value);
        const Options options{{key.toStdString(), sdbus::Variant(value.toStdString())}};
        OptionReader reader(options);
        reader.flag("force");
        reader.number("grace", 1, 10);
        reader.bytes("home-size");
        reader.list("env");
        const auto read = reader.finish();
        QVERIFY(!read);
        QCOMPARE(read.error().code, ErrorCode::InvalidArgument);
        QVERIFY(read.error().message.find(key.toStdString()) != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(TestBusContract)
#include "tst_bus_contract.moc"

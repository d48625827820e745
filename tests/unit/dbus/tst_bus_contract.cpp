// SPDX-License-Identifier: Apache-2.0
// The contract against the code: every method of the XML has a row in the table of actions, and the other way round.
#ifndef Q_MOC_RUN // it cannot read all of C++20
#include "dbus/describe.hpp"
#endif
#include "dbus/method_table.hpp"
#include "dbus/options.hpp"

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
        const auto refused = settingsFrom({{"label", sdbus::Variant(true)}});
        QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
        QVERIFY(refused.error().message.starts_with("label: "));
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

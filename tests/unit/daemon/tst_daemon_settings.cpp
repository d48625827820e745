// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <QTest>

#include <string>
#include <vector>

using namespace bulkhead;

namespace {

Result<Settings> read(std::vector<std::string> words) {
    words.insert(words.begin(), "bulkheadd");
    std::vector<char*> arguments;
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    return readCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

} // namespace

/// The daemon's command line.
class TestDaemonSettings : public QObject {
    Q_OBJECT

private slots:
    void nothing_isWhatAnInstallationHas() {
        const auto settings = read({});
        QVERIFY(settings);
        QCOMPARE(settings->stateDirectory, std::filesystem::path("/var/lib/bulkhead"));
        QCOMPARE(settings->dataDirectory, std::filesystem::path("/data"));
        QVERIFY(settings->keepDeleted == std::chrono::hours(7 * 24));
        QVERIFY(!settings->showHelp && !settings->showVersion);
    }
    void keepDeleted_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<qint64>("seconds"); // -1: it is refused
        const auto row = [](const char* text, qint64 seconds) { QTest::newRow(text) << QString(text) << seconds; };
        row("7d", 7 * 24 * 3600);
        row("12h", 12 * 3600);
        row("30m", 1800);
        row("90s", 90);
        row("0", 0);
        row("0d", 0);
        row("3650d", qint64{3650} * 24 * 3600);
        for (const char* const bad : {"", "d", "7", "7w", "-1d", "1.5d", "7 d", "7dd", "3651d", "9223372036854775807d",
                                      "99999999999999999999s"}) {
            row(bad, -1);
        }
    }
    void keepDeleted() {
        QFETCH(QString, text);
        QFETCH(qint64, seconds);
        for (const auto& words : {std::vector<std::string>{"--keep-deleted", text.toStdString()},
                                  std::vector<std::string>{"--keep-deleted=" + text.toStdString()}}) {
            const auto settings = read(words);
            QCOMPARE(settings.has_value(), seconds >= 0);
            if (settings) {
                QCOMPARE(qint64(settings->keepDeleted.count()), seconds);
            } else {
                QCOMPARE(settings.error().code, ErrorCode::InvalidArgument);
                QVERIFY(settings.error().message.find("--keep-deleted") != std::string::npos);
            }
        }
    }
    void mistakes_nameTheOption_data() {
        QTest::addColumn<QStringList>("words");
        QTest::addColumn<QString>("named");
        QTest::newRow("unknown") << QStringList{"--stat-dir", "x"} << "--stat-dir";
        QTest::newRow("no value") << QStringList{"--state-dir"} << "--state-dir";
        QTest::newRow("shells") << QStringList{"--waiting-shells", "17"} << "--waiting-shells";
        QTest::newRow("images") << QStringList{"--warm-images", "never"} << "--warm-images";
    }
    void mistakes_nameTheOption() {
        QFETCH(QStringList, words);
        QFETCH(QString, named);
        std::vector<std::string> given;
        for (const QString& word : words) {
            given.push_back(word.toStdString());
        }
        const auto settings = read(given);
        QVERIFY(!settings);
        QVERIFY(settings.error().message.find(named.toStdString()) != std::string::npos);
    }
    void help_namesEachOption() {
        const std::string help = usageText();
        for (const char* const option : {"--keep-deleted", "--state-dir", "--transport", "--waiting-shells"}) {
            QVERIFY2(help.find(option) != std::string::npos, option);
        }
    }
};

QTEST_GUILESS_MAIN(TestDaemonSettings)
#include "tst_daemon_settings.moc"

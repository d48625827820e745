// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"
#include "cli/output/diff.hpp"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <string>
#include <vector>

using namespace bulkhead;
using namespace bulkhead::cli;
using namespace bulkhead::diff_stream;

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

client::FileState state(FileType type, std::uint64_t size = 0, std::uint32_t mode = 0644, const char* target = "") {
    client::FileState made;
    made.type = type;
    made.size = size;
    made.mode = mode;
    made.mtime = 1'795'964'645;
    made.target = target;
    return made;
}

client::DiffEntry entry(Change change, const std::string& path, const client::FileState& file,
                        Disk disk = Disk::System) {
    client::DiffEntry made{.disk = disk, .change = change, .path = path};
    (change == Change::Added ? made.after : made.before) = file;
    return made;
}

client::DiffEntry changed(std::uint32_t what, const std::string& path, const client::FileState& before,
                          const client::FileState& after, Disk disk = Disk::System) {
    return {.disk = disk, .change = Change::Changed, .what = what, .path = path, .before = before, .after = after};
}

/// Something of everything.
void play(DiffOutput& output) {
    output.began(false);
    output.package({"curl", "amd64", "7.88.1-10", "7.88.1-12"});
    output.package({"evil\x1b[31m", "all", "", "1.0"});
    output.package({"gone", "all", "1:2", ""});
    output.diskIs(Disk::System, DiskState::Compared);
    output.entry(entry(Change::Added, "etc/cron.d/job", state(FileType::File, 120)));
    output.entry(entry(Change::Removed, "etc/motd", state(FileType::Link, 9, 0777, "../run/motd\n")));
    client::FileState owned = state(FileType::File, 5000, 04755);
    owned.uid = 1000;
    output.entry(changed(kContent | kMode | kOwner, "usr/bin/su", state(FileType::File, 4096, 0755), owned));
    output.entry(changed(kType, "var/x", state(FileType::Directory, 4096, 0644), state(FileType::File)));
    output.diskIs(Disk::Home, DiskState::Compared);
    output.entry(entry(Change::Added, "user/new", state(FileType::Directory, 4096, 0700), Disk::Home));
    output.entry(entry(Change::Added,
                       "user/new/\xff\xe2\x80\xae"
                       "a",
                       state(FileType::File, 1), Disk::Home));
    client::FileState device = state(FileType::CharacterDevice, 0, 0666);
    device.deviceMajor = 1;
    device.deviceMinor = 5;
    output.entry(entry(Change::Added, "user/null", device, Disk::Home));
    output.entry(changed(kAttributes, "user/ping", state(FileType::File, 3), state(FileType::File, 3), Disk::Home));
    output.note({NoteKind::Unreadable, Disk::Home, Side::B, 13, "user/\x1b]0;title"});
    output.note({NoteKind::JournalIgnored, Disk::System, Side::A, 0, ""});
    output.totals({.added = 4,
                   .removed = 1,
                   .changed = 3,
                   .packagesAdded = 1,
                   .packagesRemoved = 1,
                   .packagesChanged = 1,
                   .notes = 2,
                   .directories = 10,
                   .names = 20,
                   .bytes = 30});
    output.finish(nullptr);
}

struct Written {
    std::string text;
    int pieces = 0;
    DiffWriter writer() {
        return [this](const std::string& piece) {
            text += piece;
            ++pieces;
            return true;
        };
    }
    [[nodiscard]] QJsonDocument json() const { return QJsonDocument::fromJson(QByteArray::fromStdString(text)); }
};

const Json kAbout{{"a", "1a2b"}, {"b", "3c4d"}, {"deep", false}};

} // namespace

class TestCliDiff : public QObject {
    Q_OBJECT

private slots:
    void text() {
        Written written;
        DiffText output(written.writer(), "A: one\nB: other", false);
        play(output);
        compareGolden("diff.txt", written.text);
        for (const char c : written.text) {
            QVERIFY(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
        }
    }

    void json() {
        Written written;
        DiffJson output(written.writer(), kAbout);
        play(output);
        compareGolden("diff.json", written.text);
        const QJsonObject all = written.json().object();
        QCOMPARE(all["files"].toArray().size(), 8);
        const QJsonObject odd = all["files"].toArray()[5].toObject();
        QCOMPARE(QByteArray::fromBase64(odd["path_base64"].toString().toLatin1()),
                 QByteArray("/home/user/new/\xff\xe2\x80\xae"
                            "a"));
        QVERIFY(!all["files"].toArray()[0].toObject().contains("path_base64"));
        QCOMPARE(all["complete"].toBool(), true);
    }

    void nothing() {
        Written text;
        DiffText forPeople(text.writer(), "T", false);
        Written json;
        DiffJson forPrograms(json.writer(), kAbout);
        for (DiffOutput* output : {static_cast<DiffOutput*>(&forPeople), static_cast<DiffOutput*>(&forPrograms)}) {
            output->began(true);
            output->diskIs(Disk::System, DiskState::NotGiven);
            output->diskIs(Disk::Home, DiskState::Compared);
            output->totals({});
            output->finish(nullptr);
        }
        QCOMPARE(text.text, std::string("T\n\nSystem disk: there is nothing to compare (one and the same for both, or "
                                        "gone)\n\nNothing differs.\n"));
        QCOMPARE(json.json().object()["files"].toArray().size(), 0);
        QCOMPARE(json.json().object()["disks"].toArray().size(), 2);
    }

    /// Whenever it breaks off, what was written is whole JSON and says so.
    void brokenOff_data() {
        QTest::addColumn<int>("steps");
        for (const int steps : {0, 1, 2, 3}) {
            QTest::newRow(qPrintable(QString::number(steps))) << steps;
        }
    }
    void brokenOff() {
        QFETCH(int, steps);
        Written json;
        DiffJson output(json.writer(), kAbout);
        if (steps > 0) {
            output.package({"a", "all", "", "1"});
        }
        if (steps > 1) {
            output.diskIs(Disk::System, DiskState::Compared);
        }
        if (steps > 2) {
            output.entry(entry(Change::Added, "a", state(FileType::File)));
        }
        const client::Failure failure{client::code::kGuestFailure, "it died"};
        output.finish(&failure);
        const QJsonObject all = json.json().object();
        QCOMPARE(all["complete"], QJsonValue(false));
        QCOMPARE(all["error"].toObject()["message"].toString(), QString("it died"));
        Written text;
        DiffText forPeople(text.writer(), "T", false);
        forPeople.finish(&failure);
        QVERIFY(text.text.find("This is not all") != std::string::npos);
    }

    void manyLines_areCut() {
        const auto lines = [](bool isUnlimited) {
            Written written;
            DiffText output(written.writer(), "T", isUnlimited);
            output.diskIs(Disk::System, DiskState::Compared);
            for (std::size_t i = 0; i < DiffText::kMostLines + 7; ++i) {
                output.entry(entry(Change::Added, std::to_string(i), state(FileType::File)));
            }
            for (int i = 0; i < 60; ++i) {
                output.note({NoteKind::Unreadable, Disk::System, Side::A, 5, "x"});
            }
            output.totals({.added = DiffText::kMostLines + 7});
            output.finish(nullptr);
            return QString::fromStdString(written.text);
        };
        const QString cut = lines(false);
        QCOMPARE(cut.count("\n  + "), static_cast<qsizetype>(DiffText::kMostLines));
        QVERIFY(cut.contains("  … and 7 more; all of them: --all\n"));
        QVERIFY(cut.contains("  … and 10 more; all of them: --all\n"));
        QVERIFY(cut.contains("\nFiles: 2007 added, 0 removed, 0 changed. Packages: 0 added, 0 removed, 0 changed.\n"));
        const QString all = lines(true);
        QCOMPARE(all.count("\n  + "), static_cast<qsizetype>(DiffText::kMostLines + 7));
        QVERIFY(!all.contains("--all"));
    }

    /// What is printed is passed on in pieces, and nothing more once nobody reads.
    void piecesAndAReaderWhoLeaves() {
        Written written;
        DiffJson output(written.writer(), kAbout);
        output.diskIs(Disk::System, DiskState::Compared);
        for (int i = 0; i < 2000; ++i) {
            output.entry(entry(Change::Added, std::to_string(i), state(FileType::File)));
        }
        QVERIFY(written.pieces >= 2);
        output.finish(nullptr);
        QCOMPARE(written.json().object()["files"].toArray().size(), 2000);
        int pieces = 0;
        DiffText leaving([&](const std::string&) { return ++pieces < 2; }, "T", true);
        leaving.diskIs(Disk::System, DiskState::Compared);
        for (int i = 0; i < 20'000; ++i) {
            leaving.entry(entry(Change::Added, std::to_string(i), state(FileType::File)));
        }
        leaving.finish(nullptr);
        QCOMPARE(pieces, 2);
        QVERIFY(leaving.isBroken());
    }

    void words() {
        const auto parsed = parseArguments({"snapshot", "diff", "work", "1a2b", "now", "--deep", "--all", "--json"});
        const auto* invocation = std::get_if<Invocation>(&parsed);
        QVERIFY(invocation != nullptr);
        const auto* arguments = std::get_if<SnapshotDiffArguments>(invocation);
        QVERIFY(arguments != nullptr);
        QCOMPARE(arguments->domain, std::string("work"));
        QCOMPARE(arguments->from, std::string("1a2b"));
        QCOMPARE(arguments->to, std::string("now"));
        QVERIFY(arguments->isDeep && arguments->isAll && arguments->json);
        const std::vector<std::vector<std::string>> mistakes{{"snapshot", "diff", "work", "1a2b"},
                                                             {"snapshot", "diff", "work", "1a2b", "now", "more"},
                                                             {"snapshot", "diff", "", "1a2b", "now"}};
        for (const auto& line : mistakes) {
            const auto wrong = parseArguments(line);
            QVERIFY(std::holds_alternative<ParseEnd>(wrong) && std::get<ParseEnd>(wrong).status == 2);
        }
    }
};

QTEST_GUILESS_MAIN(TestCliDiff)
#include "tst_cli_diff.moc"

// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.hpp"
#include "cli/output/snapshot_tree.hpp"
#include "cli/output/snapshots.hpp"

#include <QFile>
#include <QTest>

using namespace bulkhead;
using namespace bulkhead::cli;

namespace {

constexpr std::int64_t kNow = 1'795'964'645;
constexpr std::int64_t kHour = 3600;

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

QString idOf(int number) {
    return QStringLiteral("1%1b3c4d-0000-4000-8000-000000000000").arg(number, 2, 16, QLatin1Char('0'));
}

QString pathOf(const char* name) {
    // 32 digits, as the daemon's have
    return QStringLiteral("/org/bulkhead1/domains/") +
           QString::fromLatin1(QByteArray(name).toHex().leftJustified(32, '0', true));
}

client::SnapshotInfo node(int number, int parent, const char* domain = "work", const char* kind = "full") {
    client::SnapshotInfo info;
    info.id = idOf(number);
    info.parent = parent == 0 ? QString() : idOf(parent);
    info.domain = pathOf(domain);
    info.domainName = domain;
    info.kind = kind;
    info.createdAt = kNow - 100 * kHour + number * 5 * kHour;
    info.reason = "manual";
    info.templateName = "minimal";
    info.templateVersion = "9f2ab4";
    info.size = "small";
    info.sizeOnDisk = static_cast<std::uint64_t>(number) << 20U;
    return info;
}

client::DomainInfo domain(const char* name, int head, const char* state = "running") {
    client::DomainInfo info;
    info.path = pathOf(name);
    info.name = name;
    info.state = state;
    info.head = head == 0 ? QString() : idOf(head);
    return info;
}

/// 1 ─ 2 ─ 4 (here), 2 ─ 3 ─ 5 (a branch that was left), 2 ─ 6 ─ 7 of research; mail was forked at 4.
Lineage branched() {
    Lineage lineage{{node(1, 0, "work", "disk"), node(2, 1), node(3, 2), node(4, 2), node(5, 3), node(6, 2, "research"),
                     node(7, 6, "research"), node(8, 0, "old")},
                    {domain("mail", 4, "stopped"), domain("research", 7), domain("work", 4)},
                    kNow};
    lineage.snapshots[1].label = "a clean base";
    lineage.snapshots[1].isPinned = true;
    lineage.snapshots[2].reason = "before-revert";
    lineage.snapshots[4].suspect = "a program \x1b[31m was found";
    return lineage;
}

const client::DomainInfo& named(const Lineage& lineage, const char* name) {
    return *lineage.domainNamed(name);
}

std::vector<std::string> words(const QString& line) {
    std::vector<std::string> out;
    for (const QString& word : line.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        out.push_back(word == QLatin1String("''") ? std::string() : word.toStdString());
    }
    return out;
}

template <class Arguments> Arguments parsed(const QString& line) {
    const auto result = parseArguments(words(line));
    const auto* invocation = std::get_if<Invocation>(&result);
    const auto* arguments = invocation == nullptr ? nullptr : std::get_if<Arguments>(invocation);
    if (arguments == nullptr) {
        throw std::runtime_error(line.toStdString() + " is not understood");
    }
    return *arguments;
}

} // namespace

class TestCliSnapshots : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("TZ", "UTC"); }

    void words_areUnderstood() {
        const auto create =
            parsed<SnapshotCreateArguments>("snapshot create work --disk --reason why --label l --json");
        QCOMPARE(create.domain, std::string("work"));
        QVERIFY(create.isDiskOnly);
        QVERIFY(create.json);
        QCOMPARE(create.reason, std::string("why"));
        QCOMPARE(create.label, std::string("l"));
        QCOMPARE(parsed<SnapshotListArguments>("snapshot ls").domain, std::string());
        QCOMPARE(parsed<SnapshotListArguments>("snapshot ls work").domain, std::string("work"));
        QCOMPARE(parsed<SnapshotTreeArguments>("snapshot tree work").domain, std::string("work"));
        QCOMPARE(parsed<SnapshotShowArguments>("snapshot show 1a2b").id, std::string("1a2b"));
        const auto revert = parsed<SnapshotRevertArguments>("snapshot revert work 1a2b");
        QVERIFY(!revert.isDiscarding);
        QVERIFY(parsed<SnapshotRevertArguments>("snapshot revert work 1a2b --no-keep --disk").isDiscarding);
        QVERIFY(parsed<SnapshotRevertArguments>("snapshot revert work 1a2b --no-keep --disk").isDiskOnly);
        const auto fork = parsed<SnapshotForkArguments>("snapshot fork 1a2b new --egress none --label red --disk");
        QCOMPARE(fork.from, std::string("1a2b"));
        QCOMPARE(fork.name, std::string("new"));
        QCOMPARE(fork.egress, std::string("none"));
        QCOMPARE(fork.label, std::string("red"));
        QVERIFY(fork.isDiskOnly);
        QVERIFY(parsed<SnapshotPinArguments>("snapshot pin 1a2b").isPinned);
        QVERIFY(!parsed<SnapshotPinArguments>("snapshot unpin 1a2b").isPinned);
        QCOMPARE(parsed<SnapshotLabelArguments>("snapshot label 1a2b ''").label, std::string());
        QCOMPARE(parsed<SnapshotLabelArguments>("snapshot label 1a2b text").label, std::string("text"));
        QVERIFY(parsed<SnapshotRemoveArguments>("snapshot rm 1a2b --cascade").isCascade);
        QVERIFY(!parsed<SnapshotRemoveArguments>("snapshot rm 1a2b").isCascade);
        QCOMPARE(parsed<DomainSuspendArguments>("domain suspend work").name, std::string("work"));
        QCOMPARE(parsed<DomainResumeArguments>("domain resume work").name, std::string("work"));
        QVERIFY(parsed<DomainStopArguments>("domain stop work --discard").isDiscarding);
    }

    void mistakes_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* line, const char* says) { QTest::newRow(line) << line << says; };
        row("snapshot create", "DOMAIN is required");
        row("snapshot revert work", "ID is required");
        row("snapshot fork 1a2b", "NAME is required");
        row("snapshot label 1a2b", "TEXT is required");
        row("snapshot create work --label ''", "--label: it is empty");
        row("snapshot rm a b", "unexpected argument b");
        row("snapshot rename a b", "there is no 'bulkhead snapshot rename'");
        row("domain stop work --discard --force", "excludes");
        row("domain stop work --discard --grace 5s", "excludes");
    }
    void mistakes() {
        QFETCH(QString, line);
        QFETCH(QString, says);
        const auto result = parseArguments(words(line));
        const auto* end = std::get_if<ParseEnd>(&result);
        QVERIFY(end != nullptr);
        QCOMPARE(end->status, 2);
        QVERIFY2(QString::fromStdString(end->text).contains(says), end->text.c_str());
    }

    void goldens() {
        const Lineage lineage = branched();
        compareGolden("snapshot_ls.txt", snapshotTable(lineage, lineage.snapshots));
        compareGolden("snapshot_ls.json", jsonText(jsonOf(lineage, lineage.snapshots)));
        compareGolden("snapshot_show.txt", snapshotText(lineage, lineage.snapshots[1]));
        compareGolden("snapshot_show_suspect.txt", snapshotText(lineage, lineage.snapshots[4]));
        compareGolden("snapshot_show_gone.txt", snapshotText(lineage, lineage.snapshots[7]));
        compareGolden("snapshot_tree.txt", treeText(lineage, named(lineage, "work"), true));
        compareGolden("snapshot_tree_ascii.txt", treeText(lineage, named(lineage, "work"), false));
        compareGolden("snapshot_tree_fork.txt", treeText(lineage, named(lineage, "research"), true));
        compareGolden("snapshot_tree_new_fork.txt", treeText(lineage, named(lineage, "mail"), true));
        compareGolden("snapshot_tree.json", jsonText(treeJson(lineage, named(lineage, "work"))));
    }

    void ascii_isAscii() {
        const Lineage lineage = branched();
        for (const auto& domain : lineage.domains) {
            for (const char c : treeText(lineage, domain, false)) {
                QVERIFY(c == '\n' || (c >= 0x20 && c < 0x7f));
            }
        }
    }

    void here_isWhereTheDomainStands_data() {
        QTest::addColumn<int>("head");
        QTest::addColumn<bool>("isSuspended");
        QTest::addColumn<QString>("text");
        // What was left behind moves aside; the way to "here" is straight.
        QTest::newRow("the end") << 3 << false
                                 << "work\n* 101b3c4d\n* 102b3c4d\n* 103b3c4d\n@ you are here (running)\n";
        QTest::newRow("the middle") << 2 << false
                                    << "work\n* 101b3c4d\n* 102b3c4d\n|-* 103b3c4d\n@ you are here (running)\n";
        QTest::newRow("the beginning") << 1 << false
                                       << "work\n* 101b3c4d\n|-* 102b3c4d\n| * 103b3c4d\n@ you are here (running)\n";
        QTest::newRow("suspended") << 3 << true
                                   << "work\n* 101b3c4d\n* 102b3c4d\n* 103b3c4d\n@ you are here (suspended: the next "
                                      "start goes on from there)\n";
        QTest::newRow("nowhere") << 0 << false
                                 << "work\n* 101b3c4d\n* 102b3c4d\n* 103b3c4d\n@ you are here (running)\n";
        QTest::newRow("a node that is not told of")
            << 99 << false << "work\n* 101b3c4d\n* 102b3c4d\n* 103b3c4d\n@ you are here (running)\n";
    }
    void here_isWhereTheDomainStands() {
        QFETCH(int, head);
        QFETCH(bool, isSuspended);
        Lineage lineage{{node(1, 0), node(2, 1), node(3, 2)}, {domain("work", head)}, kNow};
        lineage.domains[0].isSuspended = isSuspended;
        lineage.domains[0].state = isSuspended ? "suspended" : "running";
        QString left; // without the columns
        for (const QString& line : QString::fromStdString(treeText(lineage, lineage.domains[0], false)).split('\n')) {
            const qsizetype columns = line.indexOf("  full");
            left += (columns < 0 ? line : line.left(columns).trimmed()) + '\n';
        }
        left.chop(1);
        QTEST(left, "text");
    }

    void tree_ofNothing() {
        const Lineage lineage{{}, {domain("work", 0)}, kNow};
        QCOMPARE(treeText(lineage, lineage.domains[0], true),
                 std::string("Domain work has no snapshots yet. Take one: bulkhead snapshot create work\n"));
        QCOMPARE(treeJson(lineage, lineage.domains[0])["nodes"].size(), std::size_t{0});
    }

    /// A long lineage stays in the window and off the stack.
    void tree_ofManyInARow_staysStraight() {
        Lineage lineage{{}, {domain("work", 500)}, kNow};
        for (int i = 1; i <= 500; ++i) {
            lineage.snapshots.append(node(i, i - 1));
            lineage.snapshots.last().id = QString::number(10'000'000 + i);
            lineage.snapshots.last().parent = i == 1 ? QString() : QString::number(10'000'000 + i - 1);
        }
        lineage.domains[0].head = QString::number(10'000'500);
        const QString text = QString::fromStdString(treeText(lineage, lineage.domains[0], false));
        QCOMPARE(text.count('\n'), 502);
        QVERIFY(!text.contains('|'));
    }

    /// Never told by a daemon of ours, but no reason to hang.
    void tree_withACircle_ends() {
        const Lineage lineage{{node(1, 2), node(2, 1), node(3, 3)}, {domain("work", 1)}, kNow};
        QVERIFY(!treeText(lineage, lineage.domains[0], true).empty());
        QVERIFY(!snapshotText(lineage, lineage.snapshots[0]).empty());
    }
};

QTEST_APPLESS_MAIN(TestCliSnapshots)
#include "tst_cli_snapshots.moc"

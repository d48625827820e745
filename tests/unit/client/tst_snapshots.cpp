// SPDX-License-Identifier: Apache-2.0
#include "client/snapshots.hpp"

#include <QTest>

using namespace bulkhead::client;

namespace {

SnapshotInfo snapshot(const char* id, const char* domain = "work", const char* label = "") {
    SnapshotInfo info;
    info.id = id;
    info.domainName = domain;
    info.label = label;
    return info;
}

QList<SnapshotInfo> some() {
    return {snapshot("1a2b3c4d-0000-4000-8000-000000000001", "work", "cafe0"),
            snapshot("1a2b3c4d-1000-4000-8000-000000000002", "mail", "before the update"),
            snapshot("cafe0000-0000-4000-8000-000000000003")};
}

} // namespace

class TestSnapshots : public QObject {
    Q_OBJECT

private slots:
    void find_data() {
        QTest::addColumn<QString>("prefix");
        QTest::addColumn<int>("index"); // -1: see code
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("says");
        const auto good = [](const char* name, const char* prefix, int index) {
            QTest::newRow(name) << prefix << index << ""
                                << "";
        };
        const auto bad = [](const char* name, const char* prefix, const char* code, const char* says) {
            QTest::newRow(name) << prefix << -1 << code << says;
        };
        good("four digits", "cafe", 2);
        good("the whole id", "1a2b3c4d-0000-4000-8000-000000000001", 0);
        good("without dashes", "1a2b3c4d1", 1);
        good("large letters", "CAFE00", 2);
        good("a label", "before the update", 1);
        bad("a label and an id", "cafe0", code::kInvalidArgument, "several snapshots are called cafe0");
        bad("a part of a label", "before", code::kInvalidArgument, "nor the label of one");
        bad("three digits", "caf", code::kInvalidArgument, "at least 4 digits");
        bad("dashes are no digits", "c-a-f-", code::kInvalidArgument, "at least 4 digits");
        bad("a name", "work", code::kInvalidArgument, "'work' is not the id");
        bad("empty", "", code::kInvalidArgument, "'' is not the id");
        bad("hostile", "\x1b[2J", code::kInvalidArgument, "'\\x1b[2J'");
        bad("a line break behind", "cafe\n", code::kInvalidArgument, "\\x0a");
        bad("none", "beef", code::kNotFound, "there is no snapshot beef");
        bad("longer than any", "cafe0000-0000-4000-8000-0000000000031", code::kNotFound, "there is no snapshot");
        bad("two", "1a2b3c4d", code::kInvalidArgument,
            "several snapshots are called 1a2b3c4d: 1a2b3c4d0 of work, 1a2b3c4d1 of mail; give these digits");
    }
    void find() {
        QFETCH(QString, prefix);
        QFETCH(int, index);
        QFETCH(QString, code);
        QFETCH(QString, says);
        const auto found = findSnapshot(some(), prefix);
        QCOMPARE(found.has_value(), index >= 0);
        if (found) {
            QCOMPARE(found->id, some()[index].id);
            return;
        }
        QCOMPARE(QString::fromStdString(found.error().code), code);
        QVERIFY2(QString::fromStdString(found.error().message).contains(says), found.error().message.c_str());
    }

    void manyCandidates_areCut() {
        QList<SnapshotInfo> many;
        for (int i = 0; i < 9; ++i) {
            many.append(snapshot(qPrintable(QStringLiteral("abcd%1000-0000-4000-8000-000000000000").arg(i))));
        }
        const std::string message = findSnapshot(many, "abcd").error().message;
        QVERIFY2(message.find("and 4 more; give these digits") != std::string::npos, message.c_str());
    }

    void age_data() {
        QTest::addColumn<qlonglong>("seconds");
        QTest::addColumn<QString>("text");
        QTest::newRow("the future") << -3600LL << "just now";
        QTest::newRow("now") << 0LL << "just now";
        QTest::newRow("under a minute") << 59LL << "just now";
        QTest::newRow("a minute") << 60LL << "1 minute ago";
        QTest::newRow("minutes") << 3599LL << "59 minutes ago";
        QTest::newRow("an hour") << 3600LL << "1 hour ago";
        QTest::newRow("days") << 2LL * 86400 << "2 days ago";
        QTest::newRow("months") << 65LL * 86400 << "2 months ago";
        QTest::newRow("years") << 800LL * 86400 << "2 years ago";
    }
    void age() {
        QFETCH(qlonglong, seconds);
        constexpr std::int64_t kNow = 1'795'964'645;
        QTEST(QString::fromStdString(ageText(kNow - seconds, kNow)), "text");
    }

    void short_isOfDigits() {
        QCOMPARE(shortId("1a2b3c4d-0000-4000-8000-000000000001"), QString("1a2b3c4d"));
        QCOMPARE(shortId(""), QString());
    }
};

QTEST_APPLESS_MAIN(TestSnapshots)
#include "tst_snapshots.moc"

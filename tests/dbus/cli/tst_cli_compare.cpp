// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"
#include "inspect/records.hpp"
#include "inspect/report.hpp"

#include <QJsonArray>
#include <QTest>

#include <memory>

using namespace bulkhead;
using namespace bulkhead::tests;
using namespace bulkhead::diff_stream;

namespace {

constexpr const char* kFirst = "1a2b3c4d-0000-4000-8000-000000000001";
constexpr const char* kSecond = "1a2b3c4d-1000-4000-8000-000000000002";
constexpr const char* kNow = "beef0000-0000-4000-8000-000000000004";

/// What the inspector would say: one file.
QByteArray stream() {
    QByteArray bytes;
    inspect::Report report(
        [&](std::string_view piece) {
            bytes.append(piece.data(), static_cast<qsizetype>(piece.size()));
            return true;
        },
        What::Difference, false);
    report.package("small", "all", "", "1.0");
    report.diskIs(Disk::System, DiskState::Compared);
    inspect::FileState file;
    file.info.st_mode = S_IFREG | 0644;
    file.info.st_size = 5;
    report.entry(Disk::System, "etc/new", nullptr, &file, 0);
    report.diskIs(Disk::Home, DiskState::NotGiven);
    report.end();
    return bytes;
}

} // namespace

/// `snapshot diff` against a double of the daemon and of the inspector in the guest.
class TestCliCompare : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;

    Ended call(const QStringList& arguments) {
        m_cli->start(arguments);
        return m_cli->finish();
    }
    Ended call(const QString& line) { return call(line.split(' ')); }
    /// The inspector writes these bytes and ends so.
    void play(const QByteArray& bytes, std::uint32_t status = 0, const QByteArray& said = {}) {
        m_fake->script = [=](ExecEnds& ends) {
            ends.started();
            ExecEnds::write(ends.output, bytes);
            ExecEnds::write(ends.error, said);
            ends.closeOutputs();
            ends.exited(status);
        };
    }

private slots:
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_cli = std::make_unique<Cli>(m_bus->address());
        m_fake->addDomain("work");
        m_fake->addSnapshot(kFirst, "work", {{"label", "clean"}});
        m_fake->addSnapshot(kSecond, "work");
    }
    void cleanup() {
        m_cli.reset();
        m_fake.reset();
        m_bus.reset();
    }

    void twoSnapshots() {
        QStringList argv;
        QVariantMap options;
        const QByteArray bytes = stream();
        m_fake->script = [&](ExecEnds& ends) {
            argv = ends.argv;
            options = ends.options;
            ends.started();
            for (const char byte : bytes) {
                ExecEnds::write(ends.output, QByteArray(1, byte));
            }
            ends.closeOutputs();
            ends.exited(0);
        };
        const Ended ended = call("snapshot diff work clean 1a2b3c4d1");
        QCOMPARE(ended.err, QByteArray());
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.startsWith("A: snapshot 1a2b3c4d of work, "), ended.out);
        QVERIFY2(ended.out.contains("\nPackages\n  + small 1.0 (all)\n"), ended.out);
        QVERIFY2(ended.out.contains("\nSystem disk\n  + /etc/new  (5 B, 0644, 0:0)\n"), ended.out);
        QCOMPARE(m_fake->inspected, std::pair(QString(kFirst), QString(kSecond)));
        QCOMPARE(argv, QStringList({"/proc/1/exe", "inspect"}));
        QCOMPARE(options, QVariantMap({{"user", "root"}, {"timeout", 7'200'000ULL}}));
    }

    void json_deep() {
        QStringList argv;
        m_fake->script = [&](ExecEnds& ends) {
            argv = ends.argv;
            ends.started();
            ExecEnds::write(ends.output, stream());
            ends.closeOutputs();
            ends.exited(0);
        };
        const Ended ended = call("snapshot diff work clean 1a2b3c4d1 --json --deep");
        QCOMPARE(ended.code, 0);
        QCOMPARE(argv.last(), QString("--deep"));
        const QJsonObject all = QJsonDocument::fromJson(ended.out).object();
        QCOMPARE(all["a"].toString(), QString(kFirst));
        QCOMPARE(all["files"].toArray()[0].toObject()["path"].toString(), QString("/etc/new"));
        QVERIFY(all["complete"].toBool());
    }

    void now_takesASnapshotFirst() {
        m_fake->addSnapshot(kNow, "work", {{"kind", "disk"}});
        FakeJob& job = m_fake->prepareJob();
        job.description["state"] = "succeeded";
        job.description["result"] = QVariantMap{{"snapshot", kNow}};
        play(stream());
        const Ended ended = call("snapshot diff work clean now");
        QCOMPARE(ended.err, QByteArray());
        QVERIFY2(ended.out.contains("\nB: work as it is now\n"), ended.out);
        QCOMPARE(m_fake->domain("work")->lastOptions, QVariantMap({{"disk", true}, {"reason", "diff"}}));
        QCOMPARE(m_fake->inspected.second, QString(kNow));
    }

    void mistakes_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("says");
        QTest::newRow("no domain") << "nope clean now" << 4 << QByteArray("bulkhead: domain nope: ");
        QTest::newRow("no A") << "work dead now" << 4 << QByteArray("bulkhead: snapshot dead: there is no");
        QTest::newRow("no B") << "work clean dead" << 4 << QByteArray("bulkhead: snapshot dead: there is no");
        QTest::newRow("two") << "work clean 1a2b3c4d" << 2 << QByteArray("several snapshots");
    }
    void mistakes() {
        QFETCH(QString, line);
        QFETCH(int, code);
        QFETCH(QByteArray, says);
        const Ended ended = call("snapshot diff " + line);
        QCOMPARE(ended.code, code);
        QVERIFY2(ended.err.contains(says), ended.err);
        QCOMPARE(ended.out, QByteArray());
        QCOMPARE(m_fake->domain("work")->calls, QString());
    }

    void refusedByTheDaemon() {
        m_fake->failNext("org.bulkhead1.Error.InvalidArgument", "they have nothing in common", "Inspect");
        const Ended ended = call("snapshot diff work clean 1a2b3c4d1");
        QCOMPARE(ended.code, 2);
        QCOMPARE(ended.err, QByteArray("bulkhead: cannot compare: they have nothing in common\n"));
    }

    /// A guest that lies, stops or dies: what came is shown, and that it is not all.
    void badGuests_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("status");
        QTest::addColumn<QByteArray>("says");
        const QByteArray good = stream();
        QTest::newRow("cut") << good.chopped(20) << 0 << QByteArray("stopped before it had said everything");
        QTest::newRow("nothing") << QByteArray() << 1 << QByteArray("status 1; it said: no \\x1b[31mdisk");
        QTest::newRow("a failure behind the end") << good << 3 << QByteArray("status 3");
        QTest::newRow("more behind the end") << good + "x" + QByteArray(64, '\0') << 0 << QByteArray("cannot be used");
        QTest::newRow("text") << QByteArray("hello, world") << 0 << QByteArray("cannot be used");
    }
    void badGuests() {
        QFETCH(QByteArray, bytes);
        QFETCH(int, status);
        QFETCH(QByteArray, says);
        play(bytes, static_cast<std::uint32_t>(status), "no \x1b[31mdisk\nand more");
        Ended ended = call("snapshot diff work clean 1a2b3c4d1");
        QCOMPARE(ended.code, 1);
        QVERIFY2(ended.err.contains(says), ended.err);
        QVERIFY2(ended.out.endsWith("\nThis is not all: see the error.\n"), ended.out);
        ended = call("snapshot diff work clean 1a2b3c4d1 --json");
        QCOMPARE(ended.code, 1);
        QCOMPARE(QJsonDocument::fromJson(ended.out).object()["complete"], QJsonValue(false));
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("GuestFailure"));
    }

    void ctrlC_hangsUp() {
        bool wasHungUp = false;
        m_fake->script = [&](ExecEnds& ends) {
            ends.started();
            ExecEnds::write(ends.output, stream().left(40));
            wasHungUp = !ends.request();
        };
        m_cli->start({"snapshot", "diff", "work", "clean", "1a2b3c4d1"});
        QVERIFY(Cli::waitUntil([&] {
            const FakeDomain* const inspector = m_fake->domain("disp1");
            return inspector != nullptr && inspector->calls.contains("Exec");
        }));
        m_cli->signal(SIGINT);
        QCOMPARE(m_cli->finish().code, 130);
        m_fake->players.back().join();
        m_fake->players.pop_back();
        QVERIFY(wasHungUp);
    }
};

QTEST_GUILESS_MAIN(TestCliCompare)
#include "tst_cli_compare.moc"

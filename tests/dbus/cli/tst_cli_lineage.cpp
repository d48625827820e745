// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"

#include <QJsonArray>
#include <QTest>

#include <memory>

using namespace bulkhead::tests;

namespace {

constexpr const char* kFirst = "1a2b3c4d-0000-4000-8000-000000000001";
constexpr const char* kSecond = "1a2b3c4d-1000-4000-8000-000000000002";
constexpr const char* kOther = "cafe0000-0000-4000-8000-000000000003";
constexpr const char* kKept = "beef0000-0000-4000-8000-000000000004";

} // namespace

/// Snapshots, revert, fork and suspend against a double of the daemon.
class TestCliLineage : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;

    Ended call(const QStringList& arguments) {
        m_cli->start(arguments);
        return m_cli->finish();
    }
    Ended call(const QString& line) { return call(line.split(' ')); }
    static QJsonDocument parsed(const Ended& ended) { return QJsonDocument::fromJson(ended.out); }

private slots:
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_cli = std::make_unique<Cli>(m_bus->address());
    }
    void cleanup() {
        m_cli.reset();
        m_fake.reset();
        m_bus.reset();
    }

    void create() {
        FakeDomain& work = m_fake->addDomain("work");
        m_fake->jobResult = {{"snapshot", kFirst}, {"pause-ms", 80ULL}};
        Ended ended = call({"snapshot", "create", "work", "--disk", "--reason", "an update", "--label", "clean base"});
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("Snapshot 1a2b3c4d of work is taken; it stood still for 80 ms.\n"));
        QCOMPARE(work.lastOptions, QVariantMap({{"disk", true}, {"reason", "an update"}, {"label", "clean base"}}));
        ended = call("snapshot create work --json");
        QCOMPARE(work.lastOptions, QVariantMap());
        QCOMPARE(parsed(ended)["id"].toString(), QString(kFirst));
        QCOMPARE(parsed(ended)["pause_ms"].toInt(), 80);
        QCOMPARE(work.calls, QString("Snapshot Snapshot "));
        QCOMPARE(call("snapshot create nope").code, 4);
        m_fake->failNext("org.bulkhead1.Error.NoSpace", "96 % of the disk is full", "Snapshot");
        ended = call("snapshot create work");
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: domain work: 96 % of the disk is full\n"));
    }

    void create_ctrlC_cancels() {
        m_fake->addDomain("work");
        FakeJob& job = m_fake->prepareJob();
        m_cli->start({"snapshot", "create", "work"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        m_cli->signal(SIGINT);
        QCOMPARE(m_cli->finish().code, 130);
        QVERIFY(job.cancelled);
    }

    void listAndShow() {
        QVERIFY(call("snapshot ls").out.startsWith("There are no snapshots yet."));
        QCOMPARE(call("snapshot ls --json").out, QByteArray("[]\n"));
        m_fake->addDomain("work").description["head"] = kFirst;
        m_fake->addDomain("mail");
        QVERIFY(call("snapshot ls work").out.startsWith("Domain work has no snapshots yet."));
        m_fake->addSnapshot(kFirst, "work", {{"pinned", true}});
        m_fake->addSnapshot(kOther, "mail", {{"kind", "disk"}, {"parent", kFirst}});
        m_fake->addSnapshot(kKept, "gone");
        Ended ended = call("snapshot ls");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.contains("pinned, work is here\n"), ended.out);
        QVERIFY2(ended.out.contains("cafe0000") && ended.out.contains("gone (gone)"), ended.out);
        ended = call("snapshot ls mail --json");
        QCOMPARE(parsed(ended).array().size(), 1);
        QCOMPARE(parsed(ended)[0]["parent"].toString(), QString(kFirst));
        QCOMPARE(parsed(call("snapshot ls gone --json")).array().size(), 1);
        QCOMPARE(call("snapshot ls nope").code, 4);
        ended = call("snapshot show 1a2b");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.startsWith(QByteArray("Id:             ") + kFirst + "\n"), ended.out);
        QVERIFY2(ended.out.contains("Followed by:    cafe0000\n"), ended.out);
        QCOMPARE(parsed(call("snapshot show cafe --json"))["kind"].toString(), QString("disk"));
    }

    void ids_data() {
        QTest::addColumn<QString>("id");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("says");
        QTest::newRow("none") << "beef" << 4 << "bulkhead: snapshot beef: there is no snapshot beef\n";
        QTest::newRow("too short") << "1a2" << 2 << "at least 4 digits";
        QTest::newRow("several") << "1a2b3c4d" << 2 << "1a2b3c4d0 of work, 1a2b3c4d1 of work; give these digits";
    }
    void ids() {
        QFETCH(QString, id);
        QFETCH(QString, says);
        m_fake->addDomain("work");
        m_fake->addSnapshot(kFirst, "work");
        m_fake->addSnapshot(kSecond, "work");
        for (const QString& verb : {QString("show %1"), QString("pin %1"), QString("unpin %1"), QString("label %1 x"),
                                    QString("rm %1"), QString("revert work %1")}) {
            const Ended ended = call("snapshot " + verb.arg(id));
            QTEST(ended.code, "code");
            QVERIFY2(ended.err.contains(says.toUtf8()), ended.err);
            QVERIFY(m_fake->lastSnapshot.isEmpty());
        }
    }

    void tree() {
        m_fake->addDomain("work").description["head"] = kFirst;
        m_fake->addSnapshot(kFirst, "work");
        QProcessEnvironment environment = m_cli->process.processEnvironment();
        environment.insert("LC_ALL", "C.UTF-8");
        m_cli->process.setProcessEnvironment(environment);
        Ended ended = call("snapshot tree work");
        QVERIFY2(ended.out.startsWith("work\n● 1a2b3c4d  full  "), ended.out);
        QVERIFY2(ended.out.endsWith("\n◉ you are here (running)\n"), ended.out);
        environment.insert("LC_ALL", "C");
        m_cli->process.setProcessEnvironment(environment);
        ended = call("snapshot tree work");
        QVERIFY2(ended.out.startsWith("work\n* 1a2b3c4d  full  "), ended.out);
        const QJsonDocument json = parsed(call("snapshot tree work --json"));
        QCOMPARE(json["head"].toString(), QString(kFirst));
        QCOMPARE(json["nodes"].toArray().size(), 1);
        QCOMPARE(call("snapshot tree nope").code, 4);
    }

    void revert() {
        m_fake->addDomain("work");
        m_fake->addDomain("mail");
        m_fake->addSnapshot(kFirst, "work");
        m_fake->addSnapshot(kOther, "mail");
        m_fake->jobResult = {{"kept", kKept}, {"running", true}, {"note", "it had to boot"}};
        Ended ended = call("snapshot revert work 1a2b");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.startsWith("Domain work is what it was at snapshot 1a2b3c4d, of 20"), ended.out);
        QVERIFY2(ended.out.endsWith(", and runs.\nWhat was there before is snapshot beef0000.\n"), ended.out);
        QCOMPARE(ended.err, QByteArray("bulkhead: it had to boot\n"));
        QCOMPARE(m_fake->lastSnapshot, QString(kFirst));
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap());

        m_fake->jobResult = {{"kept", ""}, {"running", false}};
        ended = call("snapshot revert work 1a2b --no-keep --disk");
        QVERIFY2(ended.out.endsWith(" Start it: bulkhead domain start work\n"), ended.out);
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap({{"keep", false}, {"disk", true}}));
        const QJsonDocument json = parsed(call("snapshot revert work 1a2b --json"));
        QVERIFY(json["kept"].isNull());
        QCOMPARE(json["snapshot"].toString(), QString(kFirst));

        m_fake->lastSnapshot.clear();
        ended = call("snapshot revert work cafe");
        QCOMPARE(ended.code, 2);
        QVERIFY2(ended.err.contains("not of domain work but of mail"), ended.err);
        QVERIFY2(ended.err.contains("bulkhead snapshot fork cafe0000 NAME"), ended.err);
        QVERIFY(m_fake->lastSnapshot.isEmpty());
    }

    /// The same label in two domains: that of the domain which goes back.
    void labels() {
        m_fake->addDomain("work");
        m_fake->addDomain("mail");
        m_fake->addSnapshot(kFirst, "work", {{"label", "before the update"}});
        m_fake->addSnapshot(kOther, "mail", {{"label", "before the update"}});
        m_fake->addSnapshot(kKept, "mail", {{"label", "clean"}});
        m_fake->jobResult = {{"kept", ""}, {"running", true}};
        QCOMPARE(call(QStringList{"snapshot", "revert", "work", "before the update"}).code, 0);
        QCOMPARE(m_fake->lastSnapshot, QString(kFirst));
        QCOMPARE(call(QStringList{"snapshot", "revert", "mail", "before the update"}).code, 0);
        QCOMPARE(m_fake->lastSnapshot, QString(kOther));
        m_fake->lastSnapshot.clear();
        Ended ended = call(QStringList{"snapshot", "revert", "work", "clean"});
        QCOMPARE(ended.code, 2);
        QVERIFY2(ended.err.contains("not of domain work but of mail"), ended.err);
        ended = call(QStringList{"snapshot", "pin", "before the update"});
        QCOMPARE(ended.code, 2);
        QVERIFY2(ended.err.contains("several snapshots are called before the update"), ended.err);
        QVERIFY(m_fake->lastSnapshot.isEmpty());
        QCOMPARE(call(QStringList{"snapshot", "fork", "clean", "copy"}).code, 0);
        QCOMPARE(m_fake->lastSnapshot, QString(kKept));
    }

    void fork() {
        FakeDomain& work = m_fake->addDomain("work");
        m_fake->addSnapshot(kFirst, "work");
        Ended ended = call("snapshot fork work copy --egress none --label red --disk");
        QCOMPARE(ended.out, QByteArray("Domain copy is created from work as it is now. Start it: bulkhead domain start "
                                       "copy\n"));
        QCOMPARE(work.calls, QString("Fork "));
        QCOMPARE(work.lastOptions, QVariantMap({{"egress", "none"}, {"label", "red"}, {"disk", true}}));
        ended = call("snapshot fork 1a2b3c4d other");
        QCOMPARE(ended.out, QByteArray("Domain other is created from snapshot 1a2b3c4d of work. Start it: bulkhead "
                                       "domain start other\n"));
        QCOMPARE(m_fake->lastSnapshot, QString(kFirst));
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap());
        QCOMPARE(parsed(call("snapshot fork work third --json"))["name"].toString(), QString("third"));
        // A domain that is called like digits is the domain.
        m_fake->lastSnapshot.clear();
        QCOMPARE(m_fake->addDomain("cafe").calls, QString());
        m_fake->addSnapshot(kOther, "work");
        QCOMPARE(call("snapshot fork cafe fourth").code, 0);
        QCOMPARE(m_fake->domain("cafe")->calls, QString("Fork "));
        QVERIFY(m_fake->lastSnapshot.isEmpty());
        ended = call("snapshot fork nope fifth");
        QCOMPARE(ended.code, 4);
        QVERIFY2(
            ended.err.startsWith("bulkhead: domain nope: there is no domain 'nope', and no snapshot is labelled so\n"),
            ended.err);
        QCOMPARE(call("snapshot fork beef fifth").code, 4);
    }

    void pinAndLabel() {
        m_fake->addSnapshot(kFirst, "work");
        QCOMPARE(call("snapshot pin 1a2b").out, QByteArray("Snapshot 1a2b3c4d is pinned.\n"));
        QCOMPARE(m_fake->lastSnapshot, QString(kFirst));
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap({{"pinned", true}}));
        QCOMPARE(call("snapshot unpin 1a2b").out, QByteArray("Snapshot 1a2b3c4d is not pinned.\n"));
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap({{"pinned", false}}));
        QCOMPARE(call({"snapshot", "label", "1a2b", "clean base"}).out,
                 QByteArray("Snapshot 1a2b3c4d is labelled \"clean base\".\n"));
        QCOMPARE(call({"snapshot", "label", "1a2b", ""}).out, QByteArray("Snapshot 1a2b3c4d has no label.\n"));
        QCOMPARE(parsed(call("snapshot pin 1a2b --json"))["pinned"].toBool(), true);
    }

    void remove() {
        m_fake->addSnapshot(kFirst, "work");
        QCOMPARE(call("snapshot rm 1a2b").out, QByteArray("Snapshot 1a2b3c4d is removed.\n"));
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap());
        QCOMPARE(call("snapshot rm 1a2b --cascade").out,
                 QByteArray("Snapshot 1a2b3c4d and all that came from it are removed.\n"));
        QCOMPARE(m_fake->lastSnapshotOptions, QVariantMap({{"cascade", true}}));
        QCOMPARE(parsed(call("snapshot rm 1a2b --json"))["state"].toString(), QString("removed"));
        m_fake->failNext("org.bulkhead1.Error.WrongState", "2 others come from it", "RemoveSnapshot");
        const Ended ended = call("snapshot rm 1a2b");
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: snapshot 1a2b: 2 others come from it\n"));
    }

    void pauseAndUnpause() {
        FakeDomain& work = m_fake->addDomain("work");
        QCOMPARE(call("domain pause work").out, QByteArray("Domain work is paused.\n"));
        QCOMPARE(call("domain unpause work").out, QByteArray("Domain work is running.\n"));
        QCOMPARE(work.calls, QString("Pause Unpause "));
        m_fake->failNext("org.bulkhead1.Error.WrongState", "it is stopped; only what runs can be paused", "Pause");
        QCOMPARE(call("domain pause work").code, 1);
        QCOMPARE(call("domain unpause nope").code, 4);
    }

    void contain() {
        FakeDomain& work = m_fake->addDomain("work");
        work.description["state"] = "paused";
        m_fake->jobResult = {{"evidence", kFirst}, {"last-good", ""}, {"note", ""}};
        Ended ended = call("domain contain work");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.startsWith("Domain work stands still. What it is now is kept as snapshot 1a2b3c4d.\n"),
                 ended.out);
        QVERIFY2(!ended.out.contains("snapshot revert"), ended.out); // there is nothing to go back to
        QVERIFY2(ended.out.contains("bulkhead snapshot fork 1a2b3c4d NAME"), ended.out);
        QVERIFY2(ended.out.contains("bulkhead domain unpause work"), ended.out);

        m_fake->jobResult = {{"evidence", kFirst}, {"last-good", kSecond}, {"note", "odd\x1b"}};
        ended = call("domain contain work --no-diff");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.contains("bulkhead snapshot revert work "), ended.out);
        QVERIFY2(ended.out.contains("--deep"), ended.out);
        QVERIFY2(ended.out.contains("Note: odd") && !ended.out.contains('\x1b'), ended.out);
        const auto json = parsed(call("domain contain work --json"));
        QCOMPARE(json["evidence"].toString(), QString(kFirst));
        QCOMPARE(json["last_good"].toString(), QString(kSecond));
        QCOMPARE(json["state"].toString(), QString("paused"));

        // A comparison that fails is no failure of what was asked for.
        m_fake->failNext("org.bulkhead1.Error.WrongState", "no template", "Inspect");
        m_fake->addSnapshot(kFirst, "work");
        m_fake->addSnapshot(kSecond, "work");
        ended = call("domain contain work");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.err.contains("no template"), ended.err);
        QVERIFY2(ended.out.contains("It is contained; only the comparison failed."), ended.out);

        m_fake->jobResult = {};
        m_fake->failNext("org.bulkhead1.Error.NoSpace", "domain \"work\" is paused, but", "Contain");
        QCOMPARE(call("domain contain work").code, 1);
        QCOMPARE(call("domain contain nope").code, 4);
    }

    void suspendAndResume() {
        FakeDomain& work = m_fake->addDomain("work");
        QCOMPARE(call("domain suspend work").out, QByteArray("Domain work is suspended.\n"));
        work.description["state"] = "suspended";
        work.description["suspended"] = true;
        work.description["head"] = kFirst;
        Ended ended = call("domain show work");
        QVERIFY2(ended.out.contains("suspended (its next start goes on where it was)\n"), ended.out);
        QVERIFY2(ended.out.contains("snapshot 1a2b3c4d\n"), ended.out);
        QCOMPARE(parsed(call("domain show work --json"))["head"].toString(), QString(kFirst));
        QCOMPARE(call("domain resume work").out, QByteArray("Domain work is running.\n"));
        QCOMPARE(work.calls, QString("Suspend Start "));

        work.description["suspended"] = false;
        work.description["state"] = "stopped";
        ended = call("domain resume work");
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: domain work: it is stopped, not suspended; to boot it: bulkhead "
                                       "domain start work\n"));
        work.description["state"] = "running";
        work.description["started-at"] = 1795964645LL;
        QCOMPARE(call("domain resume work --json").json()["error"].toObject()["message"].toString(),
                 QString("it is running, not suspended"));
        QCOMPARE(call("domain suspend nope").code, 4);
        QCOMPARE(call("domain resume nope").code, 4);
        QCOMPARE(work.calls, QString("Suspend Start "));
    }

    void discard() {
        FakeDomain& work = m_fake->addDomain("work");
        work.description["state"] = "suspended"; // what the daemon makes of it
        QCOMPARE(call("domain stop work --discard").out,
                 QByteArray("Domain work is suspended, and again what it was at its last snapshot.\n"));
        QCOMPARE(work.lastOptions, QVariantMap({{"discard", true}}));
        QCOMPARE(parsed(call("domain stop work --discard --json"))["state"].toString(), QString("suspended"));
        m_fake->failNext("org.bulkhead1.Error.WrongState", "it has no snapshot", "Stop");
        const Ended ended = call("domain stop work --discard");
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: domain work: it has no snapshot\n"));
    }
};

QTEST_GUILESS_MAIN(TestCliLineage)
#include "tst_cli_lineage.moc"

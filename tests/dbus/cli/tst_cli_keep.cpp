// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"

#include <QTest>

#include <memory>

using namespace bulkhead::tests;
using bulkhead::exec_stream::ClientEventKind;

namespace {

const QString kNode = "1a2b3c4d-0000-4000-8000-000000000001";

/// A program that ends with this.
ExecScript exits(std::uint32_t status) {
    return [status](ExecEnds& ends) {
        ends.started();
        ends.closeOutputs();
        ends.exited(status);
    };
}

} // namespace

/// `run --from`, `run --keep` and `resume` against a double of the daemon.
class TestCliKeep : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;

    Ended call(const QStringList& arguments) {
        m_cli = std::make_unique<Cli>(m_bus->address());
        m_cli->start(arguments);
        return m_cli->finish();
    }
    /// What the daemon starts for run --keep.
    FakeDomain& addKept() {
        FakeDomain& domain = m_fake->addDomain("disp1", "disposable");
        domain.description["kept"] = true;
        return domain;
    }
    FakeDomain& addSuspended(const QString& name, bool isKept) {
        FakeDomain& domain = m_fake->addDomain(name, isKept ? "disposable" : "app");
        domain.description["kept"] = isKept;
        domain.description["state"] = "suspended";
        domain.description["suspended"] = true;
        domain.description["head"] = kNode;
        return domain;
    }

private slots:
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_fake->script = exits(0);
    }
    void cleanup() {
        m_cli.reset();
        m_fake.reset();
        m_bus.reset();
    }

    // ---- run --from -------------------------------------------------------------------------------------------------

    void from_reachesTheDaemon() {
        m_fake->addDomain("work");
        m_fake->addSnapshot(kNode, "work");
        m_fake->script = exits(4);
        QCOMPARE(call({"run", "--from", "1a2b", "--", "x"}).code, 4);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"from", kNode}}));
        QCOMPARE(m_fake->domain("disp1")->calls, QString("Exec "));
        QCOMPARE(call({"run", "--from", kNode, "--disk", "x"}).code, 4);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"from", kNode}, {"disk", true}}));
    }

    void from_whatIsNone_data() {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QByteArray>("says");
        QTest::newRow("unknown") << "ffff"
                                 << "NotFound" << QByteArray("--from: ");
        QTest::newRow("a domain") << "work"
                                  << "InvalidArgument" << QByteArray("bulkhead snapshot create work");
        QTest::newRow("too short") << "1a"
                                   << "InvalidArgument" << QByteArray("--from: ");
    }
    void from_whatIsNone() {
        QFETCH(QString, from);
        QFETCH(QString, code);
        QFETCH(QByteArray, says);
        m_fake->addDomain("work");
        m_fake->addSnapshot(kNode, "work");
        const Ended ended = call({"run", "--from", from, "--", "x"});
        QCOMPARE(ended.code, 125);
        QVERIFY2(ended.err.contains(says), ended.err);
        QCOMPARE(call({"run", "--json", "--from", from, "--", "x"}).json()["error"].toObject()["code"].toString(),
                 code);
        QVERIFY(m_fake->domain("disp1") == nullptr);
    }

    // ---- run --keep -------------------------------------------------------------------------------------------------

    void keep_suspendsAfterTheCommand() {
        FakeDomain& domain = addKept();
        m_fake->script = exits(7);
        const Ended ended = call({"run", "--keep", "--", "x"});
        QCOMPARE(ended.code, 7);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"keep", true}}));
        QCOMPARE(domain.calls, QString("Exec Suspend "));
        QCOMPARE(ended.err, QByteArray("bulkhead: disp1 is suspended as it is now\n"
                                       "  go on: bulkhead resume disp1; throw it away: bulkhead domain rm disp1\n"));
    }

    void keep_forPrograms() {
        addKept();
        m_fake->script = exits(7);
        const QJsonObject json = call({"run", "--keep", "--json", "--", "x"}).json();
        QCOMPARE(json["exit_code"].toInt(), 7);
        QCOMPARE(json["domain"].toString(), QString("disp1"));
        QCOMPARE(json["kept"].toObject(), QJsonObject({{"domain", "disp1"}, {"suspended", true}}));
        QVERIFY(!json.contains("error"));
    }

    void keep_whoseSuspensionFails() {
        FakeDomain& domain = addKept();
        m_fake->script = exits(7);
        m_fake->failNext("org.bulkhead1.Error.NoSpace", "the disk is full", "Suspend");
        Ended ended = call({"run", "--keep", "--", "x"});
        QCOMPARE(ended.code, 7);
        QVERIFY2(ended.err.contains("disp1 is not suspended: the disk is full; domain disp1 is running"), ended.err);
        QVERIFY2(ended.err.contains("bulkhead domain suspend disp1"), ended.err);
        QCOMPARE(domain.calls, QString("Exec Suspend "));
        m_fake->failNext("org.bulkhead1.Error.NoSpace", "the disk is full", "Suspend");
        const QJsonObject kept = call({"run", "--keep", "--json", "--", "x"}).json()["kept"].toObject();
        QCOMPARE(kept["suspended"].toBool(true), false);
        QCOMPARE(kept["error"].toObject()["code"].toString(), QString("NoSpace"));
    }

    void keep_ofACommandThatIsLeft_isLeftToTheDaemon() {
        FakeDomain& domain = addKept();
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "ready");
            for (int i = 1; ends.request(); ++i) { // ignores them; ends when control is closed
                ends.write(ends.output, "got" + QByteArray::number(i));
            }
        };
        m_cli = std::make_unique<Cli>(m_bus->address());
        m_cli->start({"run", "--keep", "trap"});
        QVERIFY(m_cli->waitForOutput("ready"));
        m_cli->signal(SIGINT);
        QVERIFY(m_cli->waitForOutput("got1"));
        m_cli->signal(SIGINT);
        QVERIFY(m_cli->waitForOutput("got2"));
        m_cli->signal(SIGINT);
        const Ended ended = m_cli->wait();
        QCOMPARE(ended.code, 130);
        QVERIFY2(ended.err.contains("disp1 is suspended as soon as nothing runs in it any more") &&
                     ended.err.contains("bulkhead resume disp1"),
                 ended.err);
        QCOMPARE(domain.calls, QString("Exec "));
    }

    void keep_whereNothingWasRun_keepsNothing() {
        FakeDomain& domain = addKept();
        m_fake->failNext("org.bulkhead1.Error.InvalidArgument", "no", "Exec");
        const Ended ended = call({"run", "--keep", "--", "x"});
        QCOMPARE(ended.code, 125);
        QCOMPARE(ended.err, QByteArray("bulkhead: no\n"));
        QCOMPARE(domain.calls, QString("Exec "));
    }

    void keep_interruptedWhileSuspending() {
        addKept();
        m_fake->script = [](ExecEnds& ends) {
            ends.write(ends.output, "ready");
            while (!ends.read().isEmpty()) {
            }
            ends.closeOutputs();
            ends.exited(0);
        };
        m_cli = std::make_unique<Cli>(m_bus->address());
        m_cli->start({"run", "--keep", "x"});
        QVERIFY(m_cli->waitForOutput("ready"));
        FakeJob& suspension = m_fake->prepareJob();
        m_cli->process.closeWriteChannel();
        QVERIFY(Cli::waitUntil([&] { return suspension.asked > 0; }));
        m_cli->signal(SIGINT);
        const Ended ended = m_cli->wait();
        QCOMPARE(ended.code, 0); // the command's
        QVERIFY(suspension.cancelled);
        QVERIFY2(ended.err.contains("as soon as nothing runs in it"), ended.err);
    }

    void keep_withADaemonThatCannot() {
        m_fake->addDomain("disp1", "disposable");
        const Ended ended = call({"run", "--keep", "--json", "--", "x"});
        QCOMPARE(ended.code, 125);
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("VersionMismatch"));
        QCOMPARE(m_fake->domain("disp1")->calls, QString());
    }

    // ---- resume -----------------------------------------------------------------------------------------------------

    void resume_withACommand_suspendsAgain() {
        FakeDomain& domain = addSuspended("disp-1", true);
        m_fake->script = exits(3);
        auto ended = call({"resume", "disp-1", "--", "x"});
        QCOMPARE(ended.code, 3);
        QCOMPARE(domain.calls, QString("Start Exec Suspend "));
        QCOMPARE(ended.err, QByteArray("bulkhead: disp-1 is suspended as it is now\n"
                                       "  go on: bulkhead resume disp-1; throw it away: bulkhead domain rm disp-1\n"));
        // One that is no disposable is not to be thrown away.
        addSuspended("work", false);
        ended = call({"resume", "work", "--user", "root", "x"});
        QCOMPARE(ended.code, 3);
        QCOMPARE(ended.err, QByteArray("bulkhead: work is suspended as it is now\n  go on: bulkhead resume work\n"));
    }

    void resume_withoutACommand_leavesItRunning() {
        FakeDomain& domain = addSuspended("disp-1", true);
        const Ended ended = call({"resume", "disp-1"});
        QCOMPARE(ended.code, 0);
        QCOMPARE(domain.calls, QString("Start "));
        QCOMPARE(ended.out, QByteArray("Domain disp-1 goes on where it was. Run something in it: bulkhead run --domain "
                                       "disp-1 -- COMMAND\nSuspend it again: bulkhead domain suspend disp-1\n"));
        const auto json = QJsonDocument::fromJson(call({"resume", "disp-1", "--json"}).out).object();
        QCOMPARE(json, QJsonObject({{"name", "disp-1"}, {"state", "running"}}));
    }

    void resume_refused_data() {
        QTest::addColumn<QString>("state");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QByteArray>("says");
        QTest::newRow("no such run") << ""
                                     << "NotFound" << QByteArray("domain disp-1: there is no domain");
        QTest::newRow("stopped") << "stopped"
                                 << "WrongState" << QByteArray("no full snapshot");
        QTest::newRow("running") << "running"
                                 << "WrongState" << QByteArray("bulkhead run --domain disp-1");
    }
    void resume_refused() {
        QFETCH(QString, state);
        QFETCH(QString, code);
        QFETCH(QByteArray, says);
        if (!state.isEmpty()) {
            FakeDomain& domain = m_fake->addDomain("disp-1");
            domain.description["state"] = state;
            if (state == "running") {
                domain.description["started-at"] = 1795964645LL;
            }
        }
        const Ended ended = call({"resume", "disp-1", "--", "x"});
        QCOMPARE(ended.code, 125);
        QVERIFY2(ended.err.contains(says), ended.err);
        const Ended forPrograms = call({"resume", "--json", "disp-1"});
        QCOMPARE(forPrograms.code, 125);
        QCOMPARE(forPrograms.json()["error"].toObject()["code"].toString(), code);
    }

    void resume_whoseStartFails() {
        FakeDomain& domain = addSuspended("disp-1", true);
        m_fake->failNext("org.bulkhead1.Error.LimitExceeded", "no memory", "Start");
        const Ended ended = call({"resume", "disp-1", "--", "x"});
        QCOMPARE(ended.code, 125);
        QCOMPARE(domain.calls, QString("Start "));
    }

    void list_saysWhichAreKept() {
        addSuspended("disp-1", true);
        const Ended ended = call({"domain", "ls"});
        QVERIFY2(ended.out.contains("suspended") && ended.out.contains("disposable (kept)"), ended.out);
    }
};

QTEST_GUILESS_MAIN(TestCliKeep)
#include "tst_cli_keep.moc"

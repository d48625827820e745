// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"

#include <QDBusArgument>
#include <QJsonArray>
#include <QTest>

#include <memory>

using namespace bulkhead::tests;
using bulkhead::client::VariantMapList;

/// Every verb but run against a double of the daemon.
class TestCliVerbs : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;

    Ended call(const QString& line) {
        m_cli->start(line.split(' '));
        return m_cli->finish();
    }
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

    void domain_createListShow() {
        Ended ended = call("domain ls");
        QCOMPARE(ended.code, 0);
        QVERIFY(ended.out.contains("bulkhead domain create NAME"));
        QCOMPARE(call("domain ls --json").out, QByteArray("[]\n"));

        ended = call("domain create work --template minimal --size small --tag a --home-size 2GiB");
        QCOMPARE(ended.code, 0);
        QVERIFY(ended.out.startsWith("Domain work is created."));
        QCOMPARE(m_fake->lastManagerOptions,
                 QVariantMap(
                     {{"template", "minimal"}, {"size", "small"}, {"tags", QStringList{"a"}}, {"home-size", "2GiB"}}));

        ended = call("domain ls --all");
        QVERIFY2(ended.out.contains("work  running  minimal"), ended.out);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"all", true}}));
        QCOMPARE(parsed(call("domain ls --json"))[0]["name"].toString(), QString("work"));
        QVERIFY(call("domain show work").out.contains("Template:  minimal\n"));
        QCOMPARE(parsed(call("domain show work --json"))["memory"].toInteger(), 536870912);
        QCOMPARE(parsed(call("domain create vault --json"))["name"].toString(), QString("vault"));
    }

    void domain_change() {
        FakeDomain& work = m_fake->addDomain("work");
        QCOMPARE(call("domain start work").out, QByteArray("Domain work is running.\n"));
        QCOMPARE(call("domain stop work --grace 5s").out, QByteArray("Domain work is stopped.\n"));
        QCOMPARE(work.lastOptions, QVariantMap({{"grace", 5000ULL}}));
        QCOMPARE(parsed(call("domain stop work --force --json"))["state"].toString(), QString("stopped"));
        QCOMPARE(work.lastOptions, QVariantMap({{"force", true}}));
        QCOMPARE(call("domain rm work --force").out, QByteArray("Domain work is removed.\n"));
        QCOMPARE(work.calls, QString("Start Stop Stop Remove "));
    }

    void domain_restore() {
        m_fake->deleted = {{{"id", "6f1c2a3b-0000-4000-8000-000000000001"},
                            {"name", "work"},
                            {"owner", 1000U},
                            {"deleted-at", qlonglong{1000}},
                            {"goes-at", qlonglong{604'800'000'000}},
                            {"size-on-disk", qulonglong{3'145'728}}}};
        const Ended ended = call("domain ls --deleted");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.contains("work  6f1c2a3b") && ended.out.contains("3 MiB"), ended.out);
        QCOMPARE(parsed(call("domain ls --deleted --json"))[0]["size_on_disk"].toInteger(), 3'145'728);

        m_fake->addDomain("other");
        const Ended restored = call("domain restore work --as other");
        QVERIFY2(restored.out.startsWith("Domain other is back"), restored.out + restored.err);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"as", "other"}}));
        QCOMPARE(call("domain rm gone --now").out, QByteArray("Domain gone is removed for good.\n"));
        QCOMPARE(m_fake->purged, QString("gone"));
        FakeDomain& work = m_fake->addDomain("work");
        const Ended doubtful = call("domain rm work --now");
        QCOMPARE(doubtful.code, 2);
        QVERIFY2(doubtful.err.contains("bulkhead domain rm --now 6f1c2a3b"), doubtful.err);
        QCOMPARE(work.calls, QString());
        const auto kept = std::exchange(m_fake->deleted, {});
        QCOMPARE(call("domain rm work --now").out, QByteArray("Domain work is removed.\n"));
        QCOMPARE(work.lastOptions, QVariantMap({{"now", true}}));
        m_fake->deleted = kept;
        m_fake->deleted.front()["deleted-at"] = qlonglong{604'799'999'000 - 7LL * 24 * 3600};
        m_fake->deleted.front()["goes-at"] = qlonglong{604'799'999'000};
        QCOMPARE(
            call("domain rm work").out,
            QByteArray("Domain work is removed.\nFor 7 days it can be brought back: bulkhead domain restore work\n"));
    }

    void domain_set() {
        FakeDomain& work = m_fake->addDomain("work");
        QCOMPARE(call("domain set work label=red tags=a,b").out, QByteArray("Domain work is changed.\n"));
        QCOMPARE(work.lastChanges, QVariantMap({{"label", "red"}, {"tags", "a,b"}}));
        QCOMPARE(call("domain set work size=large").out,
                 QByteArray("Domain work is changed; its size large takes effect at the next start.\n"));
        QCOMPARE(
            call("domain set work audio=out").out,
            QByteArray("Domain work is changed; its size large and its sound out take effect at the next start.\n"));
        const QJsonDocument json = parsed(call("domain set work tags= --json"));
        QCOMPARE(work.lastChanges, QVariantMap({{"tags", ""}}));
        QCOMPARE(json["restart_needed"].toBool(), true);
        QCOMPARE(json["next_size"].toString(), QString("large"));
        QVERIFY(call("domain show work").out.contains("small (512 MiB, 2 CPUs), large from the next start on\n"));
    }

    void domain_set_refused() {
        m_fake->addDomain("work");
        m_fake->failNext("org.bulkhead1.Error.InvalidArgument", "label: there is no label \"pink\"; there are: red",
                         "SetDefinition");
        const Ended ended = call("domain set work label=pink");
        QCOMPARE(ended.code, 2);
        QVERIFY2(ended.err.startsWith("bulkhead: domain work: label: there is no label \"pink\""), ended.err);
        QCOMPARE(call("domain set nope label=red").code, 4);
    }

    void failures_data() {
        QTest::addColumn<QString>("error");
        QTest::addColumn<int>("code");
        QTest::newRow("NotFound") << "org.bulkhead1.Error.NotFound" << 4;
        QTest::newRow("NotAuthorized") << "org.bulkhead1.Error.NotAuthorized" << 5;
        QTest::newRow("InvalidArgument") << "org.bulkhead1.Error.InvalidArgument" << 2;
        QTest::newRow("AlreadyExists") << "org.bulkhead1.Error.AlreadyExists" << 1;
        QTest::newRow("something of the bus") << "org.freedesktop.DBus.Error.Failed" << 1;
    }
    void failures() {
        QFETCH(QString, error);
        m_fake->failNext(error, "the reason");
        Ended ended = call("domain create work");
        QTEST(ended.code, "code");
        QVERIFY2(ended.err.startsWith("bulkhead: cannot create domain work: the reason\n"), ended.err);
        QCOMPARE(ended.out, QByteArray());
        m_fake->failNext(error, "the reason");
        ended = call("template build minimal --json");
        QTEST(ended.code, "code");
        QCOMPARE(ended.json()["error"].toObject()["message"].toString(), QString("the reason"));
    }

    void unknownThings_are4() {
        const Ended ended = call("domain show nope");
        QCOMPARE(ended.code, 4);
        QCOMPARE(ended.err,
                 QByteArray("bulkhead: domain nope: there is no domain 'nope'\n  see: bulkhead domain ls\n"));
        QCOMPARE(call("domain stop nope").code, 4);
        QCOMPARE(call("template show nope").code, 4);
    }

    void job_thatFails_saysWhy() {
        m_fake->addDomain("work");
        FakeJob& job = m_fake->prepareJob();
        m_cli->start({"domain", "start", "work"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        job.description["error"] = "org.bulkhead1.Error.NoSpace";
        job.description["message"] = "the disk is full";
        job.finish("failed");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: domain work: the disk is full\n"));
    }

    void job_thatSucceedsOtherwiseThanExpected_saysHow() {
        m_fake->addDomain("work");
        FakeJob& job = m_fake->prepareJob();
        m_cli->start({"domain", "start", "work"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        job.description["result"] = QVariantMap{{"warm", false}, {"note", "it did not start from its image"}};
        job.finish("succeeded");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("Domain work is running.\n"));
        QCOMPARE(ended.err, QByteArray("bulkhead: it did not start from its image\n"));
    }

    void template_listShow() {
        QVariantMap minimal{{"name", "minimal"}, {"description", "Headless"}, {"built", true},
                            {"version", "abc"},  {"size-on-disk", 1024ULL},   {"packages", QStringList{"apt", "git"}}};
        m_fake->templates = {minimal};
        QVERIFY(call("template ls").out.contains("minimal  built  abc"));
        QCOMPARE(parsed(call("template ls --json"))[0]["version"].toString(), QString("abc"));
        QCOMPARE(call("template show minimal --packages").out, QByteArray("apt\ngit\n"));
        QVERIFY(call("template show minimal").out.contains("Description:  Headless\n"));
    }

    void template_build_showsPhases() {
        FakeJob& job = m_fake->prepareJob();
        job.description["phase"] = "installing packages";
        m_cli->start({"template", "build", "minimal", "--force"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        job.description["phase"] = "making the disk";
        const int before = job.asked;
        emit job.Progress(0.5);
        QVERIFY(Cli::waitUntil([&] { return job.asked > before; }));
        job.description["result"] = QVariantMap{{"version", "abc"}, {"built", true}};
        job.finish("succeeded");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("Template minimal is built: version abc.\n"));
        QCOMPARE(ended.err, QByteArray("Building minimal: installing packages\nBuilding minimal: making the disk\n"));
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"force", true}}));
    }

    void template_build_upToDate() {
        m_fake->jobResult = {{"version", "abc"}, {"built", false}};
        QVERIFY(call("template build minimal").out.startsWith("Template minimal is up to date: version abc."));
        QCOMPARE(parsed(call("template build minimal --json"))["built"].toBool(true), false);
    }

    void template_warm() {
        m_fake->jobResult = {{"size", "small"}, {"made", true}};
        const Ended ended = call("template warm minimal --size small --force");
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("Template minimal, size small: its domains start from a warm image now.\n"));
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"force", true}, {"size", "small"}}));
        m_fake->jobResult = {{"size", "small"}, {"made", false}};
        QCOMPARE(call("template warm minimal").out,
                 QByteArray("Template minimal, size small: there is a warm image. (--force makes another.)\n"));
        QCOMPARE(parsed(call("template warm minimal --json"))["made"].toBool(true), false);
        QCOMPARE(call("template warm").code, 2);
    }

    void template_install() {
        m_fake->jobResult = {{"version", "abc"}, {"built", true}};
        Ended ended = call("template install minimal sl hello");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.startsWith("Template minimal has sl, hello now: version abc.\n"), ended.out);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"packages", QStringList{"sl", "hello"}}}));
        m_fake->jobResult = {{"version", "abc"}, {"built", false}};
        QCOMPARE(call("template install minimal sl").out,
                 QByteArray("Template minimal has sl already: version abc.\n"));
        QCOMPARE(parsed(call("template install minimal sl --json"))["built"].toBool(true), false);
        QCOMPARE(call("template install minimal").code, 2);
    }

    void template_update() {
        m_fake->jobResult = {{"version", "abc"}, {"built", true}};
        Ended ended = call("template update minimal");
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.startsWith("Template minimal is updated: version abc.\n"), ended.out);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"update", true}}));
        m_fake->jobResult = {{"version", "abc"}, {"built", false}};
        QCOMPARE(call("template update minimal").out, QByteArray("Template minimal is up to date: version abc.\n"));
        QCOMPARE(parsed(call("template update minimal --json"))["version"].toString(), QString("abc"));
        ended = call("template update");
        QCOMPARE(ended.code, 2);
        QVERIFY2(ended.err.contains("--all"), ended.err);
        QCOMPARE(call("template update minimal --all").code, 2);
    }

    void template_updateAll_goesOnAfterAFailure() {
        QVERIFY(call("template update --all").out.contains("No template is built"));
        m_fake->templates = {QVariantMap{{"name", "minimal"}, {"built", true}},
                             QVariantMap{{"name", "unbuilt"}, {"built", false}},
                             QVariantMap{{"name", "desktop"}, {"built", true}}};
        m_fake->jobResult = {{"version", "abc"}, {"built", false}};
        QCOMPARE(call("template update --all").out, QByteArray("Template desktop is up to date: version abc.\n"
                                                               "Template minimal is up to date: version abc.\n"));
        m_fake->failNext("org.bulkhead1.Error.NoSpace", "the disk is full", "BuildTemplate");
        Ended ended = call("template update --all");
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: template desktop: the disk is full\n"));
        QCOMPARE(ended.out, QByteArray("Template minimal is up to date: version abc.\n"));
        m_fake->failNext("org.bulkhead1.Error.NoSpace", "the disk is full", "BuildTemplate");
        const auto json = parsed(call("template update --all --json"));
        QCOMPARE(json[0]["error"]["code"].toString(), QString("NoSpace"));
        QCOMPARE(json[1]["name"].toString(), QString("minimal"));
    }

    void domain_thatCouldBeRestarted_saysSo() {
        m_fake->addDomain("work").description["update-available"] = true;
        QVERIFY(call("domain ls").out.contains("work  running (restart to update)  "));
        QVERIFY(call("domain show work").out.contains("running (restart to update)\n"));
        QCOMPARE(parsed(call("domain ls --json"))[0]["update_available"].toBool(), true);
    }

    void template_build_ctrlC_cancels() {
        FakeJob& job = m_fake->prepareJob();
        m_cli->start({"template", "build", "minimal"});
        QVERIFY(Cli::waitUntil([&] { return job.asked > 0; }));
        m_cli->signal(SIGINT);
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 130);
        QVERIFY(job.cancelled);
        QVERIFY2(ended.err.contains("cancelled, nothing is left of it"), ended.err);
    }

    void doctor() {
        const VariantMapList findings{
            {{"check", "disk"}, {"status", "warning"}, {"text", "nearly full"}, {"fix", "remove something"}}};
        m_fake->jobResult = {{"findings", QVariant::fromValue(findings)}};
        Ended ended = call("doctor --refresh");
        QCOMPARE(ended.code, 0);
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"refresh", true}}));
        QVERIFY2(ended.out.endsWith("ok       daemon: bulkheadd 0.1.0 answers\nwarning  disk: nearly full\n"
                                    "         fix: remove something\n\n0 problems, 1 warning, 2 ok\n"),
                 ended.out);
        m_fake->managerDescription["version"] = "9.9";
        ended = call("doctor --json");
        QCOMPARE(parsed(ended)["warnings"].toInt(), 2);
        m_fake->jobResult["findings"] = QVariant::fromValue(VariantMapList{{{"check", "x"}, {"status", "problem"}}});
        QCOMPARE(call("doctor").code, 1);
        m_fake->jobResult["findings"] = "of another type";
        QCOMPARE(call("doctor").code, 1);
    }

    void doctor_withoutDaemon_isUsefulStill() {
        m_fake->vanish();
        Ended ended = call("doctor");
        QCOMPARE(ended.code, 1);
        QVERIFY2(ended.out.contains("problem  daemon: bulkheadd is not running\n         fix: start it:"), ended.out);
        m_bus.reset();
        ended = call("doctor --json");
        QCOMPARE(ended.code, 1);
        QCOMPARE(parsed(ended)["findings"][0]["check"].toString(), QString("message bus"));
        QCOMPARE(parsed(ended)["problems"].toInt(), 1);
    }

    void output_thatCannotBeWritten_isAFailure() {
        m_cli->startShell("$BULKHEAD domain ls > /dev/full");
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 1);
        QVERIFY(ended.err.contains("No space left on device"));
    }
};

QTEST_GUILESS_MAIN(TestCliVerbs)
#include "tst_cli_verbs.moc"

// SPDX-License-Identifier: Apache-2.0
#include "cli_fixture.hpp"

#include "dbus/interfaces/session_stream.hpp"

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sys/socket.h>

using namespace bulkhead::tests;
using namespace bulkhead::session_stream;

namespace {

template <std::size_t size> void set(std::array<char, size>& field, const QByteArray& text) {
    std::copy_n(text.constData(), std::min<std::size_t>(static_cast<std::size_t>(text.size()), size - 1),
                field.begin());
}

Event app(const char* id, const char* name, const char* categories = "") {
    Event event;
    event.kind = EventKind::App;
    set(event.name, id);
    set(event.text, name);
    set(event.extra, categories);
    return event;
}

Event record(EventKind kind, std::uint32_t a = 0, std::uint32_t b = 0) {
    Event event;
    event.kind = kind;
    event.a = a;
    event.b = b;
    return event;
}

} // namespace

/// The verbs that talk to a domain's session, which the test plays: what is asked of it, and what becomes of its
/// answers.
class TestCliApps : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<Cli> m_cli;
    std::unique_ptr<QTemporaryDir> m_data;
    FakeDomain* m_work = nullptr;

    [[nodiscard]] int stream() const { return m_work->sessions.back().get(); }
    void tell(const Event& event) const {
        QCOMPARE(::send(stream(), &event, sizeof event, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof event));
    }
    [[nodiscard]] std::optional<Command> asked() const {
        Command command;
        ssize_t size = -1;
        Cli::waitUntil([&] {
            size = ::recv(stream(), &command, sizeof command, MSG_DONTWAIT);
            return size >= 0 || errno != EAGAIN;
        });
        return size == static_cast<ssize_t>(sizeof command) ? std::optional(command) : std::nullopt;
    }
    /// Begins `line` and goes on as far as the session that is up.
    void begin(const QString& line) {
        m_work->sessions.clear();
        m_cli->start(line.split(' '));
        QVERIFY(Cli::waitUntil(
            [&] { return !m_work->sessions.empty() || m_cli->process.state() == QProcess::NotRunning; }));
        QVERIFY(!m_work->sessions.empty());
        tell(record(EventKind::SessionUp, 0, 0)); // not yet
        tell(record(EventKind::SessionUp, 8, 1));
    }
    Ended withApps(const QString& line, const std::vector<Event>& apps) {
        begin(line);
        const auto command = asked();
        if (!command || command->kind != CommandKind::ListApps) {
            return {-98, {}, "it did not ask for apps"};
        }
        for (const Event& event : apps) {
            tell(event);
        }
        tell(record(EventKind::AppsListed, static_cast<std::uint32_t>(apps.size())));
        return m_cli->finish();
    }
    Ended call(const QString& line) {
        m_cli->start(line.split(' '));
        return m_cli->finish();
    }
    [[nodiscard]] QStringList entries() const {
        return QDir(m_data->filePath("applications")).entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
    }
    [[nodiscard]] QByteArray entry(const QString& name) const {
        QFile file(m_data->filePath("applications/" + name));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray("unreadable");
    }

private slots:
    void initTestCase() {
        qunsetenv("LC_ALL");
        qputenv("LANG", "de_DE.UTF-8");
    }
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_cli = std::make_unique<Cli>(m_bus->address());
        m_data = std::make_unique<QTemporaryDir>();
        QProcessEnvironment environment = m_cli->process.processEnvironment();
        environment.insert("XDG_DATA_HOME", m_data->path());
        environment.remove("DISPLAY");
        environment.remove("WAYLAND_DISPLAY");
        m_cli->process.setProcessEnvironment(environment);
        m_work = &m_fake->addDomain("work");
    }
    void cleanup() {
        m_cli.reset();
        m_fake.reset();
        m_bus.reset();
    }

    void apps() {
        Ended ended = withApps("domain apps work", {app("z", "Zoom", "Video;"), app("ed", "Editor\x1b[31m")});
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("APP  NAME            CATEGORIES\n"
                                       "ed   Editor\\x1b[31m  -\n"
                                       "z    Zoom            Video;\n"));
        QCOMPARE(m_work->calls, QString("Start OpenSession "));
        ended = withApps("domain apps work --json", {app("z", "Zoom", "Video;")});
        QCOMPARE(QJsonDocument::fromJson(ended.out)[0].toObject(),
                 QJsonObject({{"id", "z"}, {"name", "Zoom"}, {"categories", "Video;"}}));
    }

    void apps_ofASessionThatEnds() {
        begin("domain apps work");
        QVERIFY(asked());
        tell(record(EventKind::Refused, static_cast<std::uint32_t>(CommandKind::ListApps)));
        Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.err, QByteArray("bulkhead: domain work: its desktop session ended meanwhile\n"));

        begin("domain apps work --json");
        m_work->sessions.clear();
        ended = m_cli->finish();
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("GuestFailure"));
    }

    void launch_data() {
        QTest::addColumn<int>("error");
        QTest::addColumn<int>("code");
        QTest::addColumn<QByteArray>("out");
        QTest::addColumn<QByteArray>("err");
        QTest::newRow("started") << 0 << 0 << QByteArray("Started ed in work.\n") << QByteArray();
        QTest::newRow("unknown") << ENOENT << 4 << QByteArray() << QByteArray("bulkhead domain apps work");
        QTest::newRow("fails") << EACCES << 1 << QByteArray() << QByteArray("did not start: Permission denied");
    }
    void launch() {
        QFETCH(int, error);
        QFETCH(QByteArray, err);
        begin("domain launch work ed");
        auto command = asked();
        QVERIFY(command && command->kind == CommandKind::Locale);
        QCOMPARE(QByteArray(command->text.data()), QByteArray("de_DE.UTF-8"));
        command = asked();
        QVERIFY(command && command->kind == CommandKind::LaunchApp);
        QCOMPARE(QByteArray(command->text.data()), QByteArray("ed"));
        // What an older channel says of the locale.
        tell(record(EventKind::Refused, static_cast<std::uint32_t>(CommandKind::Locale)));
        Event event = record(EventKind::AppLaunched, static_cast<std::uint32_t>(error));
        set(event.name, "ed");
        tell(event);
        const Ended ended = m_cli->finish();
        QTEST(ended.code, "code");
        QTEST(ended.out, "out");
        QVERIFY2(ended.err.contains(err), ended.err);
    }

    /// It stays until there is a window, since the domain is its own until then.
    void launch_inADisposable() {
        m_work = &m_fake->addDomain("disp1", "disposable");
        begin("domain launch --disposable ed");
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"template", "desktop"}}));
        QVERIFY(asked());
        Event event = record(EventKind::AppLaunched);
        set(event.name, "ed");
        tell(event);
        QCOMPARE(m_cli->process.state(), QProcess::Running);
        QVERIFY(!m_cli->process.waitForFinished(100));
        event = record(EventKind::WindowChanged);
        event.window = 7;
        tell(event);
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("Started ed in disp1, which is gone when its last window is closed.\n"));
        QCOMPARE(m_work->calls, QString("OpenSession "));
    }

    void launch_inADisposable_thatEnds() {
        m_work = &m_fake->addDomain("disp1", "disposable");
        begin("domain launch --disposable=other ed --json");
        QCOMPARE(m_fake->lastManagerOptions, QVariantMap({{"template", "other"}}));
        QVERIFY(asked());
        tell(record(EventKind::AppLaunched));
        m_work->sessions.clear();
        const Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 1);
        QCOMPARE(ended.json()["error"].toObject()["code"].toString(), QString("GuestFailure"));
    }

    void windows() {
        begin("domain windows work");
        Event event = record(EventKind::WindowChanged);
        event.window = 7;
        event.head = 2;
        event.width = 800;
        event.height = 600;
        set(event.name, "Mousepad");
        set(event.text, "a\u202Eb");
        tell(event);
        Ended ended = m_cli->finish();
        QCOMPARE(ended.code, 0);
        QVERIFY2(ended.out.endsWith("7       2     800x600  Mousepad  a\\u{202e}b\n"), ended.out);

        begin("domain windows work --json");
        event.flags = kActive;
        event.windowKind = WindowKind::Dialog;
        tell(event);
        ended = m_cli->finish();
        const QJsonObject window = QJsonDocument::fromJson(ended.out)[0].toObject();
        QCOMPARE(window["window"].toInt(), 7);
        QCOMPARE(window["kind"].toString(), QString("dialog"));
        QCOMPARE(window["active"].toBool(), true);
        QCOMPARE(window["shares_head"].toBool(true), false);
    }

    void export_makesTheMenuAgree() {
        Ended ended = withApps("domain export work", {app("ed", "Editor", "Utility;X"), app("mail", "M\nExec=evil")});
        QVERIFY2(ended.code == 0, ended.err);
        QCOMPARE(ended.out, QByteArray("Apps of work in the menu: 2.\n"));
        QCOMPARE(entries(), (QStringList{"org.bulkhead.work.ed.desktop", "org.bulkhead.work.mail.desktop"}));
        QVERIFY(entry("org.bulkhead.work.ed.desktop").contains("\nExec=bulkhead domain launch work ed\n"));
        QVERIFY(!entry("org.bulkhead.work.mail.desktop").contains("\nExec=evil"));

        ended = withApps("domain export work --json", {app("ed", "Editor"), app("../evil", "Evil")});
        QVERIFY2(ended.code == 0, ended.err);
        const QJsonObject result = QJsonDocument::fromJson(ended.out).object();
        QCOMPARE(result["apps"].toArray(), QJsonArray{"ed"});
        QCOMPARE(result["written"].toInt(), 1);
        QCOMPARE(result["removed"].toInt(), 1);
        QCOMPARE(entries(), QStringList{"org.bulkhead.work.ed.desktop"});
    }

    void export_leavesForeignFilesAlone() {
        QVERIFY(QDir(m_data->path()).mkdir("applications"));
        QFile file(m_data->filePath("applications/org.bulkhead.work.ed.desktop"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("mine");
        file.close();
        const Ended ended = withApps("domain export work", {app("ed", "Editor")});
        QCOMPARE(ended.code, 0);
        QCOMPARE(ended.out, QByteArray("Apps of work in the menu: 0.\nLeft alone, since Bulkhead did not make it: "
                                       "org.bulkhead.work.ed.desktop\n"));
        QCOMPARE(entry("org.bulkhead.work.ed.desktop"), QByteArray("mine"));
    }

    void export_remove_needsNobody() {
        QCOMPARE(withApps("domain export work", {app("ed", "Editor")}).code, 0);
        m_fake->removeDomain("work");
        m_fake->vanish();
        Ended ended = call("domain export work --remove");
        QVERIFY2(ended.code == 0, ended.err);
        QCOMPARE(ended.out, QByteArray("Apps of work taken out of the menu: 1.\n"));
        QCOMPARE(entries(), QStringList());
        ended = call("domain export work --remove --json");
        QCOMPARE(ended.code, 0);
        QCOMPARE(QJsonDocument::fromJson(ended.out)["removed"].toInt(-1), 0);
    }

    void export_failures() {
        QCOMPARE(call("domain export nope").code, 4);
        QCOMPARE(call("domain export disp-1").code, 2);
        QCOMPARE(call("domain export ../up --remove").code, 2);
        QFile file(m_data->filePath("applications"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        const Ended ended = withApps("domain export work", {app("ed", "Editor")});
        QCOMPARE(ended.code, 1);
        QVERIFY2(ended.err.contains(m_data->path().toUtf8()), ended.err);
    }

    void rm_takesThemOut() {
        QCOMPARE(withApps("domain export work", {app("ed", "Editor")}).code, 0);
        m_fake->failNext("org.bulkhead1.Error.Busy", "it runs", "Remove");
        QCOMPARE(call("domain rm work").code, 1);
        QCOMPARE(entries().size(), 1);
        QCOMPARE(call("domain rm work").code, 0);
        QCOMPARE(entries(), QStringList());
    }
};

QTEST_GUILESS_MAIN(TestCliApps)
#include "tst_cli_apps.moc"

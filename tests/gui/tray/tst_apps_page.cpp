// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "gui/widgets/app_grid.hpp"

#include <QDir>
#include <QFile>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QTemporaryDir>
#include <QToolButton>

#include <cerrno>

using namespace bulkhead;
using namespace bulkhead::session_stream;
using namespace bulkhead::tests;

/// The apps of a running domain, as its session tells of them.
class TestAppsPage : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;
    std::unique_ptr<QTemporaryDir> m_dir;

    gui::AppGrid* grid() { return GuiFixture::find<gui::AppGrid>("Apps"); }

    /// A viewer that writes down how it was started.
    QString viewer() {
        QFile script(m_dir->filePath("viewer"));
        if (script.open(QIODevice::WriteOnly)) {
            script.write("#!/bin/sh\necho \"$*\" >> '" + m_dir->filePath("started").toUtf8() + "'\nexec sleep 60\n");
            script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        }
        return script.fileName();
    }
    QByteArray started() {
        QFile file(m_dir->filePath("started"));
        return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
    }
    std::optional<Command> nextCommand(const FakeDomain& domain, CommandKind kind) {
        std::optional<Command> command;
        const auto arrived = [&] {
            command = GuiFixture::command(domain);
            return command.has_value();
        };
        return QTest::qWaitFor(arrived) && command->kind == kind ? command : std::nullopt;
    }

private slots:
    void init() {
        qunsetenv("LC_ALL");
        qputenv("LANG", "de_DE.UTF-8");
        m_dir = std::make_unique<QTemporaryDir>();
        m_fixture = std::make_unique<GuiFixture>();
    }
    void cleanup() {
        m_fixture.reset();
        m_dir.reset();
    }

    void apps_areListedFoundAndLaunched() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open("/bin/true");
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tell(work, {.kind = EventKind::SessionUp, .a = 8, .b = 1});
        QVERIFY(nextCommand(work, CommandKind::ListApps).has_value());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr);
        QTRY_COMPARE(grid()->model()->rowCount(), 5);
        QVERIFY(nextCommand(work, CommandKind::ListApps).has_value()); // tellApps begins a session again

        auto* search = GuiFixture::find<QLineEdit>("Find an app of this domain");
        QTest::keyClicks(search, "fire");
        QCOMPARE(grid()->model()->rowCount(), 1);
        QTest::keyClick(search, Qt::Key_Return);
        const auto locale = nextCommand(work, CommandKind::Locale);
        QVERIFY(locale.has_value());
        QCOMPARE(QByteArray(locale->text.data()), QByteArray("de_DE.UTF-8"));
        auto launch = nextCommand(work, CommandKind::LaunchApp);
        QVERIFY(launch.has_value());
        QCOMPARE(QByteArray(launch->text.data()), QByteArray("firefox-esr"));

        GuiFixture::click("Open a terminal in this domain");
        QVERIFY(nextCommand(work, CommandKind::Locale).has_value());
        launch = nextCommand(work, CommandKind::LaunchApp);
        QVERIFY(launch.has_value());
        QCOMPARE(QByteArray(launch->text.data()), QByteArray("xterm"));
        GuiFixture::click("Open the files of this domain");
        QVERIFY(nextCommand(work, CommandKind::Locale).has_value());
        launch = nextCommand(work, CommandKind::LaunchApp);
        QVERIFY(launch.has_value());
        QCOMPARE(QByteArray(launch->text.data()), QByteArray("pcmanfm"));
    }

    void viewer_isStartedOncePerDomainAndAskedToPresentItself() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open(viewer());
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr);
        m_fixture->desk->apps.launch(GuiFixture::path("work"), "xterm");
        m_fixture->desk->apps.launch(GuiFixture::path("work"), "mousepad");
        QTRY_COMPARE(started(), QByteArray("--background work\n"));
        m_fixture->desk->apps.showWindows(GuiFixture::path("work"));
        QTRY_COMPARE(started(), QByteArray("--background work\nwork\n"));
    }

    void menuOfTheDesktop_isKeptFreshOnceItIsWanted() {
        qputenv("XDG_DATA_HOME", m_dir->path().toUtf8());
        const QDir menu(m_dir->filePath("applications"));
        const auto entries = [&] { return menu.entryList({"org.bulkhead.work.*.desktop"}, QDir::Files).size(); };
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open("/bin/true");
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr);
        QTRY_COMPARE(grid()->model()->rowCount(), 5);
        QCOMPARE(entries(), 0); // nobody asked for them

        auto* more = GuiFixture::find<QToolButton>("More to do with this domain")->menu();
        QAction* wish = nullptr;
        for (QAction* action : more->actions()) {
            wish = action->isCheckable() ? action : wish;
        }
        QVERIFY(wish != nullptr);
        emit more->aboutToShow();
        QVERIFY(wish->isEnabled() && !wish->isChecked());
        wish->trigger();
        QCOMPARE(entries(), 5);
        QVERIFY(QFile::remove(menu.filePath("org.bulkhead.work.xterm.desktop")));
        GuiFixture::tellApps(work);
        QTRY_COMPARE(entries(), 5);

        emit more->aboutToShow();
        QVERIFY(wish->isChecked());
        wish->trigger();
        QCOMPARE(entries(), 0);
        wish->trigger();
        QCOMPARE(entries(), 5);
        m_fixture->desk->verbs.remove(GuiFixture::path("work"));
        QTRY_COMPARE(entries(), 0);
        qputenv("XDG_DATA_HOME", "/nonexistent");
    }

    void missingViewer_isSaid() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open(m_dir->filePath("nothing"));
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr);
        GuiFixture::click("Show the windows of this domain");
        QTRY_VERIFY(GuiFixture::says("bulkhead-viewer is not installed"));
    }

    void launchThatFails_isSaid() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open("/bin/true");
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr);
        Event event{.kind = EventKind::AppLaunched, .a = ENOENT};
        std::strcpy(event.name.data(), "gone\x1b[0m");
        GuiFixture::tell(work, event);
        QTRY_VERIFY(GuiFixture::says("gone\\x1b[0m did not start: No such file or directory."));
    }

    void noSession_saysHowToGetAShell() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tell(work, {.kind = EventKind::SessionUp, .a = 0, .b = 0});
        QTRY_VERIFY(GuiFixture::says("work has no desktop session"));
        QVERIFY(GuiFixture::says("bulkhead run --domain work -t -- bash"));
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr); // it came late
    }

    void refusedSession_canBeTriedAgain() {
        FakeDomain& work = m_fixture->add("work", "stopped");
        m_fixture->open();
        work.description["state"] = "running";
        m_fixture->fake->failNext("org.bulkhead1.Error.HostFailure", "the channel of work is gone", "OpenSession");
        m_fixture->fake->setState("work", "running");
        QTRY_VERIFY(GuiFixture::find("Try again") != nullptr);
        QVERIFY(GuiFixture::says("The channel of work is gone."));
        GuiFixture::click("Try again");
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tellApps(work);
        QTRY_VERIFY(grid() != nullptr);
        work.sessions.back().close();
        QTRY_VERIFY(GuiFixture::says("The connection to the domain's session ended."));
    }

    void brokenRecords_endTheSessionOnly() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        QTRY_VERIFY(!work.sessions.empty());
        QCOMPARE(::send(work.sessions.back().get(), "short", 5, MSG_NOSIGNAL), 5);
        QTRY_VERIFY(GuiFixture::find("Try again") != nullptr);
        GuiFixture::click("Try again");
        QTRY_COMPARE(work.calls.count("OpenSession "), 2);
    }

    void textsWithoutAnEnd_areReadToTheirArray() {
        FakeDomain& work = m_fixture->add("work", "running");
        m_fixture->open();
        QTRY_VERIFY(!work.sessions.empty());
        GuiFixture::tell(work, {.kind = EventKind::SessionUp, .a = 8, .b = 1});
        Event event{.kind = EventKind::App};
        event.text.fill('x');
        event.name.fill('y');
        event.extra.fill('z');
        GuiFixture::tell(work, event);
        GuiFixture::tell(work, {.kind = EventKind::AppsListed, .a = 1});
        QTRY_VERIFY(grid() != nullptr && grid()->model()->rowCount() == 1);
        const auto& app = m_fixture->desk->apps.shelf(GuiFixture::path("work")).apps.first();
        QCOMPARE(app.name.size(), 515);
        QCOMPARE(app.id.size(), 131);
    }
};

BULKHEAD_GUI_TEST_MAIN(TestAppsPage)
#include "tst_apps_page.moc"

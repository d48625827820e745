// SPDX-License-Identifier: Apache-2.0
// bulkhead-session on X servers, between programs and the agent.
#include "session_rig.hpp"
#include "x_client.hpp"

#include <QDir>
#include <QFile>
#include <QRegularExpression>
#include <QTest>

using namespace bulkhead;
using namespace bulkhead::tests;
using session::Command;
using session::Point;
using session::Rect;
using session::Size;
using session::WindowChanged;

namespace {

Command resizeTo(std::uint32_t window, Size size) {
    Command command;
    command.mutable_resize_window()->set_window(window);
    command.mutable_resize_window()->set_width(static_cast<std::uint32_t>(size.width));
    command.mutable_resize_window()->set_height(static_cast<std::uint32_t>(size.height));
    return command;
}

Command closing(std::uint32_t window) {
    Command command;
    command.mutable_close_window()->set_window(window);
    return command;
}

Command activating(std::uint32_t window) {
    Command command;
    command.mutable_activate_window()->set_window(window);
    return command;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

} // namespace

class TestSessionWindows : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        m_many = std::make_unique<XServer>(XServer::Kind::ManyHeads, m_folder.path());
        QVERIFY2(!m_many->display().empty(), "Xorg with the dummy driver did not start");
    }
    void init() {
        m_socket = m_folder.filePath(QString("agent-%1").arg(++m_count)).toStdString();
        m_agent = std::make_unique<AgentEnd>(m_socket);
        startSession();
        m_client = std::make_unique<XClient>(m_many->display());
        QVERIFY(m_agent->waitUntil([&] { return m_agent->heads() > 0; }));
        QCOMPARE(m_agent->heads(), 4U);
    }
    void cleanup() {
        const std::string complaint = m_agent->complaint();
        m_client.reset();
        m_session.reset();
        m_agent.reset();
        QCOMPARE(complaint, std::string());
    }

    void eachWindowHasAHeadOfItsSize() {
        const auto one = m_client->show({.title = "one", .size = {300, 200}});
        const auto two = m_client->show({.title = "two", .size = {777, 555}});
        QVERIFY(m_agent->waitForWindow("one") && m_agent->waitForWindow("two"));
        const auto first = *m_agent->window("one");
        const auto second = *m_agent->window("two");
        QCOMPARE(first.head(), 0U);
        QCOMPARE(second.head(), 1U);
        QCOMPARE(second.app_class(), std::string("Tester"));
        QCOMPARE(second.width(), 777U);
        QCOMPARE(second.height(), 555U);
        QVERIFY(first.active());
        QVERIFY(m_client->isMapped(one) && m_client->isMapped(two));
        QCOMPARE(m_client->geometry(one), headRect(0));
        QCOMPARE(m_client->geometry(two), headRect(1));
        QCOMPARE(headRect(1)->size, (Size{777, 555}));
        QVERIFY(!headRect(2));

        m_client->destroy(two);
        QVERIFY(m_agent->waitUntil([&] { return !m_agent->window("two"); }));
        QVERIFY(!headRect(1));
    }

    void resizesExactly() {
        const auto one = m_client->show({.title = "one"});
        const auto two = m_client->show({.title = "two"});
        QVERIFY(m_agent->waitForWindow("one") && m_agent->waitForWindow("two"));
        for (const Size size : {Size{777, 555}, Size{1919, 1081}, Size{64, 64}, Size{4096, 1000}, Size{501, 303}}) {
            m_agent->send(resizeTo(m_agent->window("one")->window(), size));
            QVERIFY(waitForSize("one", size));
            QCOMPARE(headRect(0)->size, size);
            QCOMPARE(m_client->geometry(one), headRect(0));
            QCOMPARE(m_client->geometry(two), headRect(1)); // wherever it had to go
            QVERIFY(!headRect(0)->overlaps(*headRect(1)));
        }
        // A little larger or smaller costs no new screen.
        const Size screen = m_client->geometry(m_client->root()).size;
        for (const Size size : {Size{505, 306}, Size{502, 300}}) {
            m_agent->send(resizeTo(m_agent->window("one")->window(), size));
            QVERIFY(waitForSize("one", size));
            QCOMPARE(m_client->geometry(m_client->root()).size, screen);
        }
        // Sizes that were left leave no modes behind.
        const QByteArray modes = runTool(m_many->display(), "xrandr", {"--query"});
        QCOMPARE(modes.count("bulkhead-"), 2);
    }

    void headsRunOut() {
        for (int i = 0; i < 6; ++i) {
            m_client->show({.title = "w" + std::to_string(i)});
            QVERIFY(m_agent->waitForWindow("w" + std::to_string(i)));
        }
        QVERIFY(m_agent->sync());
        QCOMPARE(m_agent->window("w2")->head(), 2U);
        QVERIFY(!m_agent->window("w2")->shares_head());
        for (const char* const title : {"w3", "w4", "w5"}) {
            QCOMPARE(m_agent->window(title)->head(), 3U);
            QVERIFY(m_agent->window(title)->shares_head());
        }
        // The one that is activated is on top.
        m_agent->send(activating(m_agent->window("w4")->window()));
        QVERIFY(m_agent->waitUntil([&] { return m_agent->window("w4")->active(); }));
        QVERIFY(!m_agent->window("w0")->active());
    }

    void dialogsStayOnTheirHead() {
        const auto main = m_client->show({.title = "main", .size = {800, 600}});
        QVERIFY(m_agent->waitForWindow("main"));
        const auto dialog = m_client->show(
            {.title = "dialog", .size = {200, 100}, .transientFor = main, .type = "_NET_WM_WINDOW_TYPE_DIALOG"});
        QVERIFY(m_agent->waitUntil([&] { return m_client->isMapped(dialog); }));
        QVERIFY(m_agent->sync());
        QCOMPARE(m_agent->windows().size(), std::size_t{1});
        const Rect head = *headRect(0);
        QCOMPARE(m_client->geometry(dialog),
                 (Rect{{head.at.x + 299, head.at.y + 249}, {200, 100}}) /* with a border around it */);
        // The keyboard goes to it, and its window counts as the one that has it.
        QVERIFY(m_agent->waitUntil([&] { return m_client->focus() == dialog; }));
        QVERIFY(m_agent->sync());
        QVERIFY(m_agent->window("main")->active());
        // It may be moved and resized, but not out of its head.
        m_client->askForPlace(dialog, {head.at.x + 5000, head.at.y + 10});
        QVERIFY(m_agent->waitUntil([&] {
            return m_client->geometry(dialog).at == Point{head.at.x + 598, head.at.y + 10};
        }));
        m_client->askForSize(dialog, {5000, 5000});
        QVERIFY(m_agent->waitUntil([&] { return m_client->geometry(dialog) == head; }));
        // Its head grows: it is in the middle again.
        m_client->askForSize(dialog, {300, 100});
        QVERIFY(m_agent->waitUntil([&] { return m_client->geometry(dialog).size == Size{300, 100}; }));
        m_agent->send(resizeTo(m_agent->window("main")->window(), {1000, 700}));
        QVERIFY(waitForSize("main", {1000, 700}));
        QCOMPARE(m_client->geometry(dialog), (Rect{{headRect(0)->at.x + 349, headRect(0)->at.y + 299}, {300, 100}}));
        m_client->destroy(dialog);
        QVERIFY(m_agent->waitUntil([&] { return m_client->focus() == main; }));
    }

    void largeDialogsHaveAHead() {
        const auto main = m_client->show({.title = "main", .size = {200, 200}});
        QVERIFY(m_agent->waitForWindow("main"));
        const auto dialog = m_client->show({.title = "large", .size = {500, 400}, .transientFor = main});
        QVERIFY(m_agent->waitForWindow("large"));
        QCOMPARE(m_agent->window("large")->kind(), WindowChanged::DIALOG);
        QCOMPARE(m_agent->window("large")->transient_for(), m_agent->window("main")->window());
        QCOMPARE(m_client->geometry(dialog), headRect(1));
        QCOMPARE(headRect(1)->size, (Size{500, 400}));
    }

    void dialogsWithoutAWindowHaveAHead() {
        m_client->show({.title = "alone", .type = "_NET_WM_WINDOW_TYPE_DIALOG"});
        QVERIFY(m_agent->waitForWindow("alone"));
        QCOMPARE(m_agent->window("alone")->kind(), WindowChanged::DIALOG);
        m_client->show({.title = "tools", .type = "_NET_WM_WINDOW_TYPE_UTILITY"});
        QVERIFY(m_agent->waitForWindow("tools"));
        QCOMPARE(m_agent->window("tools")->kind(), WindowChanged::UTILITY);
        // Their window goes: then they are alone, too.
        const auto main = m_client->show({.title = "main"});
        QVERIFY(m_agent->waitForWindow("main"));
        m_client->show({.title = "left over", .transientFor = main});
        QVERIFY(m_agent->sync());
        QVERIFY(!m_agent->window("left over"));
        m_client->destroy(main);
        QVERIFY(m_agent->waitForWindow("left over"));
    }

    void programsAreToldWhatIsTrue() {
        const auto window = m_client->show({.title = "one", .size = {400, 300}});
        QVERIFY(m_agent->waitForWindow("one"));
        // Until the host has a will, the program's counts.
        m_client->askForSize(window, {500, 400});
        QVERIFY(waitForSize("one", {500, 400}));
        QCOMPARE(m_client->geometry(window).size, (Size{500, 400}));
        m_agent->send(resizeTo(m_agent->window("one")->window(), {640, 480}));
        QVERIFY(waitForSize("one", {640, 480}));
        m_client->askForSize(window, {100, 100});
        m_client->askForPlace(window, {3, 3});
        QVERIFY(m_agent->waitUntil([&] { return m_client->toldGeometry(window) == headRect(0); }));
        QCOMPARE(m_client->geometry(window), headRect(0));
        QCOMPARE(headRect(0)->size, (Size{640, 480}));
    }

    void fullScreenIsWithinTheHead() {
        const auto window = m_client->show({.title = "one", .size = {400, 300}});
        QVERIFY(m_agent->waitForWindow("one"));
        m_client->message(window, "_NET_WM_STATE", 1, m_client->atom("_NET_WM_STATE_FULLSCREEN"));
        QVERIFY(m_agent->waitUntil([&] { return contains(m_client->states(window), "_NET_WM_STATE_FULLSCREEN"); }));
        m_client->message(window, "_NET_WM_STATE", 2, m_client->atom("_NET_WM_STATE_MAXIMIZED_HORZ"),
                          m_client->atom("_NET_WM_STATE_MAXIMIZED_VERT"));
        QVERIFY(m_agent->waitUntil([&] { return contains(m_client->states(window), "_NET_WM_STATE_MAXIMIZED_VERT"); }));
        QVERIFY(m_agent->sync());
        QCOMPARE(m_client->geometry(window).size, (Size{400, 300}));
        QCOMPARE(m_agent->window("one")->width(), 400U);
        m_client->message(window, "_NET_WM_STATE", 0, m_client->atom("_NET_WM_STATE_FULLSCREEN"));
        QVERIFY(m_agent->waitUntil([&] { return !contains(m_client->states(window), "_NET_WM_STATE_FULLSCREEN"); }));
        QVERIFY(contains(m_client->states(window), "_NET_WM_STATE_MAXIMIZED_HORZ"));
    }

    void closesPolitelyOrElse() {
        const auto window = m_client->show({.title = "polite"});
        QVERIFY(m_agent->waitForWindow("polite"));
        m_agent->send(closing(m_agent->window("polite")->window()));
        QVERIFY(m_agent->waitUntil([&] { return m_client->wasAskedToClose(window); }));
        QVERIFY(m_client->isMapped(window)); // that is its own affair

        XClient rude(m_many->display());
        rude.show({.title = "rude", .deletes = false});
        QVERIFY(m_agent->waitForWindow("rude"));
        m_agent->send(closing(m_agent->window("rude")->window()));
        QVERIFY(m_agent->waitUntil([&] { return !rude.isConnected() && !m_agent->window("rude"); }));
        // Who closes what is not there breaks nothing.
        m_agent->send(closing(4'000'000));
        m_agent->send(activating(4'000'000));
        m_agent->send(resizeTo(4'000'000, {100, 100}));
        QVERIFY(m_agent->sync());
    }

    void tellsOfTitlesAndAttention() {
        const auto one = m_client->show({.title = "one"});
        const auto two = m_client->show({.title = "two"});
        QVERIFY(m_agent->waitForWindow("one") && m_agent->waitForWindow("two"));
        m_client->setTitle(two, "zwei ä€𝄞");
        QVERIFY(m_agent->waitForWindow("zwei ä€𝄞"));
        m_client->setUrgent(two, true);
        QVERIFY(m_agent->waitUntil([&] { return m_agent->window("zwei ä€𝄞")->wants_attention(); }));
        m_agent->send(activating(m_agent->window("zwei ä€𝄞")->window()));
        QVERIFY(m_agent->waitUntil(
            [&] { return m_agent->window("zwei ä€𝄞")->active() && !m_agent->window("zwei ä€𝄞")->wants_attention(); }));
        QCOMPARE(m_client->focus(), two);
        QVERIFY(!m_agent->window("one")->active());
        QVERIFY(contains(m_client->states(two), "_NET_WM_STATE_FOCUSED"));
        QVERIFY(!contains(m_client->states(one), "_NET_WM_STATE_FOCUSED"));

        // Another program's wish to be in front is a wish for attention.
        XClient other(m_many->display());
        const auto theirs = other.show({.title = "theirs"});
        QVERIFY(m_agent->waitForWindow("theirs"));
        other.message(theirs, "_NET_ACTIVE_WINDOW", 1);
        QVERIFY(m_agent->waitUntil([&] { return m_agent->window("theirs")->wants_attention(); }));
        QCOMPARE(m_client->focus(), two);
        // The program that has the keyboard may pass it on.
        m_client->message(one, "_NET_ACTIVE_WINDOW", 1);
        QVERIFY(m_agent->waitUntil([&] { return m_client->focus() == one; }));
    }

    void clicksGiveTheKeyboard() {
        m_client->show({.title = "one"});
        const auto two = m_client->show({.title = "two"});
        QVERIFY(m_agent->waitForWindow("one") && m_agent->waitForWindow("two"));
        QVERIFY(m_agent->window("one")->active());
        const Rect head = *headRect(1);
        runTool(m_many->display(), "xdotool",
                {"mousemove", QString::number(head.at.x + 20), QString::number(head.at.y + 20), "click", "1"});
        QVERIFY(m_agent->waitUntil([&] { return m_agent->window("two")->active(); }));
        QCOMPARE(m_client->focus(), two);
    }

    void menusAreLeftAlone() {
        const auto menu = m_client->show({.title = "menu", .size = {50, 60}, .at = {7, 8}, .overrideRedirect = true});
        const auto tip =
            m_client->show({.title = "tip", .size = {50, 60}, .at = {9, 8}, .type = "_NET_WM_WINDOW_TYPE_TOOLTIP"});
        QVERIFY(m_agent->waitUntil([&] { return m_client->isMapped(menu) && m_client->isMapped(tip); }));
        QCOMPARE(m_client->geometry(menu), (Rect{{7, 8}, {50, 60}}));
        QCOMPARE(m_client->geometry(tip), (Rect{{9, 8}, {50, 60}}));
        m_client->askForPlace(tip, {20, 21});
        QVERIFY(m_agent->waitUntil([&] { return m_client->geometry(tip).at == Point{20, 21}; }));
        QVERIFY(m_agent->sync());
        QVERIFY(m_agent->windows().empty());
    }

    void windowsOutliveTheSession() {
        const auto window = m_client->show({.title = "one", .size = {654, 321}});
        QVERIFY(m_agent->waitForWindow("one"));
        m_session->kill();
        startSession();
        QVERIFY(m_agent->waitUntil([&] { return m_agent->ups() == 2 && m_agent->window("one"); }));
        QCOMPARE(m_agent->window("one")->width(), 654U);
        QVERIFY(m_client->isMapped(window));
        m_agent->send(resizeTo(m_agent->window("one")->window(), {432, 234}));
        QVERIFY(waitForSize("one", {432, 234}));
    }

    void saysAllAgainToANewAgent() {
        m_client->show({.title = "one"});
        QVERIFY(m_agent->waitForWindow("one"));
        const auto number = m_agent->window("one")->window();
        m_agent->hangUp();
        QVERIFY(m_agent->waitUntil([&] { return m_agent->ups() == 2 && m_agent->window("one"); }));
        QCOMPARE(m_agent->window("one")->window(), number);
        QVERIFY(m_agent->sync());
    }

    void startsApps() {
        QVERIFY(QDir(m_folder.path()).mkpath("data/applications"));
        const QString mark = m_folder.filePath("started");
        QFile file(m_folder.filePath("data/applications/test-app.desktop"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("[Desktop Entry]\nType=Application\nName=Test app\nCategories=Utility;\nComment=For tests\n"
                   "Exec=sh -c \"echo $DISPLAY > " +
                   mark.toUtf8() + "\"\n");
        file.close();
        m_session->kill();
        startSession({{"XDG_DATA_HOME", m_folder.filePath("data")}});
        QVERIFY(m_agent->waitUntil([&] { return m_agent->ups() == 2; }));

        Command command;
        command.mutable_list_apps();
        m_agent->send(command);
        QVERIFY(m_agent->waitUntil([&] { return m_agent->appsListed(); }));
        const auto& apps = m_agent->apps();
        const auto found =
            std::find_if(apps.begin(), apps.end(), [](const auto& app) { return app.id() == "test-app"; });
        QVERIFY(found != apps.end());
        QCOMPARE(found->name(), std::string("Test app"));
        QCOMPARE(found->categories(), std::string("Utility"));

        command.mutable_launch_app()->set_app("test-app");
        m_agent->send(command);
        QVERIFY(m_agent->waitUntil([&] { return m_agent->launched().has_value(); }));
        QCOMPARE(m_agent->launched()->error_number(), 0);
        QVERIFY(m_agent->waitUntil([&] { return QFile(mark).size() > 0; }));
        QFile started(mark);
        QVERIFY(started.open(QIODevice::ReadOnly));
        QCOMPARE(started.readAll().trimmed().toStdString(), m_many->display());

        command.mutable_launch_app()->set_app("no-such-app");
        m_agent->send(command);
        QVERIFY(m_agent->waitUntil([&] { return m_agent->launched()->app() == "no-such-app"; }));
        QCOMPARE(m_agent->launched()->error_number(), ENOENT);
    }

    void takesTheHostsSettings() {
        Command command;
        command.mutable_settings()->set_keyboard_layout("de");
        command.mutable_settings()->set_keyboard_variant("nodeadkeys");
        command.mutable_settings()->set_dpi(144);
        m_agent->send(command);
        QVERIFY(m_agent->waitUntil([&] {
            const QByteArray query = runTool(m_many->display(), "setxkbmap", {"-query"});
            return query.contains("layout:     de") && query.contains("variant:    nodeadkeys");
        }));
        QVERIFY(runTool(m_many->display(), "xrdb", {"-query"}).contains("Xft.dpi:\t144"));
    }

    void showsARealProgram() {
        QProcess terminal;
        auto environment = QProcessEnvironment::systemEnvironment();
        environment.insert("DISPLAY", QString::fromStdString(m_many->display()));
        terminal.setProcessEnvironment(environment);
        terminal.start("xterm", {"-T", "a terminal"});
        QVERIFY(terminal.waitForStarted());
        QVERIFY(m_agent->waitForWindow("a terminal"));
        QCOMPARE(m_agent->window("a terminal")->app_class(), std::string("XTerm"));
        m_agent->send(resizeTo(m_agent->window("a terminal")->window(), {901, 703}));
        QVERIFY(waitForSize("a terminal", {901, 703}));
        m_agent->send(closing(m_agent->window("a terminal")->window()));
        QVERIFY(m_agent->waitUntil([&] { return m_agent->windows().empty(); }));
        QVERIFY(terminal.waitForFinished(10'000));
    }

    void thereIsOnlyOneManager() {
        SessionProcess second(m_many->display(), m_socket, 4);
        QCOMPARE(second.end(), 1);
        QVERIFY(second.errors().contains("Another window manager"));
        QVERIFY(m_agent->sync());
    }

    void oneScreenIsOneHead() {
        XServer server(XServer::Kind::OneScreen, m_folder.path());
        QVERIFY(!server.display().empty());
        const std::string socket = m_folder.filePath("one-screen").toStdString();
        AgentEnd agent(socket);
        SessionProcess session(server.display(), socket, 16);
        XClient client(server.display());
        QVERIFY(agent.waitUntil([&] { return agent.heads() == 1; }));
        const auto one = client.show({.title = "one"});
        client.show({.title = "two"});
        QVERIFY(agent.waitForWindow("one") && agent.waitForWindow("two"));
        QVERIFY(agent.sync());
        QVERIFY(agent.window("one")->shares_head());
        agent.send(resizeTo(agent.window("two")->window(), {640, 480}));
        QVERIFY(agent.waitUntil([&] { return agent.window("two")->width() == 640; }));
        QCOMPARE(client.geometry(one), (Rect{{0, 0}, {640, 480}})); // they share it
        // The device has a limit, and what is told is what became of it.
        agent.send(resizeTo(agent.window("two")->window(), {4000, 3000}));
        QVERIFY(agent.waitUntil([&] { return agent.window("two")->width() == 1280; }));
        QCOMPARE(client.geometry(one), (Rect{{0, 0}, {1280, 1024}}));
        QCOMPARE(agent.complaint(), std::string());
        // Without its server there is no session.
        server.kill();
        QCOMPARE(session.end(), 1);
        QVERIFY(session.errors().contains("The X server is gone"));
    }

    void noServerNoSession() {
        SessionProcess session(":4711", m_socket, 4);
        QCOMPARE(session.end(), 1);
        QVERIFY(session.errors().contains("Cannot connect to the display \":4711\""));
    }

private:
    void startSession(const std::map<QString, QString>& environment = {}) {
        m_session = std::make_unique<SessionProcess>(m_many->display(), m_socket, 4, environment);
    }
    bool waitForSize(const std::string& title, Size size) {
        return m_agent->waitUntil([&] {
            const auto window = m_agent->window(title);
            return window && window->width() == static_cast<std::uint32_t>(size.width) &&
                   window->height() == static_cast<std::uint32_t>(size.height);
        });
    }
    /// What the server says of the output DUMMYn; none: it is off.
    std::optional<Rect> headRect(int head) {
        const QByteArray output = runTool(m_many->display(), "xrandr", {"--current"});
        const QRegularExpression line("^DUMMY" + QString::number(head) + R"( .*?(\d+)x(\d+)\+(\d+)\+(\d+))",
                                      QRegularExpression::MultilineOption);
        const auto match = line.match(QString::fromUtf8(output));
        if (!match.hasMatch()) {
            return std::nullopt;
        }
        return Rect{{match.captured(3).toInt(), match.captured(4).toInt()},
                    {match.captured(1).toInt(), match.captured(2).toInt()}};
    }

    QTemporaryDir m_folder;
    int m_count = 0;
    std::string m_socket;
    std::unique_ptr<XServer> m_many;
    std::unique_ptr<AgentEnd> m_agent;
    std::unique_ptr<SessionProcess> m_session;
    std::unique_ptr<XClient> m_client;
};

QTEST_GUILESS_MAIN(TestSessionWindows)
#include "tst_session_windows.moc"

// SPDX-License-Identifier: Apache-2.0
// Programs that do their worst: the session goes on, stays small, and tells the host nothing that it would refuse.
#include "session_rig.hpp"
#include "x_client.hpp"

#include <QElapsedTimer>
#include <QTest>

#include <random>

using namespace bulkhead;
using namespace bulkhead::tests;
using session::Command;
using session::Size;

namespace {

/// Far above what it takes (about 6 MiB), far below what any of these would make of a leak.
constexpr long kMostResidentKiB = 40 * 1024;
constexpr int kHeads = 8;

} // namespace

class TestSessionHostile : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        m_server = std::make_unique<XServer>(XServer::Kind::ManyHeads, m_folder.path());
        QVERIFY2(!m_server->display().empty(), "Xorg with the dummy driver did not start");
    }
    void init() {
        const std::string socket = m_folder.filePath(QString("agent-%1").arg(++m_count)).toStdString();
        m_agent = std::make_unique<AgentEnd>(socket);
        m_session = std::make_unique<SessionProcess>(m_server->display(), socket, kHeads);
        m_client = std::make_unique<XClient>(m_server->display());
        QVERIFY(m_agent->waitUntil([&] { return m_agent->heads() > 0; }));
    }
    void cleanup() {
        // Whatever happened: it lives, is small, answers, and serves an honest program.
        const bool isAlive = m_session->isRunning();
        const long resident = m_session->residentKiB();
        m_client.reset();
        bool isUseful = m_agent->sync() && m_agent->waitUntil([&] { return m_agent->windows().empty(); });
        {
            XClient honest(m_server->display());
            honest.show({.title = "honest"});
            isUseful = isUseful && m_agent->waitForWindow("honest");
        }
        isUseful = isUseful && m_agent->waitUntil([&] { return m_agent->windows().empty(); });
        const std::string complaint = m_agent->complaint();
        m_session.reset();
        m_agent.reset();
        QVERIFY(isAlive);
        QVERIFY2(resident > 0 && resident < kMostResidentKiB, qPrintable(QString::number(resident)));
        QVERIFY(isUseful);
        QCOMPARE(complaint, std::string());
    }

    void fiveHundredWindows() {
        std::vector<xcb_window_t> windows;
        for (int i = 0; i < 500; ++i) {
            windows.push_back(m_client->show({.title = "w" + std::to_string(i), .size = {100 + i, 100}}));
        }
        QVERIFY(m_agent->waitUntil([&] { return m_client->isMapped(windows.back()); }, 30'000));
        QVERIFY(m_agent->sync());
        QCOMPARE(m_agent->windows().size(), std::size_t{64}); // as many as the host keeps
        // They go, and those that nobody knew of yet get their turn.
        for (int i = 0; i < 480; ++i) {
            m_client->destroy(windows[static_cast<std::size_t>(i)]);
        }
        QVERIFY(m_agent->waitUntil([&] { return m_agent->windows().size() == 20; }, 30'000));
        QVERIFY(m_agent->window("w499"));
    }

    void moreWindowsThanAreManaged() {
        std::vector<xcb_window_t> windows;
        for (int i = 0; i < 600; ++i) {
            windows.push_back(m_client->show({.title = "w" + std::to_string(i)}));
        }
        QVERIFY(m_agent->waitUntil([&] { return m_client->isMapped(windows[511]); }, 30'000));
        QVERIFY(m_agent->sync());
        QVERIFY(!m_client->isMapped(windows[599]));
    }

    void aTitleOfAMegabyte() {
        std::string title(std::size_t{1024} * 1024, '\x1B');
        for (std::size_t i = 0; i < title.size(); i += 3) {
            title[i] = static_cast<char>(i * 7);
        }
        const auto window = m_client->create({.title = "small"});
        m_client->setTitle(window, title);
        m_client->map(window);
        QVERIFY(m_agent->waitUntil([&] { return !m_agent->windows().empty(); }));
        QVERIFY(m_agent->windows().begin()->second.title().size() <= 512);
        // And all the time another one.
        for (int i = 0; i < 200; ++i) {
            title[0] = static_cast<char>('a' + i % 26);
            m_client->setTitle(window, title.substr(0, 200'000));
        }
        m_client->setTitle(window, "last");
        QVERIFY(m_agent->waitForWindow("last"));
    }

    void propertiesOfTheWrongKind() {
        std::mt19937 random(5);
        const std::vector<std::string> names{"WM_NAME",      "WM_CLASS",         "WM_HINTS",     "WM_NORMAL_HINTS",
                                             "_NET_WM_NAME", "WM_TRANSIENT_FOR", "WM_PROTOCOLS", "_NET_WM_WINDOW_TYPE",
                                             "_NET_WM_STATE"};
        const std::vector<xcb_atom_t> types{
            XCB_ATOM_STRING,   m_client->atom("UTF8_STRING"), XCB_ATOM_ATOM,     XCB_ATOM_WINDOW,
            XCB_ATOM_WM_HINTS, XCB_ATOM_WM_SIZE_HINTS,        XCB_ATOM_CARDINAL, XCB_ATOM_NONE + 1};
        for (int i = 0; i < 300; ++i) {
            const auto window = m_client->create({.title = "x"});
            for (int round = 0; round < 2; ++round) {
                for (const std::string& name : names) {
                    std::vector<std::uint32_t> values(random() % 40);
                    std::generate(values.begin(), values.end(), [&] { return static_cast<std::uint32_t>(random()); });
                    const auto format = static_cast<std::uint8_t>(8U << (random() % 3));
                    xcb_change_property(m_client->x(), XCB_PROP_MODE_REPLACE, window, m_client->atom(name),
                                        types[random() % types.size()], format,
                                        static_cast<std::uint32_t>(values.size()) * 4 / (format / 8U), values.data());
                }
                m_client->map(window);
            }
            if (i % 3 != 0) {
                m_client->destroy(window);
            }
        }
        QVERIFY(m_agent->sync());
    }

    void mapsAndUnmapsWithoutEnd() {
        std::vector<xcb_window_t> windows;
        for (int i = 0; i < 5; ++i) {
            windows.push_back(m_client->create({.title = "w" + std::to_string(i), .size = {200 + i, 100}}));
        }
        const std::size_t before = m_agent->messages();
        QElapsedTimer timer;
        timer.start();
        int rounds = 0;
        for (bool isSlow = false; timer.elapsed() < 3000; isSlow = timer.elapsed() > 1500) {
            for (const auto window : windows) {
                m_client->map(window);
            }
            if (isSlow) {
                QTest::qWait(15); // long enough that each may have been seen
            }
            for (const auto window : windows) {
                m_client->unmap(window);
            }
            rounds += static_cast<int>(windows.size());
            m_agent->waitUntil([] { return true; });
            QTest::qWait(1);
        }
        QVERIFY(m_agent->sync());
        const auto seconds = double(timer.elapsed()) / 1000;
        qInfo("%d rounds in %.1f s, %zu messages, %.2f s of processor time", rounds, seconds,
              m_agent->messages() - before, m_session->cpuSeconds());
        // Bounded by time, not by what the program does.
        QVERIFY(m_agent->messages() - before < 50 * 2 * windows.size() * (seconds + 1));
    }

    void windowsThatAreTransientForEachOther() {
        std::vector<xcb_window_t> windows;
        for (int i = 0; i < 20; ++i) {
            windows.push_back(m_client->create({.title = "w" + std::to_string(i)}));
        }
        for (std::size_t i = 0; i < windows.size(); ++i) {
            m_client->setTransientFor(windows[i], windows[(i + 1) % windows.size()]);
            m_client->map(windows[i]);
        }
        QVERIFY(m_agent->waitUntil([&] { return m_client->isMapped(windows.back()); }));
        for (int i = 0; i < 500; ++i) { // and all the time for another one, itself too
            m_client->setTransientFor(windows[static_cast<std::size_t>(i) % 20],
                                      windows[static_cast<std::size_t>(i * 7) % 20]);
        }
        QVERIFY(m_agent->sync());
    }

    void asksForAnotherSizeAllTheTime() {
        const auto window = m_client->show({.title = "w"});
        const auto dialog = m_client->show({.title = "dialog", .transientFor = window});
        QVERIFY(m_agent->waitForWindow("w"));
        for (int i = 0; i < 5000; ++i) {
            m_client->askForSize(window, {1 + i % 30'000, 1 + (i * 13) % 30'000});
            m_client->askForPlace(dialog, {i - 2500, 30'000 - i});
            m_client->askForSize(dialog, {1 + i, 1});
            m_client->message(window, "_NET_WM_STATE", 2, m_client->atom("_NET_WM_STATE_FULLSCREEN"),
                              m_client->atom("_NET_WM_STATE_MODAL"));
            m_client->message(window, "_NET_ACTIVE_WINDOW", 1);
        }
        QVERIFY(m_agent->sync());
        const auto told = m_agent->window("w");
        QVERIFY(told && told->width() >= 64 && told->width() <= 4096);
        m_client->askForSize(window, {321, 123});
        QVERIFY(m_agent->waitUntil([&] { return m_agent->window("w")->width() == 321; }));
    }

    void hugeWindowsOnEveryHead() {
        for (int i = 0; i < kHeads; ++i) {
            m_client->show({.title = "w" + std::to_string(i), .size = {30'000, 30'000}});
        }
        QVERIFY(m_agent->waitUntil([&] { return m_agent->windows().size() == kHeads; }));
        for (const auto& [number, window] : m_agent->windows()) {
            Command command;
            command.mutable_resize_window()->set_window(number);
            command.mutable_resize_window()->set_width(4096);
            command.mutable_resize_window()->set_height(4096);
            m_agent->send(command);
        }
        QVERIFY(m_agent->sync());
        const auto screen = m_client->geometry(m_client->root()).size;
        QVERIFY(screen.width <= 8192 && screen.height <= 8192);
    }

    void lies() {
        const auto window = m_client->show({.title = "w"});
        QVERIFY(m_agent->waitForWindow("w"));
        // Events that only the server should send.
        for (int type = 2; type < 36; ++type) {
            for (const xcb_window_t about : {window, m_client->root(), xcb_window_t{0xFFFFFFF}}) {
                std::array<std::uint32_t, 8> event{};
                event.fill(about);
                event[0] = static_cast<std::uint32_t>(type);
                xcb_send_event(m_client->x(), 0, m_client->root(),
                               XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT | XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY,
                               reinterpret_cast<const char*>(event.data()));
                xcb_send_event(m_client->x(), 0, window, XCB_EVENT_MASK_PROPERTY_CHANGE | XCB_EVENT_MASK_FOCUS_CHANGE,
                               reinterpret_cast<const char*>(event.data()));
            }
        }
        m_client->flush();
        QVERIFY(m_agent->sync());
        // Windows of others moved into one's own, and back.
        const auto inner = m_client->show({.title = "inner"});
        QVERIFY(m_agent->waitForWindow("inner"));
        xcb_reparent_window(m_client->x(), inner, window, 0, 0);
        m_client->flush();
        QVERIFY(m_agent->waitUntil([&] { return !m_agent->window("inner"); }));
        // The manager's own marks destroyed.
        for (const auto child : m_client->stacking()) {
            if (child != window) {
                xcb_destroy_window(m_client->x(), child);
            }
        }
        m_client->flush();
        QVERIFY(m_agent->sync());
    }

    void aHostThatDoesNotListen() {
        const auto window = m_client->show({.title = "w"});
        QVERIFY(m_agent->waitForWindow("w"));
        m_agent->setReading(false);
        QElapsedTimer timer;
        timer.start();
        const std::string filler(400, 'x');
        for (int i = 0; timer.elapsed() < 3000; ++i) {
            m_client->setTitle(window, filler + std::to_string(i));
            m_client->destroy(m_client->show({.title = "short"}));
            QTest::qWait(1);
        }
        m_client->setTitle(window, "last");
        QVERIFY(m_session->residentKiB() < kMostResidentKiB);
        m_agent->setReading(true);
        QVERIFY(m_agent->waitForWindow("last"));
        QVERIFY(m_agent->sync());
        QCOMPARE(m_agent->windows().size(), std::size_t{1});
    }

private:
    QTemporaryDir m_folder;
    int m_count = 0;
    std::unique_ptr<XServer> m_server;
    std::unique_ptr<AgentEnd> m_agent;
    std::unique_ptr<SessionProcess> m_session;
    std::unique_ptr<XClient> m_client;
};

QTEST_GUILESS_MAIN(TestSessionHostile)
#include "tst_session_hostile.moc"

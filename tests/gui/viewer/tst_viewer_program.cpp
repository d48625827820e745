// SPDX-License-Identifier: Apache-2.0
#include "children.hpp"
#include "fake_bulkhead.hpp"
#include "private_bus.hpp"
#include "screen_without_guest.hpp"
#include "session_peer.hpp"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <QUuid>

#include <csignal>
#include <memory>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

constexpr int kPatience = 30000; ///< ms

/// Carries bytes both ways between two sockets until one closes.
class Pump {
public:
    Pump(client::Descriptor one, client::Descriptor other)
        : m_one(std::move(one))
        , m_other(std::move(other))
        , m_there([this] { carry(m_one.get(), m_other.get()); })
        , m_back([this] { carry(m_other.get(), m_one.get()); }) {}
    ~Pump() {
        ::shutdown(m_one.get(), SHUT_RDWR);
        ::shutdown(m_other.get(), SHUT_RDWR);
        m_there.join();
        m_back.join();
    }

private:
    static void carry(int from, int to) {
        std::array<char, 65536> buffer{};
        ssize_t size = 0;
        while ((size = ::recv(from, buffer.data(), buffer.size(), 0)) > 0) {
            if (!ExecEnds::write(client::Descriptor(::dup(to)), QByteArray(buffer.data(), size))) {
                break;
            }
        }
        ::shutdown(from, SHUT_RDWR);
        ::shutdown(to, SHUT_RDWR);
    }
    client::Descriptor m_one;
    client::Descriptor m_other;
    std::thread m_there;
    std::thread m_back;
};

QByteArray fileText(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

} // namespace

/// The program as it is installed, with a double of the daemon, on a bus and an X server of its own.
class TestViewerProgram : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_screen = std::make_unique<ScreenWithoutGuest>(2); }
    void init() {
        m_bus = std::make_unique<tests::PrivateBus>();
        m_sessionBus = std::make_unique<tests::PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_domain = &m_fake->addDomain("work");
        m_domain->description["label"] = "orange";
        m_domain->description["id"] = m_id;
    }
    void cleanup() {
        m_viewer.reset();
        m_windowManager.reset();
        m_environment.clear();
        m_pumps.clear();
        m_peer.reset();
        m_fake.reset();
        m_sessionBus.reset();
        m_bus.reset();
    }

    void aDomainIsShownAndConfined() {
        QVERIFY(showOne());
        // Task bars group by class, so each domain has its own.
        QVERIFY(tree().contains("(\"bulkhead-viewer\" \"bulkhead-work\")"));
        const QDir tasks(QStringLiteral("/proc/%1/task").arg(m_viewer->processId()));
        const QStringList threads = tasks.entryList(QDir::Dirs | QDir::NoDotAndDotDot);
        QVERIFY(!threads.isEmpty());
        for (const QString& thread : threads) {
            const QByteArray status = fileText(tasks.filePath(thread) + "/status");
            QVERIFY2(status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n"), status);
        }
        m_domain->description["state"] = "stopped";
        Q_EMIT m_domain->StateChanged("stopped");
        QVERIFY(ends());
        QCOMPARE(m_viewer->exitCode(), 0);
    }

    void thereIsOneViewerForADomain() {
        QVERIFY(showOne());
        const std::size_t displays = m_domain->displays.size();
        QProcess second;
        start(second, {"work"});
        QVERIFY(QTest::qWaitFor([&] { return second.state() == QProcess::NotRunning; }, kPatience));
        QCOMPARE(second.exitCode(), 0);
        QCOMPARE(m_domain->displays.size(), displays);
        QCOMPARE(m_viewer->state(), QProcess::Running);
        ::kill(static_cast<pid_t>(m_viewer->processId()), SIGTERM);
        QVERIFY(ends());
        QCOMPARE(m_viewer->exitStatus(), QProcess::NormalExit);
        QCOMPARE(m_viewer->exitCode(), 0);
    }

    void theDaemonMayGoAndComeBack() {
        QVERIFY(showOne());
        m_fake->vanish();
        m_fake.reset();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_domain = &m_fake->addDomain("work");
        m_domain->description["id"] = m_id;
        // The connections outlive the daemon: the viewer asks for nothing, and still knows of the guest's windows.
        m_peer->window(8, 1, "Second");
        QVERIFY(QTest::qWaitFor([this] { return tree().contains("\"[work] Second\""); }, kPatience));
        QVERIFY(tree().contains("\"[work] Editor\""));
        QVERIFY(m_domain->displays.empty());
        m_domain->description["state"] = "stopped";
        Q_EMIT m_domain->StateChanged("stopped");
        QVERIFY(ends());
        QCOMPARE(m_viewer->exitCode(), 0);
    }

    /// A user's keys and clicks, through the X server and a window manager, as far as QEMU's devices.
    void keysReachTheMachine() {
        m_windowManager = std::make_unique<Child>(QStringList{"openbox", "--sm-disable"});
        QVERIFY(showOne());
        QByteArray window;
        const auto find = [&] {
            // openbox does not look at what came while it started before something else comes: this.
            xdotool({"set_desktop", "0"});
            window = xdotool({"search", "--onlyvisible", "--class", "bulkhead-work"}).trimmed();
            return !window.isEmpty() && !window.contains('\n');
        };
        QVERIFY(QTest::qWaitFor(find, kPatience));
        bool activated = false;
        QVERIFY(QTest::qWaitFor(
            [&] {
                for (const session_stream::Command& command : m_peer->commands()) {
                    activated = activated ||
                                (command.kind == session_stream::CommandKind::ActivateWindow && command.window == 7);
                }
                return activated;
            },
            kPatience));
        const auto typed = [&] {
            // Not with --sync, which waits without an end where the window manager was not there yet to hear it.
            xdotool({"windowactivate", window});
            if (xdotool({"getactivewindow"}).trimmed() == window) {
                xdotool({"key", "--clearmodifiers", "shift+q"});
            }
            const QByteArray trace = m_screen->inputTrace();
            return trace.contains("key qcode shift, down 1") && trace.contains("key qcode q, down 1") &&
                   trace.contains("key qcode q, down 0") && trace.contains("key qcode shift, down 0");
        };
        QVERIFY(QTest::qWaitFor(typed, kPatience));
        // The window manager closes windows; the guest is asked, and the window stays.
        xdotool({"key", "alt+F4"});
        bool asked = false;
        QVERIFY(QTest::qWaitFor(
            [&] {
                for (const session_stream::Command& command : m_peer->commands()) {
                    asked = asked || command.kind == session_stream::CommandKind::CloseWindow;
                }
                return asked;
            },
            kPatience));
        QVERIFY(tree().contains("\"[work] Editor\""));

        // What was held when the window manager took the keyboard is not held in the guest.
        QVERIFY(QTest::qWaitFor(
            [this] {
                const QByteArray trace = m_screen->inputTrace();
                return trace.count("key qcode alt, down 1") == trace.count("key qcode alt, down 0");
            },
            kPatience));
        m_peer->gone(7);
        QVERIFY(QTest::qWaitFor([] { return !tree().contains("[work]"); }, kPatience));
        ::kill(static_cast<pid_t>(m_viewer->processId()), SIGTERM);
        QVERIFY(ends());
        QCOMPARE(m_viewer->exitCode(), 0);
    }

    /// On Wayland there is no tree of windows to ask; that it connects, lives and leaves orderly shows that its filter
    /// lets Qt's platform work.
    void waylandWorks() {
        QTemporaryDir runtime;
        const Child weston({"weston", "--backend=headless-backend.so", "--socket=wayland-test", "--idle-time=0",
                            "--log=" + runtime.filePath("log")},
                           -1, {"XDG_RUNTIME_DIR=" + runtime.path()});
        QVERIFY(QTest::qWaitFor([&] { return QFile::exists(runtime.filePath("wayland-test")); }, kPatience));
        m_environment = QStringList{"QT_QPA_PLATFORM=wayland", "WAYLAND_DISPLAY=wayland-test",
                                    "DISPLAY=", "XDG_RUNTIME_DIR=" + runtime.path()};
        QVERIFY(connectOne());
        const auto resized = [this] {
            for (const session_stream::Command& command : m_peer->commands()) {
                if (command.kind == session_stream::CommandKind::Dpi) {
                    return true;
                }
            }
            return false;
        };
        QVERIFY(QTest::qWaitFor(resized, kPatience));
        QVERIFY(QTest::qWaitFor([this] { return pump() && m_pumps.size() >= kChannels; }, kPatience));
        QVERIFY(fileText(QStringLiteral("/proc/%1/status").arg(m_viewer->processId())).contains("Seccomp:\t2\n"));
        QCOMPARE(m_viewer->state(), QProcess::Running);
        m_domain->description["state"] = "stopped";
        Q_EMIT m_domain->StateChanged("stopped");
        QVERIFY(ends());
        QVERIFY2(m_viewer->exitStatus() == QProcess::NormalExit && m_viewer->exitCode() == 0,
                 m_viewer->readAllStandardError());
    }

    void failuresAreSaid_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QStringList>("environment");
        QTest::addColumn<int>("status");
        QTest::addColumn<QByteArray>("words");
        QTest::newRow("no such domain") << QStringList{"nope"} << QStringList{} << 4 << QByteArray("nope");
        QTest::newRow("usage") << QStringList{"--clipboard", "work"} << QStringList{} << 2 << QByteArray("--clipboard");
        QTest::newRow("no screen") << QStringList{"work"} << QStringList{"DISPLAY=", "QT_QPA_PLATFORM"} << 1
                                   << QByteArray("DISPLAY");
        QTest::newRow("no GLib") << QStringList{"work"} << QStringList{"QT_NO_GLIB=1"} << 1 << QByteArray("GLib");
        QTest::newRow("no bus") << QStringList{"work"} << QStringList{"BULKHEAD_BUS_ADDRESS=unix:path=/nonexistent"}
                                << 1 << QByteArray("/nonexistent");
    }
    void failuresAreSaid() {
        QFETCH(QStringList, arguments);
        QFETCH(QStringList, environment);
        QFETCH(int, status);
        QFETCH(QByteArray, words);
        m_viewer = std::make_unique<QProcess>();
        start(*m_viewer, arguments, environment);
        QVERIFY(ends());
        QCOMPARE(m_viewer->exitCode(), status);
        const QByteArray said = m_viewer->readAllStandardError();
        QVERIFY2(said.contains("bulkhead-viewer: ") && said.contains(words), said);
    }

    void aStoppedDomainIsSaid() {
        m_domain->description["state"] = "stopped";
        m_viewer = std::make_unique<QProcess>();
        start(*m_viewer, {"work"});
        QVERIFY(ends());
        QCOMPARE(m_viewer->exitCode(), 1);
        QVERIFY(m_viewer->readAllStandardError().contains("bulkhead domain start work"));
    }

private:
    void start(QProcess& process, const QStringList& arguments, const QStringList& environment = {}) const {
        QProcessEnvironment variables = QProcessEnvironment::systemEnvironment();
        variables.insert("BULKHEAD_BUS_ADDRESS", m_bus->address());
        variables.insert("DBUS_SESSION_BUS_ADDRESS", m_sessionBus->address());
        for (const QString& change : environment) {
            if (change.contains('=')) {
                variables.insert(change.section('=', 0, 0), change.section('=', 1));
            } else {
                variables.remove(change);
            }
        }
        process.setProcessEnvironment(variables);
        process.start(BULKHEAD_VIEWER, arguments);
    }

    /// All windows with their titles and classes.
    static QByteArray tree() {
        QProcess xwininfo;
        xwininfo.start("xwininfo", {"-root", "-tree"});
        xwininfo.waitForFinished();
        return xwininfo.readAllStandardOutput();
    }

    static QByteArray xdotool(const QStringList& arguments) {
        QProcess process;
        process.start("xdotool", arguments);
        process.waitForFinished();
        return process.readAllStandardOutput();
    }

    /// Joins new displays with QEMU's. True, so that it fits into a condition.
    bool pump() {
        for (client::Descriptor& display : m_domain->displays) {
            if (display.isOpen()) {
                m_pumps.push_back(
                    std::make_unique<Pump>(std::move(display), client::Descriptor(m_screen->connectOnce())));
            }
        }
        return true;
    }

    /// Main, inputs, and for both heads display and cursor.
    static constexpr std::size_t kChannels = 6;

    bool connectOne() {
        m_viewer = std::make_unique<QProcess>();
        start(*m_viewer, {"work"}, m_environment);
        if (!QTest::qWaitFor([this] { return pump() && !m_domain->sessions.empty(); }, kPatience)) {
            return false;
        }
        m_peer = std::make_unique<SessionPeer>(std::move(m_domain->sessions.front()));
        m_peer->up();
        m_peer->window(7, 0, "Editor");
        return true;
    }

    bool showOne() {
        return connectOne() &&
               QTest::qWaitFor(
                   [this] { return pump() && m_pumps.size() >= kChannels && tree().contains("\"[work] Editor\""); },
                   kPatience);
    }

    bool ends() const {
        return QTest::qWaitFor([this] { return m_viewer->state() == QProcess::NotRunning; }, kPatience);
    }

    std::unique_ptr<ScreenWithoutGuest> m_screen;
    std::unique_ptr<tests::PrivateBus> m_bus;
    std::unique_ptr<tests::PrivateBus> m_sessionBus;
    std::unique_ptr<FakeBulkhead> m_fake;
    FakeDomain* m_domain = nullptr;
    const QString m_id = QUuid::createUuid().toString(QUuid::WithoutBraces); ///< runs of this test may overlap
    std::unique_ptr<SessionPeer> m_peer;
    std::vector<std::unique_ptr<Pump>> m_pumps;
    std::unique_ptr<QProcess> m_viewer;
    std::unique_ptr<Child> m_windowManager;
    QStringList m_environment;
};

int main(int argc, char** argv) {
    const VirtualScreen screen;
    if (!screen.works()) {
        qCritical("Xvfb does not start");
        return 1;
    }
    QCoreApplication application(argc, argv);
    TestViewerProgram test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_viewer_program.moc"

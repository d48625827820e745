// SPDX-License-Identifier: Apache-2.0
#include "fake_bulkhead.hpp"
#include "private_bus.hpp"

#include <QCoreApplication>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include <memory>

using namespace bulkhead::tests;

/// The program as it is, on a real X server with a window manager and on a Wayland compositor.
class TestTrayDesktops : public QObject {
    Q_OBJECT

    std::unique_ptr<PrivateBus> m_bus;
    std::unique_ptr<FakeBulkhead> m_fake;
    std::unique_ptr<QTemporaryDir> m_dir;
    QProcessEnvironment m_environment;

    std::unique_ptr<QProcess> start(const QString& program, const QStringList& arguments) {
        auto process = std::make_unique<QProcess>();
        process->setProcessEnvironment(m_environment);
        process->start(program, arguments);
        return process;
    }
    /// Runs to its end while the double answers; its exit code.
    int call(const QString& program, const QStringList& arguments) {
        const auto process = start(program, arguments);
        return QTest::qWaitFor([&] { return process->state() == QProcess::NotRunning; }, 30'000) ? process->exitCode()
                                                                                                 : -1;
    }
    /// Asks for the window of this title to be active; whether it is.
    bool isActive(const QString& title) {
        // openbox does not look at what came while it started before something else comes: this.
        call("xdotool", {"set_desktop", "0"});
        const QByteArray window = output("xdotool", {"search", "--onlyvisible", "--name", title}).trimmed();
        if (window.isEmpty() || window.contains('\n')) {
            return false;
        }
        call("xdotool", {"windowactivate", QString::fromLatin1(window)});
        return output("xdotool", {"getactivewindow"}).trimmed() == window;
    }
    QByteArray output(const QString& program, const QStringList& arguments) {
        const auto process = start(program, arguments);
        const bool isOver = QTest::qWaitFor([&] { return process->state() == QProcess::NotRunning; }, 30'000);
        return isOver ? process->readAllStandardOutput() : QByteArray();
    }
    static void end(QProcess& process) {
        process.kill();
        process.waitForFinished();
    }

private slots:
    void init() {
        m_bus = std::make_unique<PrivateBus>();
        m_fake = std::make_unique<FakeBulkhead>(m_bus->address());
        m_dir = std::make_unique<QTemporaryDir>();
        m_fake->addDomain("work").description["state"] = "stopped";
        m_environment = QProcessEnvironment::systemEnvironment();
        m_environment.insert("BULKHEAD_BUS_ADDRESS", m_bus->address());
        m_environment.insert("DBUS_SESSION_BUS_ADDRESS", m_bus->address());
        m_environment.insert("XDG_RUNTIME_DIR", m_dir->path());
        m_environment.remove("QT_QPA_PLATFORM");
        m_environment.remove("WAYLAND_DISPLAY");
        m_environment.remove("DISPLAY");
    }
    void cleanup() {
        m_fake.reset();
        m_bus.reset();
        m_dir.reset();
    }

    void x11_startsADomainFromTheKeyboardAndQuitsWithItsWindow() {
        const auto server = start("Xvfb", {"-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp"});
        QVERIFY(server->waitForReadyRead(30'000));
        m_environment.insert("DISPLAY", ":" + QString::fromLatin1(server->readLine()).trimmed());
        const auto manager = start("openbox", {});
        const auto program = start(BULKHEAD_TRAY_PROGRAM, {});
        // Not with --sync, which waits without an end where the window manager was not there yet to hear it.
        QTRY_VERIFY_WITH_TIMEOUT(isActive("^Bulkhead$"), 30'000);
        m_fake->prepareJob();
        QCOMPARE(call("xdotool", {"key", "ctrl+k"}), 0);
        QCOMPARE(call("xdotool", {"type", "--delay", "20", "start work"}), 0);
        QCOMPARE(call("xdotool", {"key", "Return"}), 0);
        QTRY_COMPARE(m_fake->domain("work")->calls, QString("Start "));
        QCOMPARE(call("xdotool", {"key", "alt+F4"}), 0);
        QTRY_COMPARE(program->state(), QProcess::NotRunning); // there is no tray
        QCOMPARE(program->exitCode(), 0);
        end(*manager);
        end(*server);
    }

    void wayland_runs() {
        const auto compositor = start("weston", {"--backend=headless-backend.so", "--socket=here", "--idle-time=0"});
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(m_dir->filePath("here")), 30'000);
        m_environment.insert("WAYLAND_DISPLAY", "here");
        m_environment.insert("QT_QPA_PLATFORM", "wayland");
        const auto program = start(BULKHEAD_TRAY_PROGRAM, {});
        FakeDomain& work = *m_fake->domain("work");
        work.description["state"] = "running";
        // Numbers are asked for only by a window that is shown.
        QTRY_VERIFY_WITH_TIMEOUT(work.calls.contains("Status "), 30'000);
        QCOMPARE(program->state(), QProcess::Running);
        end(*program);
        end(*compositor);
    }
};

QTEST_GUILESS_MAIN(TestTrayDesktops)
#include "tst_tray_desktops.moc"

// SPDX-License-Identifier: Apache-2.0
#include "gui_fixture.hpp"

#include "gui/single_instance.hpp"
#include "gui/tray_icon.hpp"

#include <QDBusConnection>
#include <QDBusConnectionInterface>
#include <QProcess>

using namespace bulkhead;
using namespace bulkhead::tests;

/// A desktop's side of the tray, as far as programs ask it.
class FakeNotifierWatcher : public QObject {
    Q_OBJECT
    Q_CLASSINFO("D-Bus Interface", "org.kde.StatusNotifierWatcher")
    Q_PROPERTY(bool IsStatusNotifierHostRegistered READ hasHost)

public:
    explicit FakeNotifierWatcher(const QString& busAddress)
        : m_connection(QDBusConnection::connectToBus(busAddress, "watcher")) {
        m_connection.registerObject("/StatusNotifierWatcher", this,
                                    QDBusConnection::ExportAllProperties | QDBusConnection::ExportAllSignals);
        m_connection.registerService("org.kde.StatusNotifierWatcher");
    }
    ~FakeNotifierWatcher() override {
        QDBusConnection::disconnectFromBus("watcher");
        m_connection = QDBusConnection("none"); // the last reference closes the socket
    }
    [[nodiscard]] bool hasHost() const { return m_hasHost; }
    void registerHost() {
        m_hasHost = true;
        emit StatusNotifierHostRegistered();
    }

signals:
    void StatusNotifierHostRegistered();

private:
    QDBusConnection m_connection;
    bool m_hasHost = false;
};

/// When there is a tray, and that there is one program of it in a session.
class TestTrayIcon : public QObject {
    Q_OBJECT

    std::unique_ptr<GuiFixture> m_fixture;
    PrivateBus& m_session;

public:
    explicit TestTrayIcon(PrivateBus& session)
        : m_session(session) {}

private slots:
    void init() {
        m_fixture = std::make_unique<GuiFixture>();
        m_fixture->add("work", "running");
        m_fixture->open();
    }
    void cleanup() { m_fixture.reset(); }

    void host_maySettleInLateAndLeave() {
        const gui::TrayIcon tray(*m_fixture->desk);
        QVERIFY(!tray.hasHost());
        auto watcher = std::make_unique<FakeNotifierWatcher>(m_session.address());
        watcher->registerHost();
        QTRY_VERIFY(tray.hasHost());
        watcher.reset();
        QTRY_VERIFY(!tray.hasHost());
        watcher = std::make_unique<FakeNotifierWatcher>(m_session.address());
        watcher->registerHost();
        QTRY_VERIFY(tray.hasHost());
    }

    void host_mayBeThereBefore() {
        FakeNotifierWatcher watcher(m_session.address());
        watcher.registerHost();
        const gui::TrayIcon tray(*m_fixture->desk);
        QTRY_VERIFY(tray.hasHost());
    }

    void closing_theWindowIsTold() {
        const QSignalSpy closed(m_fixture->window.get(), &gui::MainWindow::closed);
        m_fixture->window->close();
        QCOMPARE(closed.count(), 1);
        QVERIFY(!m_fixture->window->isVisible());
        m_fixture->window->present();
        QVERIFY(m_fixture->window->isVisible());
        QCOMPARE(m_fixture->row("work")->info.state, QString("running"));
    }

    void program_runsAndTellsItsVersion() {
        QProcess program;
        program.start(BULKHEAD_TRAY_PROGRAM, {"--version"});
        QVERIFY(program.waitForFinished());
        QVERIFY(program.readAllStandardOutput().startsWith("bulkhead-tray "));
        program.start(BULKHEAD_TRAY_PROGRAM, {"--background"});
        QDBusConnectionInterface* bus = QDBusConnection::sessionBus().interface();
        QTRY_VERIFY(bus->isServiceRegistered("org.bulkhead.Tray").value());
        program.terminate();
        QVERIFY(program.waitForFinished());
        QTRY_VERIFY(!bus->isServiceRegistered("org.bulkhead.Tray").value());
    }

    void secondInstance_asksTheFirstToShowItself() {
        QDBusConnection first = QDBusConnection::connectToBus(m_session.address(), "first");
        gui::SingleInstance owner;
        const QSignalSpy asked(&owner, &gui::SingleInstance::presentRequested);
        QVERIFY(first.registerObject("/org/bulkhead/Tray", &owner, QDBusConnection::ExportScriptableSlots));
        QVERIFY(first.registerService("org.bulkhead.Tray"));
        gui::SingleInstance quiet;
        QVERIFY(!quiet.claim(true));
        QCOMPARE(asked.count(), 0);
        QProcess program;
        program.start(BULKHEAD_TRAY_PROGRAM, {});
        QTRY_COMPARE(asked.count(), 1);
        QTRY_COMPARE(program.state(), QProcess::NotRunning);
        QCOMPARE(program.exitCode(), 0);
        QDBusConnection::disconnectFromBus("first");
    }
};

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    PrivateBus session;
    qputenv("DBUS_SESSION_BUS_ADDRESS", session.address().toUtf8());
    TestTrayIcon subject(session);
    return QTest::qExec(&subject, argc, argv);
}

#include "tst_tray_icon.moc"

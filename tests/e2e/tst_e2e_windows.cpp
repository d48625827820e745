// SPDX-License-Identifier: Apache-2.0
// Windows of real guests as windows of a host: an X server in memory with a window manager is the user's screen,
// xdotool their hands. Pictures of each step are left in BULKHEAD_ARTEFACTS.
#include "e2e_support.hpp"

#include <QRect>
#include <QScopeGuard>

#include <optional>

using namespace bulkhead::e2e;

namespace {

constexpr int kWindowMs = 60'000; // an editor needs some seconds under emulation, and this machine may be busy

QJsonArray guestWindows(const QString& domain) {
    return jsonRows({"domain", "windows", domain});
}

/// The first window of that class, as the guest says.
std::optional<QJsonObject> guestWindow(const QString& domain, const QString& appClass) {
    for (const auto& row : guestWindows(domain)) {
        if (row.toObject().value("class").toString().contains(appClass, Qt::CaseInsensitive)) {
            return row.toObject();
        }
    }
    return std::nullopt;
}

QSize sizeOf(const std::optional<QJsonObject>& window) {
    return window ? QSize(window->value("width").toInt(), window->value("height").toInt()) : QSize();
}

/// What the user's desktop shows.
QStringList hostWindows(const QString& domain) {
    const auto found = run({"xdotool", "search", "--onlyvisible", "--class", "bulkhead-" + domain});
    return QString::fromLatin1(found.output).split('\n', Qt::SkipEmptyParts);
}

/// Those that show a window of the guest: their titles have more than the domain's name.
QStringList guestsHostWindows(const QString& domain) {
    const auto found = run({"xdotool", "search", "--onlyvisible", "--name", "^\\[" + domain + "\\] ."});
    return QString::fromLatin1(found.output).split('\n', Qt::SkipEmptyParts);
}

QString titleOf(const QString& window) {
    return QString::fromUtf8(run({"xdotool", "getwindowname", window}).output.trimmed());
}

QRect geometryOf(const QString& window) {
    const auto text = QString::fromLatin1(run({"xdotool", "getwindowgeometry", "--shell", window}).output);
    const auto number = [&](const char* name) {
        return QRegularExpression(QString(name) + "=(-?\\d+)").match(text).captured(1).toInt();
    };
    return {number("X"), number("Y"), number("WIDTH"), number("HEIGHT")};
}

void keepPicture(const QString& name) {
    const QString folder = qEnvironmentVariable("BULKHEAD_ARTEFACTS");
    if (!folder.isEmpty()) {
        QDir().mkpath(folder);
        run({qEnvironmentVariable("BULKHEAD_GRAB"), folder + "/" + name + ".png"});
    }
}

Outcome inDomain(const QString& command) {
    return cli({"run", "--domain", "work", "--", "sh", "-c", command});
}

/// Where the guest's pointer is, in its screen's pixels.
QPoint guestPointer() {
    const auto said =
        inDomain("python3 -c 'import ctypes as c; x=c.CDLL(\"libX11.so.6\"); x.XOpenDisplay.restype=c.c_void_p; "
                 "d=c.c_void_p(x.XOpenDisplay(None)); x.XDefaultRootWindow.restype=c.c_ulong; "
                 "r=x.XDefaultRootWindow(d); v=[c.c_long() for _ in range(7)]; "
                 "x.XQueryPointer(d,c.c_ulong(r),*[c.byref(i) for i in v]); print(v[2].value,v[3].value)'")
            .output.trimmed()
            .split(' ');
    return {said.value(0).toInt(), said.value(1).toInt()};
}

/// Where an output of the guest is within its screen.
QRect headArea(int head) {
    const auto found =
        QRegularExpression(QString("Virtual-%1 (?:dis)?connected [a-z ]*(\\d+)x(\\d+)\\+(\\d+)\\+(\\d+)").arg(head + 1))
            .match(QString::fromLatin1(inDomain("xrandr").output));
    const auto number = [&](int group) { return found.captured(group).toInt(); };
    return {number(3), number(4), number(1), number(2)};
}

/// Clicks as a user does who sees where the pointer is: the guest's pointer driver learns of a new output some moments
/// after the output is there, longer on a busy machine, and until then the pointer is elsewhere.
bool clickInto(const QString& hostWindow, int head, const QPoint& at) {
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < kWindowMs) {
        for (const QPoint& to : {at - QPoint(3, 2), at}) {
            run({"xdotool", "mousemove", "--window", hostWindow, QString::number(to.x()), QString::number(to.y())});
        }
        if (headArea(head).contains(guestPointer())) {
            return run({"xdotool", "click", "1"}).status == 0;
        }
    }
    return false;
}

/// The window manager may be slower than xdotool's own waiting, which has no end.
bool activate(const QString& hostWindow) {
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < kWindowMs) {
        run({"xdotool", "windowactivate", hostWindow});
        if (run({"xdotool", "getactivewindow"}).output.trimmed() == hostWindow.toLatin1()) {
            return true;
        }
        QTest::qWait(50);
    }
    return false;
}

} // namespace

class TestE2eWindows : public QObject {
    Q_OBJECT

    QProcess m_screen;
    QProcess m_windowManager;
    QString m_editor; ///< the host window

    /// Between a host window and its picture, both axes.
    QSize m_frame;

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        m_screen.setProgram("Xvfb");
        m_screen.setArguments({"-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"});
        m_screen.start();
        QVERIFY(m_screen.waitForReadyRead(20'000));
        qputenv("DISPLAY", ":" + m_screen.readLine().trimmed());
        qputenv("QT_QPA_PLATFORM", "xcb");
        m_windowManager.setProgram("openbox");
        m_windowManager.start();
        QVERIFY(m_windowManager.waitForStarted());
        run({"xsetroot", "-solid", "#50606e"});
        COMPARE_STATUS(cli({"domain", "create", "work", "--template", "desktop", "--label", "blue"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "work"}), 0);
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            keepPicture("failed");
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
            qInfo().noquote() << cli({"domain", "windows", "work"}).text();
        }
        cli({"domain", "rm", "--now", "--force", "work"});
        for (QProcess* process : {&m_windowManager, &m_screen}) {
            process->terminate();
            process->waitForFinished();
        }
    }

    void appsAreListed() {
        QStringList apps;
        for (const auto& row : jsonRows({"domain", "apps", "work"})) {
            apps << row.toObject().value("id").toString();
        }
        QVERIFY2(apps.contains("org.xfce.mousepad") && apps.contains("firefox-esr") && apps.contains("pcmanfm"),
                 qPrintable(apps.join(' ')));
        const auto unknown = cli({"domain", "launch", "work", "no.such.app"});
        COMPARE_STATUS(unknown, 4);
        QVERIFY2(unknown.error.contains("no.such.app"), unknown.text().constData());
    }

    void editor_getsAWindowInTheDomainsFrame() {
        COMPARE_STATUS(cli({"domain", "launch", "work", "org.xfce.mousepad"}), 0);
        QTRY_VERIFY_WITH_TIMEOUT(guestWindow("work", "mousepad"), kWindowMs);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 1, kWindowMs);
        m_editor = guestsHostWindows("work").front();
        QTRY_VERIFY2_WITH_TIMEOUT(titleOf(m_editor).startsWith("[work] "), qPrintable(titleOf(m_editor)), kWindowMs);
        QTest::qWait(2000); // for the picture: the program draws itself
        keepPicture("1-editor");
    }

    void resizing_givesTheGuestThatSize() {
        const auto fits = [&] {
            const auto guest = guestWindow("work", "mousepad");
            m_frame = geometryOf(m_editor).size() - sizeOf(guest);
            return guest && m_frame.width() > 0 && m_frame.width() < 60 && m_frame.height() > 0 &&
                   m_frame.height() < 120;
        };
        QTRY_VERIFY_WITH_TIMEOUT(fits(), 20'000);
        for (const QSize size : {QSize(901, 703), QSize(1130, 640)}) {
            run({"xdotool", "windowsize", m_editor, QString::number(size.width()), QString::number(size.height())});
            QTRY_COMPARE_WITH_TIMEOUT(geometryOf(m_editor).size(), size, 20'000);
            QTRY_COMPARE_WITH_TIMEOUT(sizeOf(guestWindow("work", "mousepad")), size - m_frame, 20'000);
            // The X server of the guest says so, too.
            const auto mode =
                QString("%1x%2+").arg(size.width() - m_frame.width()).arg(size.height() - m_frame.height());
            QTRY_VERIFY2_WITH_TIMEOUT(inDomain("xrandr").output.contains(mode.toLatin1()),
                                      inDomain("xrandr").text().constData(), 20'000);
        }
        QTest::qWait(1500);
        keepPicture("2-resized");
    }

    void typingAndClicking_reachTheGuestsWindow() {
        COMPARE_STATUS(cli({"domain", "launch", "work", "lxterminal"}), 0);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 2, kWindowMs);
        QStringList windows = guestsHostWindows("work");
        windows.removeOne(m_editor);
        const QString terminal = windows.front();
        run({"xdotool", "windowmove", m_editor, "20", "40"});
        run({"xdotool", "windowmove", terminal, "700", "420"});
        QVERIFY(activate(terminal));
        QVERIFY(clickInto(terminal, 1, {300, 200}));
        const auto isActive = [](const char* appClass) {
            const auto window = guestWindow("work", appClass);
            return window && window->value("active").toBool();
        };
        QTRY_VERIFY_WITH_TIMEOUT(isActive("terminal"), 20'000);
        QTest::qWait(1000);
        run({"xdotool", "type", "--delay", "60", "echo 'Typed: {Umlaut} #1' > ~/typed\n"});
        QTRY_COMPARE_WITH_TIMEOUT(inDomain("cat ~/typed").output, QByteArray("Typed: {Umlaut} #1\n"), 20'000);
        keepPicture("3-terminal");
        // The other window, by a click; and the pointer is at that very pixel of its head.
        QVERIFY(activate(m_editor));
        QVERIFY(clickInto(m_editor, 0, {220, 330}));
        QTRY_VERIFY_WITH_TIMEOUT(isActive("mousepad"), 20'000);
        const QPoint before = guestPointer();
        run({"xdotool", "mousemove", "--window", m_editor, "263", "371"});
        QTRY_COMPARE_WITH_TIMEOUT(guestPointer() - before, QPoint(43, 41), 20'000);
        run({"xdotool", "type", "--delay", "60", "Hello from the host"});
        QTRY_VERIFY2_WITH_TIMEOUT(titleOf(m_editor).startsWith("[work] *"), qPrintable(titleOf(m_editor)), 20'000);
        QTest::qWait(1000);
        keepPicture("4-typed");
        COMPARE_STATUS(inDomain("pkill lxterminal"), 0);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 1, 20'000);
    }

    void viewerThatDies_losesNothing() {
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(pidsOf("bulkhead-viewer"))});
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 0, 20'000);
        QVERIFY(guestWindow("work", "mousepad"));
        QProcess::startDetached("bulkhead-viewer", {"work"});
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 1, 20'000);
        m_editor = guestsHostWindows("work").front();
        QTRY_VERIFY2_WITH_TIMEOUT(titleOf(m_editor).startsWith("[work] *"), qPrintable(titleOf(m_editor)), 20'000);
    }

    void daemonThatDies_losesNothing() {
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 1, 20'000);
        QTRY_VERIFY_WITH_TIMEOUT(guestWindow("work", "mousepad"), 20'000);
        const auto before = sizeOf(guestWindow("work", "mousepad"));
        const auto size = geometryOf(guestsHostWindows("work").front()).size() - QSize(80, 60);
        run({"xdotool", "windowsize", guestsHostWindows("work").front(), QString::number(size.width()),
             QString::number(size.height())});
        QTRY_COMPARE_WITH_TIMEOUT(sizeOf(guestWindow("work", "mousepad")), before - QSize(80, 60), 30'000);
        m_editor = guestsHostWindows("work").front();
    }

    void snapshotDisturbsNoWindow_andAForkShowsTheTypedText() {
        COMPARE_STATUS(cli({"snapshot", "create", "work"}), 0);
        QCOMPARE(guestsHostWindows("work"), QStringList{m_editor});
        QVERIFY(activate(m_editor));
        run({"xdotool", "type", "--delay", "60", " and on"});
        COMPARE_STATUS(cli({"snapshot", "fork", "work", "copy", "--label", "red"}), 0);
        COMPARE_STATUS(cli({"domain", "start", "copy"}), 0);
        QProcess::startDetached("bulkhead-viewer", {"copy"});
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("copy").size(), 1, kWindowMs);
        const auto copy = guestsHostWindows("copy").front();
        // It was never saved, so it is the memory that has it.
        QTRY_VERIFY2_WITH_TIMEOUT(titleOf(copy).startsWith("[copy] *"), qPrintable(titleOf(copy)), kWindowMs);
        run({"xdotool", "windowmove", m_editor, "10", "20"});
        run({"xdotool", "windowmove", copy, "420", "330"});
        QVERIFY(activate(copy));
        QTest::qWait(2000); // for the picture
        keepPicture("5-fork");
        // What the viewer shows is the window's own part of the screen: it has no room to spare.
        const auto fits = [&] { return geometryOf(copy).size() - m_frame == sizeOf(guestWindow("copy", "mousepad")); };
        QTRY_VERIFY_WITH_TIMEOUT(fits(), 20'000);
        QVERIFY(titleOf(m_editor).startsWith("[work] *"));
        COMPARE_STATUS(cli({"domain", "rm", "--now", "copy", "--force"}), 0);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("copy").size(), 0, 20'000);
    }

    void closingAsks_andCloses() {
        // There is text that is not saved, so the editor asks; its dialog is within its window.
        QVERIFY(activate(m_editor));
        run({"xdotool", "key", "alt+F4"});
        QTest::qWait(4000);
        keepPicture("7-dialog");
        QVERIFY(guestWindow("work", "mousepad"));
        QCOMPARE(guestsHostWindows("work").size(), 1);
        // "Don't Save" is what ends it, so the dialog was there and has the keyboard.
        run({"xdotool", "key", "alt+d"});
        QTRY_VERIFY_WITH_TIMEOUT(!guestWindow("work", "mousepad"), 20'000);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 0, 20'000);
        QVERIFY(inDomain("pgrep mousepad").status != 0);
    }

    void guestThatDies_isSaidInTheWindow() {
        COMPARE_STATUS(cli({"domain", "launch", "work", "org.xfce.mousepad"}), 0);
        QTRY_COMPARE_WITH_TIMEOUT(guestsHostWindows("work").size(), 1, kWindowMs);
        QTest::qWait(3000);
        const auto window = guestsHostWindows("work").front();
        keepPicture("8-before");
        run({"sh", "-c", "kill -9 " + QString::fromLatin1(emulatorPids())});
        QTRY_VERIFY_WITH_TIMEOUT(stateOf("work") != "running", 20'000);
        QTest::qWait(2000);
        keepPicture("9-guest-died");
        // The picture of a window that looks alive is the one thing that must not be left.
        const QString folder = qEnvironmentVariable("BULKHEAD_ARTEFACTS");
        QVERIFY(run({"cmp", folder + "/8-before.png", folder + "/9-guest-died.png"}).status == 1);
        QVERIFY(hostWindows("work").contains(window) || hostWindows("work").isEmpty());
    }
};

QTEST_GUILESS_MAIN(TestE2eWindows)
#include "tst_e2e_windows.moc"

// SPDX-License-Identifier: Apache-2.0
// The desktop as a user has it: the tray's window, an editor in one domain and a browser in another, each window in its
// domain's frame. The window is read as a screen reader does, and used by its mouse and keyboard. Pictures of each step
// are left in BULKHEAD_ARTEFACTS.
#include "e2e_support.hpp"
#include "screen_reader.hpp"

#include <QImage>
#include <QTemporaryDir>

#include <functional>

using namespace bulkhead::e2e;

namespace {

/// A browser is much code, all of which is translated for the first time; and this machine may be busy.
constexpr int kBrowserMs = 900'000;
constexpr int kWindowMs = 120'000;
constexpr int kTrayMs = 60'000;

/// Nothing else on the screen has it.
const QColor kPage(0x1e, 0xa8, 0x6a);
/// Where the two are put; the editor covers a corner of the browser.
const QRect kBrowserAt(20, 60, 860, 560);
const QRect kEditorAt(760, 430, 800, 520);

/// Waits by the clock, however long each look takes. A look that found it is the last: another may come upon a window
/// that is just being drawn anew.
bool comesTrue(const std::function<bool()>& holds, int ms) {
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < ms) {
        if (holds()) {
            return true;
        }
        QTest::qWait(100);
    }
    return holds();
}

/// The host's window that shows a window of the guest, by its title; empty: none.
QString hostWindow(const QString& title) {
    const auto found = run({"xdotool", "search", "--onlyvisible", "--name", title}).output;
    return QString::fromLatin1(found).split('\n', Qt::SkipEmptyParts).value(0);
}

void place(const QString& window, const QRect& area) {
    run({"xdotool", "windowsize", window, QString::number(area.width()), QString::number(area.height())});
    run({"xdotool", "windowmove", window, QString::number(area.x()), QString::number(area.y())});
}

/// Asks for it until the window manager has done it.
bool activate(const QString& window) {
    return comesTrue(
        [&] {
            // openbox looks at what came while it started only when something else comes: this.
            run({"xdotool", "set_desktop", "0"});
            run({"xdotool", "windowactivate", window});
            return run({"xdotool", "getactivewindow"}).output.trimmed() == window.toLatin1();
        },
        kTrayMs);
}

QImage picture(const QString& name) {
    const QString folder = qEnvironmentVariable("BULKHEAD_ARTEFACTS");
    QDir().mkpath(folder);
    const QString file = folder + "/" + name + ".png";
    run({qEnvironmentVariable("BULKHEAD_GRAB"), file});
    return QImage(file);
}

/// How much of an area has the page's colour, in percent.
int pageShare(const QImage& screen, const QRect& area) {
    const QRect inside = area.intersected(screen.rect());
    int found = 0;
    int looked = 0;
    for (int y = inside.top(); y <= inside.bottom(); y += 4) {
        for (int x = inside.left(); x <= inside.right(); x += 4) {
            const QColor pixel = screen.pixelColor(x, y);
            ++looked;
            found += qAbs(pixel.red() - kPage.red()) < 6 && qAbs(pixel.green() - kPage.green()) < 6 &&
                     qAbs(pixel.blue() - kPage.blue()) < 6;
        }
    }
    return looked == 0 ? 0 : found * 100 / looked;
}

/// Whether the head of a window has this colour, right of the domain's name and the pattern: a good part of its height.
bool hasHead(const QImage& screen, const QRect& window, const std::function<bool(const QColor&)>& isColour) {
    int found = 0;
    for (int y = window.top(); y < window.top() + 60; ++y) {
        found += isColour(screen.pixelColor(window.right() - 60, y)) ? 1 : 0;
    }
    return found >= 12;
}

bool isBlue(const QColor& colour) {
    return colour.blue() > 150 && colour.red() < 70;
}

bool isRed(const QColor& colour) {
    return colour.red() > 150 && colour.blue() < 80 && colour.green() < 80;
}

} // namespace

class TestE2eTray : public QObject {
    Q_OBJECT

    QTemporaryDir m_runtime;
    QProcess m_screen;
    QProcess m_windowManager;
    QProcess m_session;
    QProcess m_tray;
    ScreenReader m_reader;
    QString m_editor;
    QString m_browser;

    [[nodiscard]] QByteArray read() const { return m_reader.names().join('\n').toUtf8(); }
    /// The row of a domain says so.
    [[nodiscard]] bool isInList(const QString& domain, const QString& state) const {
        return m_reader.find(domain + ", " + state).has_value();
    }
    /// A click of the mouse in its middle.
    void click(const QString& beginning) const {
        const auto item = m_reader.find(beginning);
        QVERIFY2(item, read().constData());
        const QPoint at = m_reader.area(*item).center();
        run({"xdotool", "mousemove", QString::number(at.x()), QString::number(at.y()), "click", "1"});
    }
    /// As a screen reader does, when the button is there.
    void press(const QString& button) const {
        const auto done = [&] {
            const auto item = m_reader.exactly(button);
            return item && m_reader.press(*item);
        };
        QVERIFY2(comesTrue(done, kTrayMs), read().constData());
    }
    /// Opens an app by a click on its tile, when the page of its domain shows it.
    void launch(const QString& domain, const QString& app) {
        QVERIFY(activate(hostWindow("^Bulkhead$")));
        click(domain + ", ");
        QVERIFY2(comesTrue([&] { return m_reader.exactly("Stop " + domain) && m_reader.exactly(app); }, kWindowMs),
                 read().constData());
        click(app);
    }

private slots:
    void initTestCase() {
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        m_screen.start("Xvfb", {"-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"});
        QVERIFY(m_screen.waitForReadyRead(60'000));
        qputenv("DISPLAY", ":" + m_screen.readLine().trimmed());
        qputenv("QT_QPA_PLATFORM", "xcb");
        qputenv("XDG_RUNTIME_DIR", m_runtime.path().toUtf8());
        qputenv("QT_LINUX_ACCESSIBILITY_ALWAYS_ON", "1");
        m_session.start("dbus-daemon", {"--session", "--print-address", "--nofork", "--nopidfile"});
        QVERIFY(m_session.waitForReadyRead(60'000));
        const auto session = m_session.readLine().trimmed();
        qputenv("DBUS_SESSION_BUS_ADDRESS", session);
        m_windowManager.start("openbox", QStringList());
        QVERIFY(m_windowManager.waitForStarted());
        QVERIFY(m_reader.open(QString::fromLatin1(session)));
        m_tray.setProcessChannelMode(QProcess::ForwardedChannels);
        m_tray.start("bulkhead-tray", QStringList());
        QVERIFY(m_tray.waitForStarted());
        QVERIFY(comesTrue([&] { return !hostWindow("^Bulkhead$").isEmpty(); }, kTrayMs));
        run({"xsetroot", "-solid", "#50606e"});
    }
    void cleanupTestCase() {
        if (QTest::currentTestFailed()) {
            picture("failed");
            qInfo().noquote() << read();
            qInfo().noquote() << run({"ph-daemon", "log"}).output.right(4000);
            qInfo().noquote() << cli({"domain", "windows", "browser"}).text();
        }
        cli({"domain", "rm", "--now", "--force", "work"});
        cli({"domain", "rm", "--now", "--force", "browser"});
        for (QProcess* process : {&m_tray, &m_windowManager, &m_session, &m_screen}) {
            process->terminate();
            process->waitForFinished();
        }
    }

    void domainsOfTheCommandLine_appear() {
        COMPARE_STATUS(cli({"domain", "create", "work", "--template", "desktop", "--label", "blue"}), 0);
        COMPARE_STATUS(cli({"domain", "create", "browser", "--template", "desktop", "--label", "red"}), 0);
        QVERIFY2(comesTrue([&] { return isInList("work", "Stopped") && isInList("browser", "Stopped"); }, kTrayMs),
                 read().constData());
    }

    void start_byTheKeyboard() {
        QVERIFY(activate(hostWindow("^Bulkhead$")));
        run({"xdotool", "key", "ctrl+k"});
        run({"xdotool", "type", "--delay", "30", "Start work"});
        QVERIFY2(comesTrue([&] { return m_reader.find("Start work").has_value(); }, kTrayMs), read().constData());
        run({"xdotool", "key", "Return"});
        QVERIFY2(comesTrue([&] { return isInList("work", "Running"); }, kPatienceMs), read().constData());
        QCOMPARE(stateOf("work"), QString("running"));
    }

    void start_byTheButton() {
        click("browser, ");
        press("Start browser");
        QVERIFY2(comesTrue([&] { return isInList("browser", "Running"); }, kPatienceMs), read().constData());
        QCOMPARE(stateOf("browser"), QString("running"));
    }

    void browserOpensALocalPage_byAClick() {
        const auto html = QString("<title>A local page</title><body style=background:%1>").arg(kPage.name());
        COMPARE_STATUS(cli({"run", "--domain", "browser", "--", "sh", "-c", "echo '" + html + "' > ~/page.html"}), 0);
        COMPARE_STATUS(cli({"run", "--domain", "browser", "--user", "root", "--", "sed", "-i",
                            "s|\"StartPage\": \"none\"|\"StartPage\": \"homepage\", \"URL\": "
                            "\"file:///home/user/page.html\"|",
                            "/etc/firefox/policies/policies.json"}),
                       0);
        launch("browser", "Firefox ESR");
    }

    void editorOpens_byAClick() { // while the browser is on its way
        launch("work", "Mousepad");
        QVERIFY(comesTrue([&] { return !(m_editor = hostWindow("^\\[work\\] .*Mousepad")).isEmpty(); }, kWindowMs));
        picture("1-tray-and-editor");
    }

    void eachIsInItsOwnFrame() {
        QVERIFY(
            comesTrue([&] { return !(m_browser = hostWindow("^\\[browser\\] A local page")).isEmpty(); }, kBrowserMs));
        place(m_browser, kBrowserAt);
        place(m_editor, kEditorAt);
        QVERIFY(activate(m_browser));
        QVERIFY(activate(m_editor));
        // The page fills what is the page's, left of the editor and below the browser's own bars.
        const QRect page(kBrowserAt.left() + 20, kBrowserAt.top() + 160, 680, 340);
        QByteArray seen;
        const auto isRight = [&] {
            const QImage screen = picture("2-browser-and-editor");
            const int inPlace = pageShare(screen, page);
            const int inEditor = pageShare(screen, kEditorAt);
            const bool isEditorBlue = hasHead(screen, kEditorAt, isBlue) && !hasHead(screen, kEditorAt, isRed);
            const bool isBrowserRed = hasHead(screen, kBrowserAt, isRed) && !hasHead(screen, kBrowserAt, isBlue);
            seen = "page " + QByteArray::number(inPlace) + " %, in the editor " + QByteArray::number(inEditor) +
                   " %, the editor's frame is " + (isEditorBlue ? "blue" : "not blue") + ", the browser's is " +
                   (isBrowserRed ? "red" : "not red");
            return inPlace > 95 && inEditor == 0 && isEditorBlue && isBrowserRed;
        };
        QVERIFY2(comesTrue(isRight, kBrowserMs), seen.constData());
        for (const auto& [domain, has, hasNot] :
             {std::tuple{"work", "mousepad", "firefox"}, std::tuple{"browser", "firefox", "mousepad"}}) {
            const auto programs = cli({"run", "--domain", domain, "--", "ps", "-eo", "comm"}).output;
            QVERIFY2(programs.contains(has) && !programs.contains(hasNot), programs.constData());
        }
    }

    void daemonThatDies_isSaidAndFoundAgain() {
        QVERIFY(activate(hostWindow("^Bulkhead$")));
        COMPARE_STATUS(run({"ph-daemon", "kill"}), 0);
        QVERIFY2(comesTrue([&] { return m_reader.find("Bulkhead’s service is not running").has_value(); }, kTrayMs),
                 read().constData());
        picture("3-no-daemon");
        COMPARE_STATUS(run({"ph-daemon", "start"}), 0);
        QVERIFY2(comesTrue([&] { return isInList("work", "Running") && isInList("browser", "Running"); }, kTrayMs),
                 read().constData());
        QVERIFY(!hostWindow("^\\[browser\\] A local page").isEmpty() && !hostWindow("^\\[work\\] ").isEmpty());
    }

    void stop_byTheButton() {
        click("work, ");
        press("Stop work");
        QVERIFY2(comesTrue([&] { return isInList("work", "Stopped"); }, kWindowMs), read().constData());
        QCOMPARE(stateOf("work"), QString("stopped"));
        QCOMPARE(stateOf("browser"), QString("running"));
        picture("4-stopped");
    }
};

QTEST_GUILESS_MAIN(TestE2eTray)
#include "tst_e2e_tray.moc"

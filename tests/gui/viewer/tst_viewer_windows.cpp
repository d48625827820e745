// SPDX-License-Identifier: Apache-2.0
#include "viewer/viewer.hpp"

#include "children.hpp"
#include "fake_guest.hpp"

#include <QApplication>
#include <QDir>
#include <QFile>
#include <QKeyEvent>
#include <QScreen>
#include <QTest>

using namespace bulkhead;
using namespace bulkhead::test;
using viewer::FramedWindow;
using viewer::Viewer;
using viewer::ViewerOptions;

namespace {

constexpr int kPatience = 30000; ///< ms; emulation on a busy machine

/// Keeps what a window looks like for a person to look at.
void keepPicture(FramedWindow& window, const char* name) {
    const QString folder = QStringLiteral(BULKHEAD_BUILD_DIR "/artefacts/viewer");
    QDir().mkpath(folder);
    window.grab().save(folder + QLatin1Char('/') + QLatin1String(name) + QLatin1String(".png"));
}

bool hasPicture(FramedWindow& window) {
    return !window.canvas().pictureSize().isEmpty();
}

} // namespace

/// The memory that this process holds, in KiB.
long residentKilobytes() {
    QFile file("/proc/self/status");
    if (!file.open(QIODevice::ReadOnly)) {
        return 0;
    }
    for (const QByteArray& line : file.readAll().split('\n')) {
        if (line.startsWith("VmRSS:")) {
            return line.mid(6).trimmed().split(' ').first().toLong();
        }
    }
    return 0;
}

/// Waits for a command of that kind; the others are dropped.
std::optional<session_stream::Command> await(SessionPeer& peer, session_stream::CommandKind kind) {
    std::optional<session_stream::Command> found;
    (void)QTest::qWaitFor(
        [&] {
            for (const session_stream::Command& command : peer.commands()) {
                if (command.kind == kind) {
                    found = command;
                }
            }
            return found.has_value();
        },
        kPatience);
    return found;
}

/// A viewer whose guest has one window, shown and alive.
struct Scene {
    explicit Scene(ScreenWithoutGuest* screen, const ViewerOptions& options = {})
        : domain(screen)
        , viewer(domain, options) {
        QObject::connect(&viewer, &Viewer::finished, &viewer, [this](int exitStatus, const QString& why) {
            status = exitStatus;
            words = why;
        });
        viewer.start();
    }
    /// QEMU serves the next test, too: it does not bear a client that goes while it links channels.
    ~Scene() {
        viewer.quit();
        (void)QTest::qWaitFor([this] { return status.has_value(); }, kPatience);
    }
    bool showOne() {
        const bool opened = QTest::qWaitFor([this] { return domain.peer != nullptr; }, kPatience);
        if (!opened) {
            return false;
        }
        domain.peer->up();
        domain.peer->window(7, 0, "Untitled - Editor");
        return QTest::qWaitFor([this] { return viewer.windowCount() == 1 && lives(); }, kPatience);
    }
    FramedWindow& window() { return *viewer.windows().front(); }
    bool lives() { return hasPicture(window()) && window().overlay().title.isEmpty(); }

    FakeDomain domain;
    Viewer viewer;
    std::optional<int> status;
    QString words;
};

class TestViewerWindows : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_screen = std::make_unique<ScreenWithoutGuest>(2); }

    void aGuestWindowBecomesAFramedWindow() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        QCOMPARE(scene.window().windowTitle(), QString("[work] Untitled - Editor"));
        QCOMPARE(scene.window().canvas().pixels(), QSize(720, 400));
        keepPicture(scene.window(), "window");
        scene.domain.peer->gone(7);
        QTRY_COMPARE_WITH_TIMEOUT(scene.viewer.windowCount(), std::size_t{0}, kPatience);
        QVERIFY(scene.viewer.windows().empty()); // it has had its window: nothing stands in for it
        QVERIFY(!scene.status);
    }

    void untilAWindowComesAnotherStandsIn() {
        Scene scene(m_screen.get());
        QTRY_COMPARE_WITH_TIMEOUT(scene.viewer.windows().size(), std::size_t{1}, kPatience);
        QTRY_COMPARE_WITH_TIMEOUT(scene.window().overlay().title, QString("work is starting its desktop"), kPatience);
        scene.domain.peer->up();
        QTRY_COMPARE_WITH_TIMEOUT(scene.window().overlay().title, QString("work is running"), kPatience);
        keepPicture(scene.window(), "stand-in");
        // The user need not wait for a session.
        Q_EMIT scene.window().actionChosen();
        QTRY_VERIFY_WITH_TIMEOUT(scene.lives(), kPatience);
        QCOMPARE(scene.window().windowTitle(), QString("[work] whole desktop"));
        keepPicture(scene.window(), "whole-desktop");
        scene.window().close();
        QTRY_COMPARE_WITH_TIMEOUT(scene.status.value_or(-1), 0, kPatience);
    }

    void inTheBackgroundNothingShows() {
        ViewerOptions options;
        options.background = true;
        Scene scene(m_screen.get(), options);
        QVERIFY(scene.showOne());
    }

    void theSizeIsTheHosts() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        scene.domain.peer->commands();
        scene.window().resize(scene.window().size() + QSize(57, 33));
        scene.window().resize(scene.window().size() + QSize(0, 2));
        const auto resize = await(*scene.domain.peer, session_stream::CommandKind::ResizeWindow);
        QVERIFY(resize.has_value());
        QCOMPARE(resize->window, 7U);
        QCOMPARE(resize->a, 777U);
        QCOMPARE(resize->b, 435U);
    }

    void closingAsksTheProgram() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        scene.domain.peer->commands();
        scene.window().close();
        const auto close = await(*scene.domain.peer, session_stream::CommandKind::CloseWindow);
        QVERIFY(close.has_value());
        QCOMPARE(close->window, 7U);
        QVERIFY(scene.window().isVisible());
        QVERIFY(!scene.window().look().stateWords.isEmpty());
        scene.domain.peer->gone(7);
        QTRY_COMPARE_WITH_TIMEOUT(scene.viewer.windowCount(), std::size_t{0}, kPatience);
    }

    void theGuestFollowsTheHostsKeyboard() {
        qputenv("XKB_DEFAULT_LAYOUT", "de");
        Scene scene(m_screen.get());
        QTRY_VERIFY_WITH_TIMEOUT(scene.domain.peer != nullptr, kPatience);
        scene.domain.peer->up();
        bool keyboard = false;
        bool dpi = false;
        const auto both = [&] {
            for (const session_stream::Command& command : scene.domain.peer->commands()) {
                keyboard = keyboard || (command.kind == session_stream::CommandKind::Keyboard &&
                                        QByteArray(command.text.data()).count('\n') == 3);
                dpi = dpi || (command.kind == session_stream::CommandKind::Dpi && command.a >= 48);
            }
            return keyboard && dpi;
        };
        QVERIFY(QTest::qWaitFor(both, kPatience));
    }

    /// As far as QEMU's devices: the scancodes, the buttons, and the place.
    void keysAndPointerReachTheMachine() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        viewer::Canvas& canvas = scene.window().canvas();
        QKeyEvent press(QEvent::KeyPress, Qt::Key_Right, {}, 106 + 8, 0, 0, {}, false);
        QKeyEvent release(QEvent::KeyRelease, Qt::Key_Right, {}, 106 + 8, 0, 0, {}, false);
        QTest::mouseMove(&canvas, QPoint(360, 200));
        QTest::mousePress(&canvas, Qt::RightButton, {}, QPoint(360, 200));
        QTest::mouseRelease(&canvas, Qt::RightButton, {}, QPoint(360, 200));
        QApplication::sendEvent(&canvas, &press);
        QApplication::sendEvent(&canvas, &release);
        const auto seen = [this](const char* text) { return m_screen->inputTrace().contains(text); };
        QTRY_VERIFY_WITH_TIMEOUT(seen("key qcode right, down 1") && seen("key qcode right, down 0"), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(seen("button right, down 1") && seen("button right, down 0"), kPatience);
        // No guest has switched the tablet on, so the way there is told as a difference from the corner.
        QTRY_VERIFY_WITH_TIMEOUT(seen("axis x, value 360") && seen("axis y, value 200"), kPatience);
    }

    void statesShowInWords() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        scene.domain.setState("paused");
        QCOMPARE(scene.window().overlay().title, QString("work is paused"));
        QCOMPARE(scene.window().look().stateWords, QString("work is paused"));
        keepPicture(scene.window(), "paused");
        scene.domain.setState("running");
        QVERIFY(scene.window().overlay().title.isEmpty());
        QVERIFY(scene.window().look().stateWords.isEmpty());
        scene.domain.setState("stopped");
        QCOMPARE(scene.window().overlay().title, QString("work has stopped"));
        QTRY_COMPARE_WITH_TIMEOUT(scene.status.value_or(-1), 0, kPatience);
        QVERIFY(scene.viewer.windows().empty());
    }

    void aFailureStaysUntilItIsRead() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        scene.domain.setState("failed", QString::fromUtf8("the emulator ended\x1b[31m (signal 9)"));
        QCOMPARE(scene.window().overlay().title, QString("Domain stopped: work"));
        QCOMPARE(scene.window().overlay().detail, QString("the emulator ended[31m (signal 9)"));
        keepPicture(scene.window(), "failed");
        scene.window().close();
        QTRY_COMPARE_WITH_TIMEOUT(scene.status.value_or(-1), 0, kPatience);
    }

    void aStoppedDomainIsNotShown() {
        FakeDomain domain(nullptr);
        domain.facts.state = "stopped";
        Viewer viewer(domain, {});
        int status = -1;
        QString words;
        connect(&viewer, &Viewer::finished, this, [&](int exitStatus, const QString& why) {
            status = exitStatus;
            words = why;
        });
        viewer.start();
        QTRY_COMPARE_WITH_TIMEOUT(status, 1, kPatience);
        QVERIFY(words.contains("bulkhead domain start work"));
    }

    void aLostDisplayComesBackInTheSameWindow() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        const FramedWindow* before = &scene.window();
        m_screen->stop();
        QTRY_COMPARE_WITH_TIMEOUT(scene.window().overlay().title, QString::fromUtf8("Connection lost – reconnecting"),
                                  kPatience);
        keepPicture(scene.window(), "lost");
        QVERIFY(!hasPicture(scene.window())); // no frozen picture
        m_screen->restart();
        QTRY_VERIFY_WITH_TIMEOUT(scene.lives(), kPatience);
        QCOMPARE(before, &scene.window());
    }

    void aLostSessionComesBackWithItsWindows() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        scene.domain.peer->window(8, 1, "second");
        QTRY_COMPARE_WITH_TIMEOUT(scene.viewer.windowCount(), std::size_t{2}, kPatience);
        const FramedWindow* before = &scene.window();
        scene.domain.peer.reset();
        QTRY_COMPARE_WITH_TIMEOUT(scene.domain.sessions, 2, kPatience);
        QCOMPARE(scene.viewer.windowCount(), std::size_t{2});
        scene.domain.peer->up();
        scene.domain.peer->window(7, 0, "Untitled - Editor"); // 8 went meanwhile
        QTRY_COMPARE_WITH_TIMEOUT(scene.viewer.windowCount(), std::size_t{1}, kPatience);
        QCOMPARE(before, &scene.window());
    }

    void sharedHeadsHaveTabs() {
        Scene scene(m_screen.get());
        QVERIFY(scene.showOne());
        scene.domain.peer->window(8, 0, "second", session_stream::kSharesHead);
        QTRY_COMPARE_WITH_TIMEOUT(scene.window().view().tabs.size(), std::size_t{2}, kPatience);
        QCOMPARE(scene.viewer.windowCount(), std::size_t{1});
        QTRY_COMPARE_WITH_TIMEOUT(scene.window().look().stateWords, QString("2 windows share this screen"), kPatience);
        scene.domain.peer->commands();
        Q_EMIT scene.window().tabChosen(8);
        const auto activate = await(*scene.domain.peer, session_stream::CommandKind::ActivateWindow);
        QVERIFY(activate.has_value());
        QCOMPARE(activate->window, 8U);
        QTRY_COMPARE_WITH_TIMEOUT(scene.window().windowTitle(), QString("[work] second"), kPatience);
    }

    /// A peer without manners cannot bring the viewer down, nor fill the screen or the memory.
    void aHostilePeerIsBounded() {
        ViewerOptions options;
        options.background = true;
        Scene scene(m_screen.get(), options);
        QVERIFY(scene.showOne());
        long before = 0;
        std::size_t most = 0;
        std::uint32_t id = 100;
        for (int round = 0; round < 60; ++round) {
            for (int i = 0; i < 200 && scene.domain.peer; ++i) {
                ++id;
                const QByteArray title = QByteArray(400, static_cast<char>('a' + i % 26)) + QByteArray::number(id);
                // 500 ids in turn, over all heads and beyond, with sizes that are and are not possible.
                if (!scene.domain.peer->send(windowEvent(100 + id % 500, id % 20, title, id % 8, 1 + id * 7919 % 5000,
                                                         1 + id * 104729 % 5000))) {
                    break;
                }
                if (i % 50 == 49) {
                    scene.domain.peer->gone(100 + (id * 31) % 500);
                }
            }
            constexpr int kRound = 50; // ms of attack, during which the viewer does what it does
            (void)QTest::qWaitFor([] { return false; }, kRound);
            most = std::max(most, scene.viewer.windowCount());
            if (round == 30) {
                before = residentKilobytes();
            }
        }
        QVERIFY(most > 1);
        QVERIFY2(most <= session_stream::kMostHeads, QByteArray::number(static_cast<int>(most)));
        QVERIFY2(residentKilobytes() - before < 32 * 1024, QByteArray::number(int(residentKilobytes() - before)));
        for (FramedWindow* window : scene.viewer.windows()) {
            QVERIFY(window->windowTitle().startsWith("[work]"));
            QVERIFY(window->windowTitle().size() < 200);
            QVERIFY(window->width() <= 1600 && window->height() <= 1000);
        }
        // Garbage ends the stream; a new one is asked for, and not in a tight loop.
        const int sessions = scene.domain.sessions;
        for (int i = 0; i < 3; ++i) {
            scene.domain.peer->sendBytes(QByteArray(333, '\xff'));
            const int now = scene.domain.sessions;
            QTRY_VERIFY_WITH_TIMEOUT(scene.domain.sessions > now, kPatience);
        }
        QCOMPARE(scene.domain.sessions, sessions + 3);
        scene.domain.peer->up();
        scene.domain.peer->window(7, 0, "after all");
        QTRY_COMPARE_WITH_TIMEOUT(scene.viewer.windowCount(), std::size_t{1}, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(scene.lives(), kPatience);
    }

private:
    std::unique_ptr<ScreenWithoutGuest> m_screen;
};

int main(int argc, char** argv) {
    const VirtualScreen screen;
    if (!screen.works()) {
        qCritical("Xvfb does not start");
        return 1;
    }
    QApplication application(argc, argv);
    QApplication::setQuitOnLastWindowClosed(false);
    TestViewerWindows test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_viewer_windows.moc"

// SPDX-License-Identifier: Apache-2.0
#include "viewer/viewer.hpp"

#include "children.hpp"
#include "fake_guest.hpp"

#include <QApplication>
#include <QDir>
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

class TestViewerWindows : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { m_screen = std::make_unique<ScreenWithoutGuest>(2); }

    void aGuestWindowBecomesAFramedWindow() {
        FakeDomain domain(m_screen.get());
        Viewer viewer(domain, ViewerOptions());
        viewer.start();
        QTRY_VERIFY_WITH_TIMEOUT(domain.peer != nullptr, kPatience);
        domain.peer->up();
        domain.peer->window(7, 0, "Untitled - Editor");
        QTRY_COMPARE_WITH_TIMEOUT(viewer.windowCount(), std::size_t{1}, kPatience);
        FramedWindow& window = *viewer.windows().front();
        QCOMPARE(window.windowTitle(), QString("[work] Untitled - Editor"));
        QTRY_VERIFY_WITH_TIMEOUT(hasPicture(window), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(window.overlay().title.isEmpty(), kPatience);
        QTest::qWait(1500);
        keepPicture(window, "window");
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

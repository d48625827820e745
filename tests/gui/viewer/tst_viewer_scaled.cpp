// SPDX-License-Identifier: Apache-2.0
#include "viewer/framed_window.hpp"

#include <QApplication>
#include <QTest>

using namespace bulkhead;
using namespace bulkhead::viewer;

namespace {

/// A picture in which every pixel differs from its neighbours: any scaling or half a pixel's shift shows.
class FineSurface : public SurfaceSource {
public:
    FineSurface()
        : m_image(720, 450, QImage::Format_RGB32) {
        for (int y = 0; y < m_image.height(); ++y) {
            for (int x = 0; x < m_image.width(); ++x) {
                m_image.setPixel(x, y, qRgb((x * 37) % 256, (y * 91) % 256, ((x + y) % 2) * 255));
            }
        }
    }
    const QImage& image() const override { return m_image; }
    const QImage& ghost() const override { return m_ghost; }
    const PointerShape& pointer() const override { return m_pointer; }
    void movePointer(QPoint position) override { last = position; }
    void pressButton(PointerButton) override {}
    void releaseButton(PointerButton) override {}
    void turnWheel(int) override {}
    QPoint last;

private:
    QImage m_image;
    QImage m_ghost;
    PointerShape m_pointer;
};

class NoKeys : public KeySink {
public:
    void pressKey(std::uint16_t) override {}
    void releaseKey(std::uint16_t) override {}
    void setLocks(bool, bool) override {}
};

} // namespace

/// A screen with 1.5 pixels to the unit.
class TestViewerScaled : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void pixelsStayPixels() {
        FineSurface surface;
        NoKeys keys;
        FrameLook look;
        look.domain = "work";
        look.label = client::labelNamed("blue");
        FramedWindow window(surface, keys, look);
        window.sizeFor(surface.image().size());
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QCOMPARE(window.devicePixelRatioF(), 1.5);
        QCOMPARE(window.canvas().pixels(), QSize(720, 450)); // what the guest is asked for
        QCOMPARE(window.canvas().size(), QSize(480, 300));
        const QImage grabbed = window.grab().toImage();
        QCOMPARE(grabbed.devicePixelRatio(), 1.5);
        const QPoint corner(window.canvas().x() * 3 / 2, window.canvas().y() * 3 / 2);
        const QImage shown = grabbed.copy(QRect(corner, surface.image().size())).convertToFormat(QImage::Format_RGB32);
        for (int y = 0; y < shown.height(); ++y) {
            for (int x = 0; x < shown.width(); ++x) {
                if (shown.pixel(x, y) != surface.image().pixel(x, y)) {
                    QFAIL(qPrintable(QStringLiteral("pixel %1,%2 is another").arg(x).arg(y)));
                }
            }
        }
    }

    void thePointerIsInPixels() {
        FineSurface surface;
        NoKeys keys;
        FramedWindow window(surface, keys, FrameLook());
        window.sizeFor(surface.image().size());
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTest::mousePress(&window.canvas(), Qt::LeftButton, {}, QPoint(100, 200));
        QCOMPARE(surface.last, QPoint(150, 300));
        QTest::mousePress(&window.canvas(), Qt::LeftButton, {}, QPoint(479, 299));
        QVERIFY(surface.last.x() >= 718 && surface.last.y() >= 448);
    }
};

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    qputenv("QT_SCALE_FACTOR", "1.5");
    QApplication application(argc, argv);
    QApplication::setQuitOnLastWindowClosed(false);
    TestViewerScaled test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_viewer_scaled.moc"

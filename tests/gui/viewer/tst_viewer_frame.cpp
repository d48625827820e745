// SPDX-License-Identifier: Apache-2.0
#include "viewer/framed_window.hpp"
#include "viewer/sound_button.hpp"
#include "widgets/label_paint.hpp"

#include <QApplication>
#include <QDir>
#include <QKeyEvent>
#include <QPainter>
#include <QStyle>
#include <QStyleFactory>
#include <QTest>

#include <linux/input-event-codes.h>

using namespace bulkhead;
using namespace bulkhead::viewer;

namespace {

/// A picture, and what a window did to it.
class FakeSurface : public SurfaceSource {
public:
    explicit FakeSurface(const QImage& image)
        : m_image(image) {}

    void setImage(const QImage& image) {
        m_image = image;
        Q_EMIT imageChanged();
    }
    void setPointer(const PointerShape& shape) {
        m_pointer = shape;
        Q_EMIT pointerChanged();
    }
    const QImage& image() const override { return m_image; }
    const QImage& ghost() const override { return m_ghost; }
    const PointerShape& pointer() const override { return m_pointer; }
    void movePointer(QPoint position) override {
        acts << QStringLiteral("at %1,%2").arg(position.x()).arg(position.y());
    }
    void pressButton(PointerButton button) override {
        acts << QStringLiteral("press %1").arg(static_cast<int>(button));
    }
    void releaseButton(PointerButton button) override {
        acts << QStringLiteral("release %1").arg(static_cast<int>(button));
    }
    void turnWheel(int notches) override { acts << QStringLiteral("wheel %1").arg(notches); }

    QStringList acts;

private:
    QImage m_image;
    QImage m_ghost;
    PointerShape m_pointer;
};

class FakeKeys : public KeySink {
public:
    void pressKey(std::uint16_t scancode) override { acts << QStringLiteral("+%1").arg(scancode, 0, 16); }
    void releaseKey(std::uint16_t scancode) override { acts << QStringLiteral("-%1").arg(scancode, 0, 16); }
    void setLocks(bool caps, bool num) override { acts << QStringLiteral("locks %1 %2").arg(caps).arg(num); }
    QStringList acts;
};

/// Something that looks like an app.
QImage sampleImage(QSize size) {
    QImage image(size, QImage::Format_RGB32);
    image.fill(QColor(250, 250, 248));
    QPainter painter(&image);
    painter.fillRect(0, 0, size.width(), 26, QColor(222, 222, 218));
    painter.setPen(QColor(40, 40, 40));
    painter.drawText(10, 18, "File   Edit   Search   View   Help");
    painter.setPen(QColor(90, 90, 90));
    for (int line = 0; line < (size.height() - 50) / 18; ++line) {
        painter.drawText(14, 50 + line * 18,
                         QStringLiteral("%1  The quick brown fox jumps over the lazy dog").arg(line + 1));
    }
    return image;
}

FrameLook lookOf(const char* label, client::Theme theme) {
    FrameLook look;
    look.domain = "work";
    look.label = client::labelNamed(label);
    look.theme = theme;
    return look;
}

QPalette paletteOf(client::Theme theme) {
    if (theme == client::Theme::Light) {
        return QApplication::style()->standardPalette();
    }
    QPalette dark(QColor(0x35, 0x35, 0x35), QColor(0x31, 0x36, 0x3b));
    dark.setColor(QPalette::WindowText, QColor(0xee, 0xee, 0xee));
    dark.setColor(QPalette::ButtonText, QColor(0xee, 0xee, 0xee));
    dark.setColor(QPalette::Text, QColor(0xee, 0xee, 0xee));
    dark.setColor(QPalette::Base, QColor(0x23, 0x26, 0x29));
    return dark;
}

void keepPicture(QWidget& window, const QString& name) {
    const QString folder = QStringLiteral(BULKHEAD_BUILD_DIR "/artefacts/viewer");
    QDir().mkpath(folder);
    window.grab().save(folder + QLatin1Char('/') + name + QLatin1String(".png"));
}

void sendKey(QWidget& target, QEvent::Type type, std::uint32_t evdev, quint32 state = 0, bool repeat = false) {
    QKeyEvent event(type, Qt::Key_A, Qt::NoModifier, evdev + 8, 0, state, "a", repeat);
    QApplication::sendEvent(&target, &event);
}

} // namespace

class TestViewerFrame : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() {
        m_surface = std::make_unique<FakeSurface>(sampleImage({640, 400}));
        m_keys = std::make_unique<FakeKeys>();
    }

    void everyLabelHasItsFrame_data() {
        QTest::addColumn<QByteArray>("label");
        QTest::addColumn<int>("theme");
        for (const client::Label& label : client::labels()) {
            const QByteArray name = QByteArray::fromStdString(std::string(label.name));
            QTest::newRow(name + "-light") << name << 0;
            QTest::newRow(name + "-dark") << name << 1;
        }
        QTest::newRow("unknown-light") << QByteArray("?") << 0;
    }
    void everyLabelHasItsFrame() {
        QFETCH(QByteArray, label);
        QFETCH(int, theme);
        const auto which = static_cast<client::Theme>(theme);
        QApplication::setPalette(paletteOf(which));
        FramedWindow window(*m_surface, *m_keys, lookOf(label, which));
        window.sizeFor({640, 400});
        keepPicture(window, QStringLiteral("frame-") + QTest::currentDataTag());
        const QImage picture = window.grab().toImage();
        const QColor edge = widgets::toColor(client::labelNamed(label.toStdString()).colours(which).edge);
        QCOMPARE(picture.pixelColor(0, 0), edge);
        QCOMPARE(picture.pixelColor(picture.width() - 1, picture.height() - 1), edge);
        QApplication::setPalette(paletteOf(client::Theme::Light));
    }

    /// Nothing that the guest paints reaches the frame: whatever size its picture has.
    void theGuestCannotPaintOverTheFrame_data() {
        QTest::addColumn<QSize>("picture");
        QTest::newRow("exact") << QSize(640, 400);
        QTest::newRow("small") << QSize(64, 64);
        QTest::newRow("large") << QSize(4096, 4096);
        QTest::newRow("wide") << QSize(4096, 64);
    }
    void theGuestCannotPaintOverTheFrame() {
        QFETCH(QSize, picture);
        FramedWindow window(*m_surface, *m_keys, lookOf("green", client::Theme::Light));
        window.sizeFor({640, 400});
        window.setView({.title = "t", .tabs = {{1, "one"}}, .current = 1, .minimum = {}});
        const QImage before = window.grab().toImage();
        QImage magenta(picture, QImage::Format_RGB32);
        magenta.fill(Qt::magenta);
        m_surface->setImage(magenta);
        Q_EMIT m_surface->damaged(QRect(-100, -100, 10000, 10000));
        const QImage after = window.grab().toImage();
        QCOMPARE(before.size(), after.size());
        const QRect canvas = window.canvas().geometry();
        QCOMPARE(after.pixelColor(canvas.topLeft()) == Qt::magenta || picture.height() < 400 || picture.width() > 640,
                 true);
        for (int y = 0; y < after.height(); ++y) {
            for (int x = 0; x < after.width(); ++x) {
                if (!canvas.contains(x, y)) {
                    QCOMPARE(after.pixel(x, y), before.pixel(x, y));
                }
            }
        }
    }

    void overlaysSayWhy_data() {
        QTest::addColumn<QString>("title");
        QTest::addColumn<QString>("detail");
        QTest::addColumn<QString>("action");
        QTest::newRow("starting") << "work is starting its desktop"
                                  << "Windows appear here as soon as it is up."
                                  << "Show its whole screen";
        QTest::newRow("paused") << "work is paused"
                                << "Nothing in it runs until it is resumed."
                                << "";
        QTest::newRow("lost") << QString::fromUtf8("Connection lost – reconnecting") << "the display was closed"
                              << "";
        QTest::newRow("failed") << "Domain stopped: work"
                                << "qemu ended unexpectedly (signal 9) while the domain work was running; its log has "
                                   "the last words"
                                << "";
    }
    void overlaysSayWhy() {
        QFETCH(QString, title);
        QFETCH(QString, detail);
        QFETCH(QString, action);
        FrameLook look = lookOf("orange", client::Theme::Light);
        look.stateWords = title;
        FramedWindow window(*m_surface, *m_keys, look);
        window.sizeFor({640, 400});
        window.setOverlay({title, detail, action});
        keepPicture(window, QStringLiteral("overlay-") + QTest::currentDataTag());
        QCOMPARE(window.overlay().title, title);
        // It takes clicks and keys: the guest gets none.
        QTest::mouseClick(window.childAt(window.rect().center() + QPoint(0, 150)), Qt::LeftButton);
        sendKey(window.canvas(), QEvent::KeyPress, KEY_A);
        QVERIFY(m_keys->acts.isEmpty());
        QVERIFY(m_surface->acts.isEmpty());
        window.setOverlay({});
        sendKey(window.canvas(), QEvent::KeyPress, KEY_A);
        QVERIFY(!m_keys->acts.isEmpty());
    }

    void soundHasASwitchInTheFrame_data() {
        QTest::addColumn<int>("theme");
        QTest::newRow("light") << 0;
        QTest::newRow("dark") << 1;
    }
    void soundHasASwitchInTheFrame() {
        QFETCH(int, theme);
        const auto which = static_cast<client::Theme>(theme);
        QApplication::setPalette(paletteOf(which));
        FrameLook look = lookOf("blue", which);
        FramedWindow window(*m_surface, *m_keys, look);
        window.sizeFor({640, 400});
        const auto* button = window.findChild<SoundButton*>();
        QVERIFY(button != nullptr && !button->isVisibleTo(&window));
        for (const SoundState state : {SoundState::On, SoundState::Muted}) {
            look.sound = state;
            look.stateWords = "asked to close";
            window.setLook(look);
            QVERIFY(button->isVisibleTo(&window));
            QVERIFY(!button->geometry().intersects(window.canvas().geometry()));
            QCOMPARE(button->accessibleName(), QString(state == SoundState::On ? "Mute work" : "Let work be heard"));
            keepPicture(
                window,
                QStringLiteral("sound-%1-%2").arg(state == SoundState::On ? "on" : "muted", QTest::currentDataTag()));
        }
        int switched = 0;
        connect(&window, &FramedWindow::soundSwitched, &window, [&] { ++switched; });
        QTest::mouseClick(window.findChild<SoundButton*>(), Qt::LeftButton);
        QCOMPARE(switched, 1);
        QVERIFY(m_surface->acts.isEmpty());
        QApplication::setPalette(paletteOf(client::Theme::Light));
    }

    void windowsThatShareAHeadHaveTabs() {
        FramedWindow window(*m_surface, *m_keys, lookOf("purple", client::Theme::Light));
        window.sizeFor({640, 400});
        window.setView({.title = "[work] two",
                        .tabs = {{1, "one & only"}, {2, "two"}, {3, QString(200, 'x')}},
                        .current = 2,
                        .minimum = {}});
        FrameLook look = window.look();
        look.stateWords = "3 windows share this screen";
        window.setLook(look);
        keepPicture(window, "tabs");
        QVERIFY(window.canvas().y() > kFrameStrip);
        QVERIFY(window.canvas().y() % 4 == 0);
    }

    void keysComeInPairs() {
        FramedWindow window(*m_surface, *m_keys, lookOf("red", client::Theme::Light));
        window.sizeFor({640, 400});
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        constexpr quint32 kCapsAndNum = 2 | 16;
        sendKey(window.canvas(), QEvent::KeyPress, KEY_LEFTSHIFT, kCapsAndNum);
        sendKey(window.canvas(), QEvent::KeyPress, KEY_A, kCapsAndNum);
        sendKey(window.canvas(), QEvent::KeyPress, KEY_A, kCapsAndNum, true);   // the host's repeat
        sendKey(window.canvas(), QEvent::KeyRelease, KEY_A, kCapsAndNum, true); // the same
        sendKey(window.canvas(), QEvent::KeyRelease, KEY_A, kCapsAndNum);
        sendKey(window.canvas(), QEvent::KeyRelease, KEY_B, kCapsAndNum); // pressed elsewhere
        sendKey(window.canvas(), QEvent::KeyPress, KEY_RIGHT, kCapsAndNum);
        const QStringList before{"locks 1 1", "+2a", "+1e", "-1e", "+14d"};
        QCOMPARE(m_keys->acts, before);
        m_keys->acts.clear();
        QFocusEvent leaving(QEvent::FocusOut, Qt::ActiveWindowFocusReason);
        QApplication::sendEvent(&window.canvas(), &leaving);
        m_keys->acts.sort();
        const QStringList released{"-14d", "-2a"};
        QCOMPARE(m_keys->acts, released);
    }

    void thePointerIsInPixelsOfThePicture() {
        FramedWindow window(*m_surface, *m_keys, lookOf("red", client::Theme::Light));
        window.sizeFor({640, 400});
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTest::mousePress(&window.canvas(), Qt::RightButton, {}, QPoint(10, 20));
        QTest::mouseMove(&window.canvas(), QPoint(5000, -40)); // dragged out
        QTest::mouseRelease(&window.canvas(), Qt::RightButton, {}, QPoint(30, 40));
        const QStringList all{"at 10,20", "press 2", "at 639,0", "at 30,40", "release 2"};
        QCOMPARE(m_surface->acts, all);
    }

    void withoutAPicture_nothingIsClicked() {
        m_surface->setImage(QImage());
        FramedWindow window(*m_surface, *m_keys, lookOf("red", client::Theme::Light));
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTest::mouseClick(&window.canvas(), Qt::LeftButton, {}, QPoint(10, 20));
        QWheelEvent wheel({10, 20}, {10, 20}, {}, {0, 120}, {}, {}, Qt::NoScrollPhase, false);
        QApplication::sendEvent(&window.canvas(), &wheel);
        QCOMPARE(m_surface->acts, QStringList());
        m_surface->setImage(sampleImage({640, 400}));
        QTest::mouseClick(&window.canvas(), Qt::LeftButton, {}, QPoint(10, 20));
        QVERIFY(m_surface->acts.contains("press 0"));
    }

    void heldButtonsAreReleasedWhenTheKeyboardGoes() {
        FramedWindow window(*m_surface, *m_keys, lookOf("red", client::Theme::Light));
        window.sizeFor({640, 400});
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        QTest::mousePress(&window.canvas(), Qt::LeftButton, {}, QPoint(1, 1));
        m_surface->acts.clear();
        QFocusEvent leaving(QEvent::FocusOut, Qt::ActiveWindowFocusReason);
        QApplication::sendEvent(&window.canvas(), &leaving);
        QCOMPARE(m_surface->acts, QStringList("release 0"));
    }

    void aCloseAsksTheGuest() {
        FramedWindow window(*m_surface, *m_keys, lookOf("red", client::Theme::Light));
        window.show();
        int asked = 0;
        connect(&window, &FramedWindow::closeAsked, this, [&] { ++asked; });
        QVERIFY(!window.close());
        QVERIFY(!window.close());
        QCOMPARE(asked, 2);
        QVERIFY(window.isVisible());
        window.setClosable(true);
        QVERIFY(window.close());
    }

private:
    std::unique_ptr<FakeSurface> m_surface;
    std::unique_ptr<FakeKeys> m_keys;
};

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QApplication application(argc, argv);
    QApplication::setQuitOnLastWindowClosed(false);
    QApplication::setStyle(QStyleFactory::create("Fusion"));
    TestViewerFrame test;
    return QTest::qExec(&test, argc, argv);
}
#include "tst_viewer_frame.moc"

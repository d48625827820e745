// SPDX-License-Identifier: Apache-2.0
#include "viewer/arguments.hpp"
#include "viewer/guest_window_info.hpp"
#include "viewer/host_settings.hpp"
#include "viewer/pacing.hpp"
#include "viewer/picture_fit.hpp"
#include "viewer/scancodes.hpp"
#include "viewer/single_instance.hpp"

#include <QTest>

#include <linux/input-event-codes.h>

#include <set>

using namespace bulkhead::viewer;
using namespace std::chrono_literals;
namespace stream = bulkhead::session_stream;

namespace {

stream::Event goodEvent() {
    stream::Event event;
    event.kind = stream::EventKind::WindowChanged;
    event.window = 3;
    event.width = 640;
    event.height = 480;
    std::string("Title").copy(event.text.data(), 5);
    std::string("xterm.XTerm").copy(event.name.data(), 11);
    return event;
}

} // namespace

class TestViewerRules : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // --- Keys ---
    void keysBecomeScancodes_data() {
        QTest::addColumn<uint>("key");
        QTest::addColumn<int>("scancode");
        QTest::newRow("Esc") << uint{KEY_ESC} << 0x01;
        QTest::newRow("A") << uint{KEY_A} << 0x1e;
        QTest::newRow("left Shift") << uint{KEY_LEFTSHIFT} << 0x2a;
        QTest::newRow("Caps") << uint{KEY_CAPSLOCK} << 0x3a;
        QTest::newRow("F1") << uint{KEY_F1} << 0x3b;
        QTest::newRow("F10") << uint{KEY_F10} << 0x44;
        QTest::newRow("F11") << uint{KEY_F11} << 0x57;
        QTest::newRow("F12") << uint{KEY_F12} << 0x58;
        QTest::newRow("less") << uint{KEY_102ND} << 0x56;
        QTest::newRow("keypad .") << uint{KEY_KPDOT} << 0x53;
        QTest::newRow("keypad Enter") << uint{KEY_KPENTER} << 0x11c;
        QTest::newRow("keypad /") << uint{KEY_KPSLASH} << 0x135;
        QTest::newRow("right Ctrl") << uint{KEY_RIGHTCTRL} << 0x11d;
        QTest::newRow("AltGr") << uint{KEY_RIGHTALT} << 0x138;
        QTest::newRow("Up") << uint{KEY_UP} << 0x148;
        QTest::newRow("Delete") << uint{KEY_DELETE} << 0x153;
        QTest::newRow("left Meta") << uint{KEY_LEFTMETA} << 0x15b;
        QTest::newRow("Menu key") << uint{KEY_COMPOSE} << 0x15d;
        QTest::newRow("Yen") << uint{KEY_YEN} << 0x7d;
        QTest::newRow("none") << 0U << -1;
        QTest::newRow("Power stays with the host") << uint{KEY_POWER} << -1;
        QTest::newRow("Sleep stays with the host") << uint{KEY_SLEEP} << -1;
        QTest::newRow("out of range") << 100000U << -1;
    }
    void keysBecomeScancodes() {
        QFETCH(uint, key);
        QFETCH(int, scancode);
        const auto found = pcScancode(key);
        QCOMPARE(found ? static_cast<int>(*found) : -1, scancode);
    }

    /// Two keys with one scancode would release each other.
    void noTwoKeysShareAScancode() {
        std::set<std::uint16_t> seen;
        for (std::uint32_t key = 0; key < KEY_CNT; ++key) {
            if (const auto scancode = pcScancode(key)) {
                QVERIFY2(seen.insert(*scancode).second, qPrintable(QString::number(key)));
                QVERIFY((*scancode & 0xffU) < 0x80); // the high bit says "released"
            }
        }
        QVERIFY(seen.size() > 140);
    }

    void heldKeysAreReleasedOnce() {
        KeyTracker keys;
        QCOMPARE(keys.press(KEY_A).value(), std::uint16_t{0x1e});
        QVERIFY(!keys.press(KEY_A)); // down already
        QVERIFY(!keys.release(KEY_B));
        QVERIFY(!keys.press(KEY_POWER));
        keys.press(KEY_LEFTCTRL);
        QCOMPARE(keys.release(KEY_A).value(), std::uint16_t{0x1e});
        QVERIFY(!keys.release(KEY_A));
        QCOMPARE(keys.releaseAll(), std::vector<std::uint16_t>{0x1d});
        QVERIFY(keys.empty());
        QVERIFY(keys.releaseAll().empty());
    }

    // --- Time ---
    void aResizeWaitsUntilTheHandRests() {
        ResizePlan plan;
        const Instant start{1h};
        plan.arrived({640, 480});
        plan.want({700, 500}, start);
        plan.want({710, 510}, start + 100ms);
        QVERIFY(!plan.take(start + 200ms)); // 150 ms after the first, but not after the last
        QCOMPARE(plan.take(start + 250ms).value(), QSize(710, 510));
        QVERIFY(!plan.take(start + 251ms));
        QVERIFY(plan.pending());
        plan.arrived({710, 510});
        QVERIFY(!plan.pending());
        QVERIFY(!plan.due());
    }
    void aResizeBackAndForthAsksNothing() {
        ResizePlan plan;
        const Instant start{1h};
        plan.arrived({640, 480});
        plan.want({700, 500}, start);
        plan.want({640, 480}, start + 50ms);
        QVERIFY(!plan.take(start + 1s));
    }
    void aResizeThatIsIgnoredIsAskedOnceMore() {
        ResizePlan plan;
        const Instant start{1h};
        plan.arrived({640, 480});
        plan.want({700, 500}, start);
        QVERIFY(plan.take(start + 150ms).has_value());
        QCOMPARE(plan.due().value(), start + 150ms + kResizePatience);
        QVERIFY(!plan.take(start + 1s));
        QVERIFY(plan.take(start + 150ms + kResizePatience).has_value());
        QVERIFY(!plan.due()); // a guest that does not want to is left alone
        plan.forget();        // a new session
        QVERIFY(plan.take(start + 10s).has_value());
    }
    void waitingGrowsToALimit() {
        Backoff backoff;
        std::vector<std::chrono::milliseconds> waits;
        for (int i = 0; i < 8; ++i) {
            waits.push_back(backoff.next());
        }
        const std::vector<std::chrono::milliseconds> expected{250ms, 500ms, 1s, 2s, 4s, 5s, 5s, 5s};
        QCOMPARE(waits, expected);
        backoff.reset();
        QCOMPARE(backoff.next(), 250ms);
    }
    void aRateHasABurst() {
        RateLimit limit(3, 4);
        const Instant start{1h};
        for (int i = 0; i < 3; ++i) {
            QVERIFY(limit.take(start));
        }
        QVERIFY(!limit.take(start));
        QCOMPARE(limit.wait(start), 250ms);
        QVERIFY(limit.take(start + 250ms));
        QVERIFY(!limit.take(start + 260ms));
        for (int i = 0; i < 3; ++i) {
            QVERIFY(limit.take(start + 1h)); // no more than the burst is saved up
        }
        QVERIFY(!limit.take(start + 1h));
    }

    // --- Pixels ---
    void pixelsFit_data() {
        QTest::addColumn<QSize>("picture");
        QTest::addColumn<QSize>("canvas");
        QTest::addColumn<double>("ratio");
        QTest::addColumn<bool>("centre");
        QTest::addColumn<QRectF>("target");
        QTest::newRow("exact") << QSize(640, 480) << QSize(640, 480) << 1.0 << false << QRectF(0, 0, 640, 480);
        QTest::newRow("exact at 2") << QSize(1280, 960) << QSize(640, 480) << 2.0 << false << QRectF(0, 0, 640, 480);
        QTest::newRow("exact at 1.25") << QSize(800, 600) << QSize(640, 480) << 1.25 << false << QRectF(0, 0, 640, 480);
        QTest::newRow("smaller") << QSize(320, 200) << QSize(640, 480) << 1.0 << false << QRectF(0, 0, 320, 200);
        QTest::newRow("smaller, centred")
            << QSize(320, 200) << QSize(641, 480) << 1.0 << true << QRectF(160, 140, 320, 200);
        QTest::newRow("larger") << QSize(1280, 960) << QSize(640, 480) << 1.0 << false << QRectF(0, 0, 640, 480);
        QTest::newRow("wider, centred") << QSize(1280, 480) << QSize(640, 480) << 1.0 << true
                                        << QRectF(0, 120, 640, 240);
        QTest::newRow("none") << QSize() << QSize(640, 480) << 1.0 << false << QRectF();
    }
    void pixelsFit() {
        QFETCH(QSize, picture);
        QFETCH(QSize, canvas);
        QFETCH(double, ratio);
        QFETCH(bool, centre);
        QFETCH(QRectF, target);
        const PictureFit fit(picture, canvas, ratio, centre ? PictureFit::Place::Centre : PictureFit::Place::TopLeft);
        QCOMPARE(fit.target(), target);
        if (!target.isEmpty()) {
            QCOMPARE(fit.pixelAt(target.topLeft() - QPointF(50, 50)), QPoint(0, 0));
            QCOMPARE(fit.pixelAt(target.bottomRight() + QPointF(50, 50)),
                     QPoint(picture.width() - 1, picture.height() - 1));
            QVERIFY(fit.shownAt(QRect(QPoint(), picture)).contains(target.toAlignedRect()));
        }
    }
    void pixelsOfACanvasAreThoseOfTheScreen() {
        QCOMPARE(pixelsOf({640, 480}, 1.5), QSize(960, 720));
        QCOMPARE(pixelsOf({777, 555}, 1.25), QSize(971, 694));
    }

    // --- Words of the guest ---
    void titlesAreCleanAndShort_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("shown");
        QTest::newRow("plain") << "Mozilla Firefox"
                               << "Mozilla Firefox";
        QTest::newRow("every script") << QString::fromUtf8("日本語 العربية Ελ")
                                      << QString::fromUtf8("日本語 العربية Ελ");
        QTest::newRow("lines") << "a\nb\tc\r\n d"
                               << "a b c d";
        QTest::newRow("escape sequence") << "a\x1b]0;x\x07z"
                                         << "a]0;xz";
        QTest::newRow("direction") << QString::fromUtf8("a\u202eb\u2066c\u200bd") << "abcd";
        QTest::newRow("blank") << "   \n "
                               << "";
        QTest::newRow("pile of marks") << QString::fromUtf8("a\u0301\u0302\u0303\u0304\u0305b")
                                       << QString::fromUtf8("a\u0301\u0302b");
        QTest::newRow("long") << QString(100, 'x') << QString(19, 'x') + QChar(0x2026);
        QTest::newRow("lone surrogate") << QString("a") + QChar(0xd800) + QString("b")
                                        << QString("a") + QChar(0xfffd) + QString("b");
    }
    void titlesAreCleanAndShort() {
        QFETCH(QString, text);
        QFETCH(QString, shown);
        QCOMPARE(displayText(text, 20), shown);
    }
    void titlesNameTheDomainFirst() {
        QCOMPARE(hostTitle("work", "Editor"), QString("[work] Editor"));
        QCOMPARE(hostTitle("work", ""), QString("[work]"));
        QCOMPARE(hostTitle("work", "doc[*]"), QString("[work] doc[*][*]")); // Qt shows "[*][*]" as "[*]"
        QVERIFY(hostTitle("work", QString(5000, 'x')).size() < 200);
    }

    void recordsAreChecked_data() {
        QTest::addColumn<QByteArray>("event");
        QTest::addColumn<bool>("good");
        const auto row = [](const char* name, bool good, auto change) {
            stream::Event event = goodEvent();
            change(event);
            QTest::newRow(name) << QByteArray(reinterpret_cast<const char*>(&event), sizeof event) << good;
        };
        row("good", true, [](stream::Event&) {});
        row("largest", true, [](stream::Event& e) { e.width = e.height = stream::kLargestSide; });
        row("no id", false, [](stream::Event& e) { e.window = 0; });
        row("head", false, [](stream::Event& e) { e.head = stream::kMostHeads; });
        row("no width", false, [](stream::Event& e) { e.width = 0; });
        row("wide", false, [](stream::Event& e) { e.width = stream::kLargestSide + 1; });
        row("negative height", false, [](stream::Event& e) { e.height = 0xffffffffU; });
        row("minimum", false, [](stream::Event& e) { e.minWidth = 100000; });
        row("kind", false, [](stream::Event& e) { e.windowKind = static_cast<stream::WindowKind>(7); });
        row("its own parent", false, [](stream::Event& e) { e.transientFor = e.window; });
        row("endless title", false, [](stream::Event& e) { e.text.fill('x'); });
        row("endless class", false, [](stream::Event& e) { e.name.fill('x'); });
    }
    void recordsAreChecked() {
        QFETCH(QByteArray, event);
        QFETCH(bool, good);
        stream::Event record;
        memcpy(&record, event.constData(), sizeof record);
        QCOMPARE(guestWindowFrom(record).has_value(), good);
    }
    void recordsAreRead() {
        stream::Event event = goodEvent();
        event.flags = stream::kSharesHead | stream::kActive;
        event.head = 2;
        event.minWidth = 100;
        event.windowKind = stream::WindowKind::Dialog;
        event.transientFor = 9;
        const GuestWindow window = guestWindowFrom(event).value();
        QCOMPARE(window.title, QString("Title"));
        QCOMPARE(window.appClass, QString("xterm.XTerm"));
        QCOMPARE(window.size, QSize(640, 480));
        QCOMPARE(window.minimum, QSize(100, 0));
        QVERIFY(window.sharesHead && window.active && !window.wantsAttention);
        QCOMPARE(window.transientFor, 9U);
    }

    // --- The host ---
    void keyboardNamesAreRead() {
        const QByteArray property("evdev\0pc105\0de,us\0nodeadkeys,\0compose:caps\0", 43);
        const KeyboardNames names = keyboardNamesFrom(property).value();
        QCOMPARE(names.model, QString("pc105"));
        QCOMPARE(names.layout, QString("de,us"));
        QCOMPARE(names.variant, QString("nodeadkeys,"));
        QCOMPARE(names.options, QString("compose:caps"));
        QVERIFY(!keyboardNamesFrom("").has_value());
        QVERIFY(!keyboardNamesFrom(QByteArray("evdev\0pc105\0\0", 13)).has_value());
    }
    void busNamesAreValid() {
        QCOMPARE(SingleInstance::busNameFor("3f0c9a52-7a1e-4b7c-9d5e-0a1b2c3d4e5f"),
                 QString("org.bulkhead1.Viewer.d3f0c9a52_7a1e_4b7c_9d5e_0a1b2c3d4e5f"));
    }

    void argumentsAreRead_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("status"); // -1: runs
        QTest::newRow("domain") << QStringList{"work"} << -1;
        QTest::newRow("options") << QStringList{"--whole-desktop", "work", "--background"} << -1;
        QTest::newRow("after --") << QStringList{"--", "work"} << -1;
        QTest::newRow("none") << QStringList{} << 2;
        QTest::newRow("two") << QStringList{"a", "b"} << 2;
        QTest::newRow("unknown") << QStringList{"--clipboard", "a"} << 2;
        QTest::newRow("help") << QStringList{"--help"} << 0;
        QTest::newRow("version") << QStringList{"--version"} << 0;
    }
    void argumentsAreRead() {
        QFETCH(QStringList, arguments);
        QFETCH(int, status);
        const auto parsed = parseArguments(arguments);
        const auto* end = std::get_if<ParseEnd>(&parsed);
        QCOMPARE(end == nullptr ? -1 : end->status, status);
        if (end == nullptr) {
            QCOMPARE(std::get<Invocation>(parsed).domain, QString("work"));
        } else {
            QVERIFY(!end->text.isEmpty());
        }
    }
};

QTEST_APPLESS_MAIN(TestViewerRules)
#include "tst_viewer_rules.moc"

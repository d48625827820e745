// SPDX-License-Identifier: Apache-2.0
// Which window is on which head, where heads go on the screen, and what is made of texts.
#include "base/escaping.hpp"
#include "session/focus.hpp"
#include "session/layout.hpp"
#include "session/randr_heads.hpp"
#include "session/text.hpp"
#include "session/windows.hpp"

#include <QTest>

#include <random>

using namespace bulkhead;
using namespace bulkhead::session;

namespace {

bool isSound(const HeadRects& heads, Size most) {
    for (std::size_t i = 0; i < heads.size(); ++i) {
        if (!heads[i]) {
            continue;
        }
        if (heads[i]->at.x < 0 || heads[i]->at.y < 0 || heads[i]->right() > most.width ||
            heads[i]->bottom() > most.height) {
            return false;
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (heads[j] && heads[j]->overlaps(*heads[i])) {
                return false;
            }
        }
    }
    return true;
}

XWindow idOf(unsigned i) {
    return 1000 + i;
}

void addWindows(Windows& windows, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        windows.add(idOf(i), {}, {300 + static_cast<int>(i), 200});
    }
    windows.assignHeads();
}

} // namespace

class TestSessionRules : public QObject {
    Q_OBJECT

private slots:
    // ---- heads on the screen ---------------------------------------------------------------------------------------

    void headsKeepTheirPlaceAndSize() {
        const HeadRects first = arrange({}, {Size{800, 600}, Size{640, 480}, std::nullopt});
        QVERIFY(isSound(first, kLargestScreen));
        QCOMPARE(first[0]->size, (Size{800, 600}));
        QCOMPARE(first[1]->size, (Size{640, 480}));
        QVERIFY(!first[2]);
        // A third one comes, and the first is drawn smaller: nobody else moves.
        const HeadRects second = arrange(first, {Size{700, 500}, Size{640, 480}, Size{1024, 768}});
        QVERIFY(isSound(second, kLargestScreen));
        QCOMPARE(second[0]->at, first[0]->at);
        QCOMPARE(second[1], first[1]);
        // The first one grows over the second: the one that has a new size moves.
        const HeadRects third = arrange(second, {Size{1900, 1000}, Size{640, 480}, Size{1024, 768}});
        QVERIFY(isSound(third, kLargestScreen));
        QCOMPARE(third[1], second[1]);
        QCOMPARE(third[2], second[2]);
        QCOMPARE(third[0]->size, (Size{1900, 1000}));
    }

    void sizesAreClamped() {
        const HeadRects heads = arrange({}, {Size{1, 100'000}});
        QCOMPARE(heads[0]->size, (Size{kSmallestSide, kLargestSide}));
        QCOMPARE(arrange({}, {Size{3000, 3000}}, {1280, 1024})[0]->size, (Size{1280, 1024}));
    }

    void whatDoesNotFitIsMadeSmaller() {
        HeadSizes wanted(16, Size{4096, 4096});
        const HeadRects heads = arrange({}, wanted);
        QVERIFY(isSound(heads, kLargestScreen));
        QCOMPARE(std::count_if(heads.begin(), heads.end(), [](const auto& head) { return head.has_value(); }), 16);
        // One new head too many for the screen: those that are there keep their size.
        const HeadRects four = arrange({}, HeadSizes(4, Size{4096, 4000}));
        QCOMPARE(screenFor(four), (Size{8192, 8000}));
        HeadSizes five(5, Size{4096, 4000});
        const HeadRects more = arrange(HeadRects{four[0], four[1], four[2], four[3], std::nullopt}, five);
        QVERIFY(isSound(more, kLargestScreen));
        for (std::size_t i = 0; i < 4; ++i) {
            QCOMPARE(more[i]->size, four[i]->size);
        }
        QVERIFY(more[4]->size.height <= 192);
    }

    void aTinyScreenShowsNothingRatherThanOverlap() {
        QVERIFY(isSound(arrange({}, HeadSizes(9, Size{64, 64}), {128, 128}), {128, 128}));
    }

    void theScreenDoesNotGrowWithoutNeed() {
        std::mt19937 random(1);
        std::uniform_int_distribution<int> side(64, 2000);
        std::uniform_int_distribution<std::size_t> which(0, 7);
        HeadSizes sizes(8, Size{800, 600});
        HeadRects heads = arrange({}, sizes);
        for (int i = 0; i < 2000; ++i) {
            const std::size_t head = which(random);
            sizes[head] = i % 7 == 0 ? std::nullopt : std::optional(Size{side(random), side(random)});
            heads = arrange(heads, sizes);
            QVERIFY(isSound(heads, kLargestScreen));
            std::int64_t shown = 0;
            for (std::size_t j = 0; j < heads.size(); ++j) {
                QCOMPARE(heads[j].has_value(), sizes[j].has_value());
                if (heads[j]) {
                    QCOMPARE(heads[j]->size, *sizes[j]);
                    shown += heads[j]->size.area();
                }
            }
            QVERIFY(screenFor(heads).area() <= std::max<std::int64_t>(3 * shown, std::int64_t{4096} * 2048));
        }
    }

    void theScreenKeepsItsSizeForAWhile() {
        const auto heads = [](Size size) { return HeadRects{Rect{{0, 0}, size}, std::nullopt}; };
        QCOMPARE(roomyScreenFor(heads({1000, 700}), {}), (Size{1024, 768}));
        QCOMPARE(roomyScreenFor(heads({1020, 760}), {1024, 768}), (Size{1024, 768}));
        QCOMPARE(roomyScreenFor(heads({1025, 760}), {1024, 768}), (Size{1280, 768}));
        QCOMPARE(roomyScreenFor(heads({900, 600}), {1280, 768}), (Size{1280, 768}));
        QCOMPARE(roomyScreenFor(heads({300, 200}), {1280, 768}), (Size{512, 256}));
        QCOMPARE(roomyScreenFor(heads({1270, 1000}), {}, {1280, 1024}), (Size{1280, 1024}));
        QCOMPARE(roomyScreenFor(heads({1270, 1020}), {}, {1280, 1020}), (Size{1280, 1020}));
    }

    void outputsAreOrderedByNumber() {
        QVERIFY(isOutputBefore("Virtual-2", "Virtual-10"));
        QVERIFY(!isOutputBefore("Virtual-10", "Virtual-2"));
        QVERIFY(isOutputBefore("DUMMY0", "DUMMY1"));
        QVERIFY(isOutputBefore("DVI-1", "Virtual-0"));
        QVERIFY(!isOutputBefore("screen", "screen"));
    }

    // ---- windows on heads ------------------------------------------------------------------------------------------

    void eachWindowHasAHead() {
        Windows windows(4);
        addWindows(windows, 3);
        for (unsigned i = 0; i < 3; ++i) {
            QCOMPARE(*windows.find(idOf(i))->head, i);
            QVERIFY(!windows.find(idOf(i))->sharesHead);
            QCOMPARE(*windows.headSizes()[i], (Size{300 + static_cast<int>(i), 200}));
        }
        QVERIFY(!windows.headSizes()[3]);
        windows.remove(idOf(1));
        windows.assignHeads();
        QCOMPARE(*windows.find(idOf(2))->head, 2U); // nobody moves because another one went
        QVERIFY(!windows.headSizes()[1]);
        windows.add(idOf(9), {}, {500, 400});
        windows.assignHeads();
        QCOMPARE(*windows.find(idOf(9))->head, 1U);
    }

    void headZeroIsNeverOff() {
        Windows windows(2);
        QVERIFY(windows.headSizes()[0]);
        addWindows(windows, 2);
        windows.remove(idOf(0));
        windows.remove(idOf(1));
        windows.assignHeads();
        QVERIFY(windows.headSizes()[0]);
        QVERIFY(!windows.headSizes()[1]);
    }

    void theLastHeadIsShared() {
        Windows windows(3);
        addWindows(windows, 6);
        for (unsigned i = 0; i < 6; ++i) {
            QCOMPARE(*windows.find(idOf(i))->head, std::min(i, 2U));
            QCOMPARE(windows.find(idOf(i))->sharesHead, i >= 2);
        }
        // A head becomes free: the one that waited longest gets it. The first on the shared head stays.
        windows.remove(idOf(0));
        windows.assignHeads();
        QCOMPARE(*windows.find(idOf(3))->head, 0U);
        QVERIFY(!windows.find(idOf(3))->sharesHead);
        QCOMPARE(*windows.find(idOf(2))->head, 2U);
        QVERIFY(windows.find(idOf(2))->sharesHead);
        windows.remove(idOf(4));
        windows.remove(idOf(5));
        windows.assignHeads();
        QVERIFY(!windows.find(idOf(2))->sharesHead);
    }

    void oneHeadIsEnough() {
        Windows windows(1);
        addWindows(windows, 3);
        for (unsigned i = 0; i < 3; ++i) {
            QCOMPARE(*windows.find(idOf(i))->head, 0U);
            QVERIFY(windows.find(idOf(i))->sharesHead);
        }
        QVERIFY(windows.resize(*windows.find(idOf(1)), {640, 480}));
        QCOMPARE(*windows.headSizes()[0], (Size{640, 480}));
    }

    void dialogsAreOnTheirWindowsHead() {
        Windows windows(4);
        addWindows(windows, 2);
        windows.add(50, {.kind = Kind::Dialog, .transientFor = idOf(1)}, {100, 100});
        windows.add(51, {.kind = Kind::Dialog, .transientFor = 50}, {100, 100});  // a dialog's dialog
        windows.add(52, {.kind = Kind::Dialog, .transientFor = 777}, {100, 100}); // of nobody here
        windows.assignHeads();
        QCOMPARE(windows.find(50)->anchor, idOf(1));
        QCOMPARE(windows.find(51)->anchor, idOf(1));
        QCOMPARE(*windows.find(51)->head, 1U);
        QVERIFY(windows.find(52)->ownsHead);
        QCOMPARE(*windows.find(52)->head, 2U);
        // Without their window they need a head of their own.
        windows.remove(idOf(1));
        windows.assignHeads();
        QVERIFY(windows.find(50)->ownsHead);
        QCOMPARE(windows.find(51)->anchor, XWindow{50});
        QVERIFY(!windows.resize(*windows.find(51), {200, 200}));
    }

    void largeDialogsHaveAHead() {
        Windows windows(3);
        windows.add(1, {}, {300, 200});
        windows.add(2, {.kind = Kind::Dialog, .transientFor = 1}, {300, 200});
        windows.add(3, {.kind = Kind::Dialog, .transientFor = 1}, {300, 201});
        windows.add(4, {.kind = Kind::Dialog, .transientFor = 3}, {200, 201});
        windows.assignHeads();
        QCOMPARE(*windows.find(2)->head, 0U);
        QVERIFY(windows.find(3)->ownsHead);
        QCOMPARE(*windows.find(3)->head, 1U);
        QCOMPARE(*windows.headSizes()[1], (Size{300, 201}));
        QCOMPARE(windows.find(4)->anchor, XWindow{3}); // and its own dialogs are there
        // Nothing jumps when sizes change, or when there would be room.
        QVERIFY(windows.resize(*windows.find(1), {1000, 1000}));
        QVERIFY(windows.resize(*windows.find(3), {100, 100}));
        windows.assignHeads();
        QCOMPARE(*windows.find(3)->head, 1U);
        QCOMPARE(*windows.find(4)->head, 1U);
        QCOMPARE(*windows.find(2)->head, 0U);
        // Without a free head it has to make do.
        windows.add(5, {}, {300, 200});
        windows.add(6, {.kind = Kind::Dialog, .transientFor = 5}, {900, 900});
        windows.assignHeads();
        QCOMPARE(*windows.find(5)->head, 2U);
        QCOMPARE(*windows.find(6)->head, 2U);
        QVERIFY(!windows.find(6)->ownsHead && !windows.find(5)->sharesHead);
    }

    void dialogsOfAGroup() {
        Windows windows(4);
        windows.add(1, {.group = 99}, {300, 300});
        windows.add(2, {.kind = Kind::Dialog, .transientForGroup = true, .group = 99}, {100, 100});
        windows.add(3, {.kind = Kind::Dialog, .transientForGroup = true, .group = 98}, {100, 100});
        windows.assignHeads();
        QCOMPARE(windows.find(2)->anchor, XWindow{1});
        QVERIFY(windows.find(3)->ownsHead);
    }

    void loopsEnd() {
        Windows windows(8);
        windows.add(1, {.transientFor = 2}, {100, 100});
        windows.add(2, {.transientFor = 1}, {100, 100});
        windows.add(3, {.transientFor = 3}, {100, 100});
        windows.add(4, {.transientFor = 1}, {100, 100});
        for (XWindow i = 10; i < 60; ++i) {
            windows.add(i, {.transientFor = i + 1}, {100, 100}); // a chain longer than anybody's
        }
        windows.assignHeads();
        for (const Window& window : windows.all()) {
            QVERIFY(window.head);
        }
        QVERIFY(windows.find(1)->ownsHead && windows.find(2)->ownsHead && windows.find(3)->ownsHead);
    }

    void numbersAreNotUsedAgain() {
        Windows windows(2);
        const Number first = windows.add(7, {}, {}).number;
        windows.remove(7);
        const Number second = windows.add(7, {}, {}).number;
        QVERIFY(first != 0 && second != 0 && first != second);
    }

    void theHostsSizeCounts() {
        Windows windows(2);
        addWindows(windows, 1);
        Window& window = *windows.find(idOf(0));
        windows.wish(window, {400, 300});
        QCOMPARE(*windows.headSizes()[0], (Size{400, 300}));
        QVERIFY(windows.resize(window, {400, 300})); // an echo of what is
        windows.wish(window, {410, 310});
        QCOMPARE(*windows.headSizes()[0], (Size{410, 310}));
        QVERIFY(windows.resize(window, {1000, 9000}));
        QCOMPARE(*windows.headSizes()[0], (Size{1000, kLargestSide}));
        windows.wish(window, {500, 500});
        QCOMPARE(*windows.headSizes()[0], (Size{1000, kLargestSide}));
    }

    void dialogsStayInside_data() {
        QTest::addColumn<QPoint>("asked");
        QTest::addColumn<QSize>("size");
        QTest::addColumn<QRect>("placed");
        // The head is 1000x500 at 2000,100.
        QTest::newRow("in the middle") << QPoint(-1, -1) << QSize(200, 100) << QRect(2400, 300, 200, 100);
        QTest::newRow("where it asks") << QPoint(2010, 120) << QSize(200, 100) << QRect(2010, 120, 200, 100);
        QTest::newRow("not to the left") << QPoint(0, 0) << QSize(200, 100) << QRect(2000, 100, 200, 100);
        QTest::newRow("not to the right") << QPoint(9000, 9000) << QSize(200, 100) << QRect(2800, 500, 200, 100);
        QTest::newRow("not larger") << QPoint(2100, 200) << QSize(5000, 5000) << QRect(2000, 100, 1000, 500);
        QTest::newRow("not nothing") << QPoint(2100, 200) << QSize(0, 0) << QRect(2100, 200, 1, 1);
    }
    void dialogsStayInside() {
        QFETCH(QPoint, asked);
        QFETCH(QSize, size);
        QFETCH(QRect, placed);
        const auto wish = asked.x() < 0 ? std::nullopt : std::optional(Point{asked.x(), asked.y()});
        const Rect rect = placeDialog({{2000, 100}, {1000, 500}}, {size.width(), size.height()}, wish);
        QCOMPARE(QRect(rect.at.x, rect.at.y, rect.size.width, rect.size.height), placed);
    }

    void theKeyboardGoesBack() {
        Windows windows(4);
        FocusOrder order;
        addWindows(windows, 2);
        order.add(*windows.find(idOf(0)), windows);
        order.use(idOf(0));
        order.add(*windows.find(idOf(1)), windows);
        QCOMPARE(order.last(), idOf(0)); // a new window does not push itself to the front
        windows.add(50, {.transientFor = idOf(1)}, {10, 10});
        windows.assignHeads();
        order.add(*windows.find(50), windows);
        QCOMPARE(order.lastOf(idOf(1), windows), XWindow{50}); // but a dialog to that of its window
        QCOMPARE(order.last(), idOf(0));
        order.remove(50);
        windows.remove(50);
        QCOMPARE(order.lastOf(idOf(1), windows), idOf(1));
        QCOMPARE(order.lastOf(12345, windows), XWindow{0});
    }

    // ---- texts -----------------------------------------------------------------------------------------------------

    void texts_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<int>("most");
        QTest::addColumn<QByteArray>("clean");
        QTest::newRow("plain") << QByteArray("hello") << 10 << QByteArray("hello");
        QTest::newRow("cut") << QByteArray("hello") << 4 << QByteArray("hell");
        QTest::newRow("cut at a character") << QByteArray("aä€𝄞") << 9 << QByteArray("aä€");
        QTest::newRow("whole") << QByteArray("aä€𝄞") << 10 << QByteArray("aä€𝄞");
        QTest::newRow("controls") << QByteArray("a\x1B[31m\nb\x7F\xC2\x85"
                                                "c")
                                  << 99 << QByteArray("a [31m b  c");
        QTest::newRow("not UTF-8") << QByteArray("a\xFF\x80z") << 99 << QByteArray("a\uFFFD\uFFFDz");
        QTest::newRow("overlong") << QByteArray("\xC0\xAF") << 99 << QByteArray("\uFFFD\uFFFD");
        QTest::newRow("surrogate") << QByteArray("\xED\xA0\x80") << 99 << QByteArray("\uFFFD\uFFFD\uFFFD");
        QTest::newRow("too large") << QByteArray("\xF4\x90\x80\x80") << 6 << QByteArray("\uFFFD\uFFFD");
        QTest::newRow("cut off") << QByteArray("a\xE2\x82") << 99 << QByteArray("a\uFFFD\uFFFD");
        QTest::newRow("zero byte") << QByteArray("a\0b", 3) << 99 << QByteArray("a b");
    }
    void texts() {
        QFETCH(QByteArray, text);
        QFETCH(int, most);
        QFETCH(QByteArray, clean);
        const std::string got = cleanText(text.toStdString(), static_cast<std::size_t>(most));
        QCOMPARE(QByteArray::fromStdString(got), clean);
        QVERIFY(isValidUtf8(got));
    }

    void anyBytesBecomeText() {
        std::mt19937 random(2);
        std::uniform_int_distribution<int> byte(0, 255);
        for (int i = 0; i < 2000; ++i) {
            std::string text(static_cast<std::size_t>(i % 97), '\0');
            std::generate(text.begin(), text.end(), [&] { return static_cast<char>(byte(random)); });
            for (const std::string& clean : {cleanText(text, 40), cleanLatin1(text, 40)}) {
                QVERIFY(isValidUtf8(clean));
                QVERIFY(clean.size() <= 40);
            }
        }
        QCOMPARE(cleanLatin1("caf\xE9", 99), std::string("café"));
    }
};

QTEST_GUILESS_MAIN(TestSessionRules)
#include "tst_session_rules.moc"

// SPDX-License-Identifier: Apache-2.0
#include "protocol/handshake.hpp"
#include "session_pair.hpp"

#include <QTest>

using namespace bulkhead::protocol;
using namespace bulkhead::protocol::test;

class TestProtocolSession : public QObject {
    Q_OBJECT

private slots:
    void handshake_data() {
        QTest::addColumn<int>("step");
        QTest::newRow("byte by byte") << 1;
        QTest::newRow("sevens") << 7;
        QTest::newRow("one piece") << 65536;
    }
    void handshake() {
        QFETCH(int, step);
        Pair pair(static_cast<std::size_t>(step));
        pair.connect();
        QVERIFY(pair.host.session.isReady());
        QVERIFY(pair.guest.session.isReady());
        QCOMPARE(pair.host.events.ready, 1);
        QCOMPARE(pair.guest.events.ready, 1);
        QCOMPARE(pair.guest.events.resets, 0);
        const auto id = pair.host.session.open();
        QVERIFY(id);
        QCOMPARE(*id, 1U);
        QCOMPARE(pair.host.session.write(*id, blob("hello")), std::size_t{5});
        pair.pump();
        QCOMPARE(pair.guest.events.opened, std::vector<StreamId>{1});
        QCOMPARE(pair.guest.events.data[1], std::string("hello"));
        QCOMPARE(pair.guest.session.write(1, blob("world")), std::size_t{5});
        pair.pump();
        QCOMPARE(pair.host.events.data[1], std::string("world"));
        QCOMPARE(pair.host.session.violation(), Violation::None);
    }

    void handshake_wrongToken_givesNoSession() {
        Pair pair(64, 1, someToken(1), someToken(2));
        pair.connect();
        QVERIFY(!pair.host.session.isReady());
        QVERIFY(!pair.guest.session.isReady());
        QCOMPARE(pair.guest.events.ready, 0);
        QVERIFY(pair.guest.take().empty());
    }
    void handshake_ofARestoredGuest_takesTheTokenOfItsNewHostOnly() {
        // The guest has a session of its own past, and with it that past's token; the host put another in its place.
        const auto tryToBegin = [](Pair& pair, const Token& token) {
            End host(Role::Host, 9, token);
            host.session.start();
            for (int i = 0; i < 4; ++i) {
                (void)pair.guest.feed(host.take(), 64);
                (void)host.feed(pair.guest.take(), 64);
            }
            return host.session.isReady();
        };
        // Whoever knows the old one (all siblings have it in their memory) comes first, and later, or not at all.
        for (const std::vector<unsigned char>& order : {std::vector<unsigned char>{1, 2}, {2, 1}, {3, 2, 3, 1}}) {
            Pair pair(64, 1, someToken(1), someToken(1));
            pair.connect();
            QVERIFY(pair.guest.session.isReady());
            pair.guest.session.setTokenSource([] { return std::optional(someToken(2)); });
            for (const unsigned char token : order) {
                QCOMPARE(tryToBegin(pair, someToken(token)), token == 2);
            }
        }
    }
    void handshake_guestThatDoesNotKnowTheToken_isSkippedAndThenRefused() {
        End host(Role::Host, 1, someToken(1));
        host.session.start();
        const Blob reset = host.take();
        const auto forged = handshake::makeAnswer(someToken(2), Nonce{}, Nonce{});
        QCOMPARE(host.feed({forged.begin(), forged.end()}, 64), Violation::None);
        QVERIFY(!host.session.isReady());
        const Blob noise(1024 * 1024, std::byte{0x55});
        Violation last = Violation::None;
        for (int i = 0; i < 17 && last == Violation::None; ++i) {
            last = host.feed(noise, 65536);
        }
        QCOMPARE(last, Violation::BadProof);
    }
    void handshake_staleBytesBothWays() {
        for (const std::size_t step : {1, 5, 4096}) {
            Pair pair(step);
            Blob stale = blob("stale \xf9\x5b\x8e bytes \xf9");
            QCOMPARE(pair.guest.feed(stale, step), Violation::None);
            pair.host.session.start();
            QCOMPARE(pair.host.feed(blob("half an old frame \xfb\x37\xc8 \xfb"), step), Violation::None);
            pair.pump();
            QVERIFY(pair.host.session.isReady() && pair.guest.session.isReady());
        }
    }
    void handshake_resetSentAgain_isAnsweredEachTimeAndGivesOneSession() {
        for (const std::size_t step : {1, 64, 4096}) {
            Pair pair(step);
            Blob down;
            for (int i = 0; i < 4; ++i) {
                pair.host.session.start();
                const Blob reset = pair.host.take();
                QCOMPARE(reset.size(), std::size_t{64});
                down.insert(down.end(), reset.begin(), reset.end());
            }
            // The guest comes up late, and reads and answers them one by one.
            Blob up;
            for (std::size_t at = 0; at < down.size(); at += 64) {
                QCOMPARE(pair.guest.feed({down.begin() + static_cast<std::ptrdiff_t>(at),
                                          down.begin() + static_cast<std::ptrdiff_t>(at + 64)},
                                         step),
                         Violation::None);
                const Blob answer = pair.guest.take();
                up.insert(up.end(), answer.begin(), answer.end());
            }
            QCOMPARE(up.size(), std::size_t{256});
            QCOMPARE(pair.host.feed(up, step), Violation::None);
            pair.pump();
            QVERIFY(pair.host.session.isReady() && pair.guest.session.isReady());
            QCOMPARE(pair.guest.events.ready, 1);
            // No more copies than resets.
            const auto id = pair.host.session.open();
            QVERIFY(pair.host.session.write(*id, blob("x")) == 1);
            pair.pump();
            QCOMPARE(pair.guest.events.data[*id], std::string("x"));
            QCOMPARE(pair.host.feed({up.begin(), up.begin() + 64}, step), Violation::BadVersion);
        }
    }
    void handshake_replayedByAnotherHost_givesNoSession() {
        Pair pair;
        pair.host.session.start();
        Blob recorded = pair.host.take();
        (void)pair.guest.feed(recorded, 64);
        (void)pair.host.feed(pair.guest.take(), 64);
        const Blob confirm = pair.host.take();
        (void)pair.guest.feed(confirm, 64);
        QCOMPARE(pair.guest.events.ready, 1);
        // The very same bytes again: the nonce of the guest is another one now.
        (void)pair.guest.feed(recorded, 64);
        QCOMPARE(pair.guest.events.resets, 1);
        (void)pair.guest.feed(confirm, 64);
        QVERIFY(!pair.guest.session.isReady());
        QCOMPARE(pair.guest.events.ready, 1);
        QCOMPARE(pair.guest.session.violation(), Violation::BadProof);
        // Nothing is obeyed until a host that knows the token comes.
        (void)pair.guest.take();
        End next(Role::Host, 77, someToken());
        next.session.start();
        (void)pair.guest.feed(next.take(), 3);
        (void)next.feed(pair.guest.take(), 3);
        (void)pair.guest.feed(next.take(), 3);
        QVERIFY(pair.guest.session.isReady() && next.session.isReady());
    }

    /// A proof that ends like the begin of a reset must not leave the guest waiting for more.
    void handshake_confirmThatEndsInTheFirstByteOfTheMagic() {
        unsigned seed = 0;
        for (bool found = false; !found; ++seed) {
            Nonce host{};
            Nonce guest{};
            seeded(seed)(host);
            seeded(seed + 1000)(guest);
            found = handshake::makeConfirm(someToken(), host, guest).back() == handshake::kHostMagic.front();
        }
        Pair pair(4096, seed - 1);
        pair.connect();
        QVERIFY(pair.guest.session.isReady());
    }

    void reset_inTheMiddleOfFrames() {
        for (const std::size_t step : {1, 33, 4096}) {
            Pair pair(step);
            pair.connect();
            const auto id = pair.host.session.open();
            pair.pump();
            (void)pair.host.session.write(*id, Blob(1000, std::byte{'h'}));
            (void)pair.guest.session.write(*id, Blob(1000, std::byte{'g'}));
            // Half a frame each way, then another host on the same wire.
            (void)pair.guest.feed(pair.host.take(500), step);
            const Blob halfUp = pair.guest.take(500);
            End next(Role::Host, 99, someToken());
            next.session.start();
            QCOMPARE(next.feed(halfUp, step), Violation::None);
            QCOMPARE(pair.guest.feed(next.take(), step), Violation::None);
            QCOMPARE(pair.guest.events.resets, 1);
            QCOMPARE(next.feed(pair.guest.take(), step), Violation::None);
            QVERIFY(next.session.isReady());
            (void)pair.guest.feed(next.take(), step);
            QCOMPARE(pair.guest.events.ready, 2);
            // Ids begin anew.
            const auto again = next.session.open();
            QCOMPARE(*again, 1U);
            (void)next.session.write(*again, blob("new"));
            (void)pair.guest.feed(next.take(), step);
            QCOMPARE(pair.guest.events.data[1], std::string("new"));
            QCOMPARE(pair.guest.session.violation(), Violation::None);
        }
    }

    void reset_getsThroughWhateverTheOldSessionWasAbout_data() {
        QTest::addColumn<std::size_t>("takenDown"); // bytes of the old host that the guest has got
        QTest::addColumn<std::size_t>("takenUp");   // and of the guest that the old host has got
        QTest::addColumn<bool>("isSeenLate");       // the guest sends all that it has before it reads on
        for (const std::size_t down : {0, 1, 5, 11, 12, 13, 27, 28, 29, 75, 76, 77, 500, 40'000}) {
            for (const std::size_t up : {0, 1, 11, 12, 13, 40'000, 900'000}) {
                for (const bool isSeenLate : {false, true}) {
                    QTest::addRow("%zu down, %zu up%s", down, up, isSeenLate ? ", seen late" : "")
                        << down << up << isSeenLate;
                }
            }
        }
    }
    void reset_getsThroughWhateverTheOldSessionWasAbout() {
        QFETCH(std::size_t, takenDown);
        QFETCH(std::size_t, takenUp);
        QFETCH(bool, isSeenLate);
        Pair pair;
        pair.connect();
        std::vector<StreamId> streams;
        for (int i = 0; i < 8; ++i) {
            streams.push_back(*pair.host.session.open());
        }
        pair.pump();
        // The guest has more to send than the line and its own queue take; the host sends what looks like resets.
        for (const StreamId id : streams) {
            (void)pair.guest.session.write(id, Blob(kInitialWindow, std::byte{'g'}));
        }
        QCOMPARE(pair.guest.session.writable(streams.back()), std::size_t{0});
        const auto fake = handshake::makeReset(someToken(9), {});
        for (int i = 0; i < 700; ++i) {
            (void)pair.host.session.write(streams.front(), fake);
        }
        QCOMPARE(pair.guest.feed(pair.host.take(takenDown), 4096), Violation::None);
        (void)pair.guest.take(takenUp);

        End next(Role::Host, 99, someToken());
        next.session.start();
        const Blob early = pair.guest.take(isSeenLate ? static_cast<std::size_t>(-1) : 30'000);
        QCOMPARE(pair.guest.feed(next.take(), 4096), Violation::None);
        QCOMPARE(pair.guest.events.resets, 1);
        QCOMPARE(next.feed(early, 4096), Violation::None);
        QCOMPARE(next.feed(pair.guest.take(), 4096), Violation::None);
        QVERIFY(next.session.isReady());
        QCOMPARE(pair.guest.feed(next.take(), 4096), Violation::None);
        QCOMPARE(pair.guest.events.ready, 2);
        // Nothing of the old one comes behind.
        const auto id = next.session.open();
        (void)pair.guest.feed(next.take(), 4096);
        (void)pair.guest.session.write(*id, blob("new"));
        QCOMPARE(next.feed(pair.guest.take(), 4096), Violation::None);
        QCOMPARE(next.events.data[*id], std::string("new"));
        QCOMPARE(pair.guest.session.violation(), Violation::None);
    }

    void magicInUserData_isJustDataAndNotDelayed_data() {
        QTest::addColumn<QByteArray>("payload");
        const QByteArray magic(reinterpret_cast<const char*>(handshake::kHostMagic.data()), handshake::kMagicSize);
        for (qsizetype n = 1; n <= magic.size(); ++n) {
            QTest::addRow("first %d bytes", int(n)) << magic.left(n);
            QTest::addRow("text and first %d bytes", int(n)) << "some text" + magic.left(n);
        }
        QTest::newRow("magic and more") << magic + QByteArray(20, 'x');
        QTest::newRow("magic and nearly all") << magic + QByteArray(47, 'x');
        QTest::newRow("a whole reset with a wrong proof") << magic + QByteArray(48, 'x');
        QTest::newRow("many") << magic.repeated(500) + "\xf9";
        QTest::newRow("magic in a magic") << magic.left(7) + magic + magic.left(3) + magic;
    }
    void magicInUserData_isJustDataAndNotDelayed() {
        QFETCH(QByteArray, payload);
        for (const std::size_t step : {1, 11, 100000}) {
            Pair pair(step);
            pair.connect();
            const auto id = pair.host.session.open();
            QCOMPARE(pair.host.session.write(*id, blob(payload.toStdString())), std::size_t(payload.size()));
            pair.pump();
            QCOMPARE(QByteArray::fromStdString(pair.guest.events.data[*id]), payload);
            QCOMPARE(pair.guest.events.resets, 0);
            QCOMPARE(pair.guest.session.violation(), Violation::None);
            // The other direction has no such care.
            QCOMPARE(pair.guest.session.write(*id, blob(payload.toStdString())), std::size_t(payload.size()));
            pair.pump();
            QCOMPARE(QByteArray::fromStdString(pair.host.events.data[*id]), payload);
        }
    }

    void backPressure_takesTheWindowAndNoMore() {
        Pair pair;
        pair.connect();
        pair.guest.events.consumes = false;
        const auto id = pair.host.session.open();
        pair.pump();
        const Blob big(kInitialWindow + 1000, std::byte{'x'});
        QCOMPARE(pair.host.session.writable(*id), std::size_t{kInitialWindow});
        QCOMPARE(pair.host.session.write(*id, big), std::size_t{kInitialWindow});
        pair.pump();
        QCOMPARE(pair.host.session.write(*id, big), std::size_t{0});
        QCOMPARE(pair.guest.events.data[*id].size(), std::size_t{kInitialWindow});
        // Less than half consumed: no update. Half: one, and the owner is told once.
        pair.guest.session.consumed(*id, kInitialWindow / 2 - 1);
        pair.pump();
        QVERIFY(pair.host.events.writable.empty());
        pair.guest.session.consumed(*id, 1);
        pair.pump();
        QCOMPARE(pair.host.events.writable, std::vector<StreamId>{*id});
        QCOMPARE(pair.host.session.writable(*id), std::size_t{kInitialWindow / 2});
        // Consuming more than came gives nothing.
        pair.guest.session.consumed(*id, 10 * kInitialWindow);
        pair.pump();
        QCOMPARE(pair.host.session.writable(*id), std::size_t{kInitialWindow});
    }
    void backPressure_aBlockedStreamDoesNotBlockOthers() {
        Pair pair;
        pair.connect();
        const auto blocked = pair.host.session.open();
        const auto other = pair.host.session.open();
        pair.guest.events.consumes = false;
        (void)pair.host.session.write(*blocked, Blob(kInitialWindow * 2, std::byte{'b'}));
        pair.pump();
        QCOMPARE(pair.host.session.write(*other, blob("through")), std::size_t{7});
        pair.pump();
        QCOMPARE(pair.guest.events.data[*other], std::string("through"));
    }
    void backPressure_queueIsBoundedAndShared() {
        Pair pair;
        pair.connect();
        std::size_t taken = 0;
        std::vector<StreamId> ids;
        for (int i = 0; i < 8; ++i) {
            ids.push_back(*pair.host.session.open());
            taken += pair.host.session.write(ids.back(), Blob(kInitialWindow, std::byte{'q'}));
        }
        QVERIFY(taken <= kMaxOutputQueue);
        QVERIFY(taken >= kMaxOutputQueue - 64 * 1024);
        pair.pump();
        // Those that were refused are told; none that was not.
        QVERIFY(!pair.host.events.writable.empty());
        for (const StreamId id : pair.host.events.writable) {
            QVERIFY(id >= ids[3]);
        }
    }

    void halfClose_bothWays() {
        for (const bool hostFirst : {true, false}) {
            Pair pair;
            pair.connect();
            const auto id = pair.host.session.open();
            (void)pair.host.session.write(*id, blob("in"));
            pair.pump();
            End& first = hostFirst ? pair.host : pair.guest;
            End& second = hostFirst ? pair.guest : pair.host;
            (void)first.session.write(*id, blob("last"));
            first.session.finish(*id);
            QCOMPARE(first.session.write(*id, blob("more")), std::size_t{0});
            pair.pump();
            QCOMPARE(second.events.finished, std::vector<StreamId>{*id});
            QVERIFY(QByteArray::fromStdString(second.events.data[*id]).endsWith("last"));
            QCOMPARE(second.session.write(*id, blob("still")), std::size_t{5});
            pair.pump();
            QCOMPARE(first.events.data[*id].substr(first.events.data[*id].size() - 5), std::string("still"));
            second.session.finish(*id);
            pair.pump();
            QCOMPARE(first.events.finished, std::vector<StreamId>{*id});
            QCOMPARE(second.session.write(*id, blob("x")), std::size_t{0});
            QCOMPARE(pair.host.session.violation(), Violation::None);
            QCOMPARE(pair.guest.session.violation(), Violation::None);
        }
    }
    void finish_comesBehindTheData() {
        Pair pair;
        pair.connect();
        const auto id = pair.host.session.open();
        QCOMPARE(pair.host.session.write(*id, Blob(kInitialWindow, std::byte{'d'})), std::size_t{kInitialWindow});
        pair.host.session.finish(*id);
        pair.pump();
        QCOMPARE(pair.guest.events.data[*id].size(), std::size_t{kInitialWindow});
        QCOMPARE(pair.guest.events.finished.size(), std::size_t{1});
    }

    void resetStream_lateFramesAreIgnored() {
        Pair pair;
        pair.connect();
        const auto id = pair.host.session.open();
        pair.pump();
        (void)pair.guest.session.write(*id, Blob(100000, std::byte{'l'}));
        pair.guest.session.finish(*id);
        const Blob late = pair.guest.take();
        pair.host.session.resetStream(*id);
        QCOMPARE(pair.host.feed(late, 1000), Violation::None);
        QVERIFY(pair.host.events.data[*id].empty());
        QVERIFY(pair.host.events.finished.empty());
        pair.pump();
        QCOMPARE(pair.guest.events.resetStreams, std::vector<StreamId>{*id});
        QCOMPARE(pair.guest.session.violation(), Violation::None);
        QCOMPARE(pair.guest.session.write(*id, blob("x")), std::size_t{0});
        // The session goes on.
        const auto next = pair.host.session.open();
        (void)pair.host.session.write(*next, blob("on"));
        pair.pump();
        QCOMPARE(pair.guest.events.data[*next], std::string("on"));
    }
    void resetStream_byBothAtOnce() {
        Pair pair;
        pair.connect();
        const auto id = pair.host.session.open();
        pair.pump();
        pair.host.session.resetStream(*id);
        pair.guest.session.resetStream(*id);
        pair.pump();
        QVERIFY(pair.host.events.resetStreams.empty());
        QVERIFY(pair.guest.events.resetStreams.empty());
        QCOMPARE(pair.host.session.violation(), Violation::None);
        QCOMPARE(pair.guest.session.violation(), Violation::None);
    }
    void resetStream_dropsItsQueuedData() {
        Pair pair;
        pair.connect();
        const auto id = pair.host.session.open();
        pair.pump();
        (void)pair.host.session.write(*id, Blob(200000, std::byte{'q'}));
        pair.host.session.resetStream(*id);
        QVERIFY(pair.host.take().size() < 100);
    }

    void streams_areLimited() {
        Pair pair;
        pair.connect();
        for (std::size_t i = 0; i < kMaxStreams; ++i) {
            QVERIFY(pair.host.session.open());
        }
        QVERIFY(!pair.host.session.open());
        pair.pump();
        QCOMPARE(pair.guest.events.opened.size(), kMaxStreams);
        pair.host.session.resetStream(1);
        QVERIFY(pair.host.session.open());
        pair.pump();
        QCOMPARE(pair.guest.session.violation(), Violation::None);
    }
    void streams_manyOneAfterTheOther() {
        Pair pair;
        pair.connect();
        for (int i = 0; i < 6000; ++i) {
            const auto id = pair.host.session.open();
            QVERIFY(id);
            pair.host.session.finish(*id);
            pair.pump();
            pair.guest.session.finish(*id);
            pair.pump();
        }
        QCOMPARE(pair.host.session.violation(), Violation::None);
        QCOMPARE(pair.guest.session.violation(), Violation::None);
    }
    void controlFramesGoBeforeData() {
        Pair pair;
        pair.connect();
        const auto first = pair.host.session.open();
        pair.pump();
        (void)pair.host.session.write(*first, Blob(200000, std::byte{'d'}));
        const auto second = pair.host.session.open();
        const Blob out = pair.host.take(kFrameHeaderSize);
        const auto header = decodeHeader(std::span(out).first<kFrameHeaderSize>());
        QCOMPARE(std::get<FrameHeader>(header).stream, *second);
    }
};

QTEST_APPLESS_MAIN(TestProtocolSession)
#include "tst_protocol_session.moc"

// SPDX-License-Identifier: Apache-2.0
#include "session_pair.hpp"

#include <QTest>

using namespace bulkhead::protocol;
using namespace bulkhead::protocol::test;

namespace {

Blob operator+(Blob left, const Blob& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}
Blob data(StreamId stream, std::size_t size, std::uint16_t flags = 0) {
    return encodeFrame({.type = FrameType::Data, .flags = flags, .stream = stream, .length = std::uint32_t(size)},
                       Blob(size, std::byte{'v'}));
}
Blob window(StreamId stream, std::uint32_t grant, std::uint16_t flags = 0) {
    return encodeFrame({.type = FrameType::WindowUpdate, .flags = flags, .stream = stream, .length = grant});
}
Blob ping(std::uint32_t opaque, std::uint16_t flags = flag::kSyn) {
    return encodeFrame({.type = FrameType::Ping, .flags = flags, .stream = 0, .length = opaque});
}

} // namespace

/// Each way to break the protocol, seen from the side that must notice.
class TestProtocolViolations : public QObject {
    Q_OBJECT

private slots:
    /// Bytes of a hostile guest. Stream 1 is open and acknowledged, 3 is open and not, 5 was reset by the host.
    void byGuest_data() {
        QTest::addColumn<Blob>("bytes");
        QTest::addColumn<Violation>("violation");
        QTest::newRow("not yamux") << blob("GET / HTTP/1.0\r\n") << Violation::BadVersion;
        QTest::newRow("data of stream 0") << Blob(12, std::byte{0}) << Violation::BadStreamId;
        QTest::newRow("type 9") << blob(std::string("\0\x09\0\0\0\0\0\1\0\0\0\0", 12)) << Violation::BadType;
        QTest::newRow("opens a stream") << window(2, 0, flag::kSyn) << Violation::BadFlags;
        QTest::newRow("opens one of ours") << window(1, 0, flag::kSyn) << Violation::BadFlags;
        QTest::newRow("second ACK") << window(1, 0, flag::kAck) << Violation::BadFlags;
        QTest::newRow("no ACK") << window(3, 0) << Violation::BadFlags;
        QTest::newRow("never opened") << data(99, 1) << Violation::UnknownStream;
        QTest::newRow("never opened, even") << data(4, 1) << Violation::UnknownStream;
        QTest::newRow("reset of one never opened") << window(99, 0, flag::kRst) << Violation::UnknownStream;
        QTest::newRow("more after its own reset") << window(1, 0, flag::kRst) + data(1, 1) << Violation::UnknownStream;
        QTest::newRow("frame too large") << encodeFrame(
                                                {.type = FrameType::Data, .flags = 0, .stream = 1, .length = 65537})
                                         << Violation::FrameTooLarge;
        QTest::newRow("window exceeded") << data(1, 65536) + data(1, 65536) + data(1, 65536) + data(1, 65536) +
                                                data(1, 1)
                                         << Violation::WindowExceeded;
        QTest::newRow("window of a reset stream exceeded")
            << data(5, 65536) + data(5, 65536) + data(5, 65536) + data(5, 65536) + data(5, 1)
            << Violation::WindowExceeded;
        QTest::newRow("window overflow") << window(1, 0xffffffff) << Violation::WindowOverflow;
        QTest::newRow("data behind its end") << data(1, 3, flag::kFin) + data(1, 1) << Violation::BadFlags;
        QTest::newRow("two ends") << window(1, 0, flag::kFin) + window(1, 0, flag::kFin) << Violation::BadFlags;
        QTest::newRow("answer to no ping") << ping(0, flag::kAck) << Violation::BadFlags;
        QTest::newRow("go away") << encodeFrame({.type = FrameType::GoAway, .flags = 0, .stream = 0, .length = 0})
                                 << Violation::GoAway;
        Blob flood;
        for (std::size_t i = 0; i <= kMaxQueuedControlFrames; ++i) {
            flood = std::move(flood) + ping(std::uint32_t(i));
        }
        QTest::newRow("ping flood") << flood << Violation::TooManyControlFrames;
    }
    void byGuest() {
        QFETCH(Blob, bytes);
        QFETCH(Violation, violation);
        for (const std::size_t step : {std::size_t{1}, std::size_t{4096}}) {
            Pair pair;
            pair.connect();
            pair.host.events.consumes = false;
            (void)pair.host.session.open();
            pair.pump();
            (void)pair.host.session.open();
            (void)pair.host.session.open();
            pair.host.session.resetStream(5);
            (void)pair.host.take();
            QCOMPARE(nameOf(pair.host.feed(bytes, step)), nameOf(violation));
            QCOMPARE(pair.host.session.violation(), violation);
            QVERIFY(!pair.host.session.isReady());
            QVERIFY(pair.host.take().empty());
            QVERIFY(!pair.host.session.open());
            QCOMPARE(pair.host.session.write(1, blob("x")), std::size_t{0});
            QCOMPARE(pair.host.feed(bytes, step), violation);
        }
    }

    /// Bytes of a host that has lost its mind; the guest stays alive for the next one.
    void byHost_data() {
        QTest::addColumn<Blob>("bytes");
        QTest::addColumn<Violation>("violation");
        QTest::newRow("even id") << window(4, 0, flag::kSyn) << Violation::BadStreamId;
        QTest::newRow("used id") << window(1, 0, flag::kSyn) << Violation::BadStreamId;
        QTest::newRow("last id") << window(0xffffffff, 0, flag::kSyn) << Violation::BadStreamId;
        QTest::newRow("never opened") << data(9, 1) << Violation::UnknownStream;
        QTest::newRow("ACK of nothing") << window(1, 0, flag::kAck) << Violation::BadFlags;
        Blob many;
        for (StreamId id = 3; id < 3 + 2 * kMaxStreams; id += 2) {
            many = std::move(many) + window(id, 0, flag::kSyn);
        }
        QTest::newRow("too many streams") << many << Violation::TooManyStreams;
    }
    void byHost() {
        QFETCH(Blob, bytes);
        QFETCH(Violation, violation);
        Pair pair;
        pair.connect();
        (void)pair.host.session.open();
        pair.pump();
        QCOMPARE(pair.guest.feed(bytes, 1), Violation::None);
        QCOMPARE(nameOf(pair.guest.session.violation()), nameOf(violation));
        QCOMPARE(pair.guest.events.resets, 1);
        QVERIFY(!pair.guest.session.isReady());
        QVERIFY(pair.guest.take().empty());
        End next(Role::Host, 5, someToken());
        next.session.start();
        QCOMPARE(pair.guest.feed(next.take(), 10), Violation::None);
        QCOMPARE(next.feed(pair.guest.take(), 10), Violation::None);
        QCOMPARE(pair.guest.feed(next.take(), 10), Violation::None);
        QCOMPARE(pair.guest.events.ready, 2);
        QCOMPARE(pair.guest.events.resets, 1);
        QCOMPARE(pair.guest.session.violation(), Violation::None);
    }
    void pings_areAnswered() {
        Pair pair;
        pair.connect();
        QCOMPARE(pair.host.feed(ping(0x12345678), 1), Violation::None);
        QCOMPARE(pair.host.take(), ping(0x12345678, flag::kAck));
    }
    void windowUpdateAfterTheEnd_isFine() {
        Pair pair;
        pair.connect();
        const auto id = pair.host.session.open();
        pair.pump();
        pair.host.session.finish(*id);
        QCOMPARE(pair.host.feed(data(*id, 1, flag::kFin) + window(*id, 1000), 1), Violation::None);
        QCOMPARE(pair.host.feed(data(*id, 1), 1), Violation::WindowExceeded);
    }
};

QTEST_APPLESS_MAIN(TestProtocolViolations)
#include "tst_protocol_violations.moc"

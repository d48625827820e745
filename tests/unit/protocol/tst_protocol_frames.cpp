// SPDX-License-Identifier: Apache-2.0
#include "protocol/agent.pb.h"
#include "protocol/frame.hpp"
#include "protocol/handshake.hpp"
#include "protocol/message_stream.hpp"
#include "session_pair.hpp"

#include <QFile>
#include <QTest>

using namespace bulkhead::protocol;
using namespace bulkhead::protocol::test;

namespace {
QByteArray hex(std::span<const std::byte> bytes) {
    return QByteArray(reinterpret_cast<const char*>(bytes.data()), static_cast<qsizetype>(bytes.size())).toHex();
}
/// A golden file: lines of hexadecimal digits; everything behind # is a comment.
QByteArray golden(const char* name) {
    QFile file(QStringLiteral(BULKHEAD_SOURCE_DIR "/tests/fixtures/frames/") + QLatin1String(name));
    if (!file.open(QIODevice::ReadOnly)) {
        qFatal("no golden file %s", qPrintable(file.fileName()));
    }
    QByteArray digits;
    for (const QByteArray& line : file.readAll().split('\n')) {
        digits += line.left(line.indexOf('#') < 0 ? line.size() : line.indexOf('#')).simplified().replace(' ', "");
    }
    return digits;
}
} // namespace

class TestProtocolFrames : public QObject {
    Q_OBJECT

private slots:
    void golden_frames() {
        Blob all;
        const auto add = [&](const FrameHeader& header, const Blob& payload = {}) {
            const Blob frame = encodeFrame(header, payload);
            all.insert(all.end(), frame.begin(), frame.end());
        };
        add({.type = FrameType::WindowUpdate, .flags = flag::kSyn, .stream = 1, .length = 0});
        add({.type = FrameType::WindowUpdate, .flags = flag::kAck, .stream = 1, .length = 0});
        add({.type = FrameType::Data, .flags = 0, .stream = 1, .length = 5}, blob("hello"));
        add({.type = FrameType::Data, .flags = flag::kFin, .stream = 1, .length = 0});
        add({.type = FrameType::WindowUpdate, .flags = 0, .stream = 0x01020304, .length = 0x20000});
        add({.type = FrameType::WindowUpdate, .flags = flag::kRst, .stream = 3, .length = 0});
        add({.type = FrameType::Ping, .flags = flag::kSyn, .stream = 0, .length = 0xdeadbeef});
        add({.type = FrameType::Ping, .flags = flag::kAck, .stream = 0, .length = 0xdeadbeef});
        QCOMPARE(hex(all), golden("frames.hex"));
    }
    /// Known bytes, so that two builds of different age understand each other.
    void golden_handshake() {
        Nonce host{};
        Nonce guest{};
        host.fill(std::byte{0x11});
        guest.fill(std::byte{0x22});
        QCOMPARE(hex(handshake::makeReset(someToken(), host)), golden("reset.hex"));
        QCOMPARE(hex(handshake::makeAnswer(someToken(), host, guest)), golden("answer.hex"));
        QCOMPARE(hex(handshake::makeConfirm(someToken(), host, guest)), golden("confirm.hex"));
    }
    void handshake_magicsHaveNoZeroAndBeginOutsideUtf8() {
        for (const auto& magic : {handshake::kHostMagic, handshake::kGuestMagic}) {
            QVERIFY(std::find(magic.begin(), magic.end(), std::byte{0}) == magic.end());
            QVERIFY(magic.front() >= std::byte{0xf5});
            QCOMPARE(std::count(magic.begin(), magic.end(), magic.front()), 1);
        }
    }
    void decode_readsWhatEncodeWrote() {
        const FrameHeader header{.type = FrameType::Data, .flags = flag::kFin, .stream = 77, .length = 65536};
        QCOMPARE(std::get<FrameHeader>(decodeHeader(encodeHeader(header))), header);
    }
    void decode_refuses_data() {
        QTest::addColumn<QByteArray>("header");
        QTest::addColumn<int>("violation");
        const auto row = [](const char* name, const char* text, Violation violation) {
            QTest::newRow(name) << QByteArray::fromHex(text) << int(violation);
        };
        row("version 1", "01000000 00000001 00000000", Violation::BadVersion);
        row("type 4", "00040000 00000001 00000000", Violation::BadType);
        row("unknown flag", "00000010 00000001 00000000", Violation::BadFlags);
        row("high flag", "00008000 00000001 00000000", Violation::BadFlags);
        row("SYN and ACK", "00010003 00000001 00000000", Violation::BadFlags);
        row("SYN and RST", "00010009 00000001 00000000", Violation::BadFlags);
        row("RST and FIN", "0001000c 00000001 00000000", Violation::BadFlags);
        row("RST with payload", "00000008 00000001 00000001", Violation::BadFlags);
        row("data of the session", "00000000 00000000 00000001", Violation::BadStreamId);
        row("window of the session", "00010000 00000000 00000001", Violation::BadStreamId);
        row("ping of a stream", "00020001 00000001 00000000", Violation::BadStreamId);
        row("ping without a flag", "00020000 00000000 00000000", Violation::BadFlags);
        row("ping with both", "00020003 00000000 00000000", Violation::BadFlags);
        row("ping with FIN", "00020005 00000000 00000000", Violation::BadFlags);
        row("go away with a flag", "00030001 00000000 00000000", Violation::BadFlags);
        row("go away of a stream", "00030000 00000001 00000000", Violation::BadStreamId);
        row("payload one too large", "00000000 00000001 00010001", Violation::FrameTooLarge);
        row("payload of 4 GiB", "00000000 00000001 ffffffff", Violation::FrameTooLarge);
    }
    void decode_refuses() {
        QFETCH(QByteArray, header);
        QFETCH(int, violation);
        const Blob bytes = blob(header.toStdString());
        QCOMPARE(bytes.size(), kFrameHeaderSize);
        const auto decoded = decodeHeader(std::span(bytes).first<kFrameHeaderSize>());
        QVERIFY(std::holds_alternative<Violation>(decoded));
        QCOMPARE(nameOf(std::get<Violation>(decoded)), nameOf(Violation(violation)));
    }

    void messages_inAnyPieces() {
        Blob all;
        for (const std::string& text : {std::string("one"), std::string(), std::string(kMaxMessage, 'x')}) {
            const Blob framed = frameMessage(text);
            all.insert(all.end(), framed.begin(), framed.end());
        }
        for (const std::size_t step : {std::size_t{1}, std::size_t{3}, all.size()}) {
            MessageReader reader;
            std::vector<std::size_t> sizes;
            for (std::size_t at = 0; at < all.size(); at += step) {
                QVERIFY(reader.feed(std::span(all).subspan(at, std::min(step, all.size() - at))));
                while (const auto message = reader.next()) {
                    sizes.push_back(message->size());
                }
            }
            QCOMPARE(sizes, (std::vector<std::size_t>{3, 0, kMaxMessage}));
            QVERIFY(!reader.isBroken());
            QVERIFY(reader.takeRest().empty());
        }
    }
    void messages_tooLong_areRefusedByTheirPrefix() {
        MessageReader reader;
        QVERIFY(reader.feed(Blob{std::byte{1}, std::byte{0}, std::byte{1}}));
        QVERIFY(!reader.feed(Blob{std::byte{0}}));
        QVERIFY(reader.isBroken());
        QVERIFY(!reader.next());
        QVERIFY(!reader.feed(Blob(4)));
    }
    void messages_tooLongBehindAGoodOne() {
        MessageReader reader;
        Blob bytes = frameMessage("good");
        bytes.insert(bytes.end(), 4, std::byte{0xff});
        QVERIFY(reader.feed(bytes));
        QVERIFY(reader.next());
        QVERIFY(!reader.next());
        QVERIFY(reader.isBroken());
    }
    void messages_thenRawBytes() {
        MessageReader reader;
        Blob bytes = frameMessage("header");
        bytes.insert(bytes.end(), 5, std::byte{0xff});
        QVERIFY(reader.feed(bytes));
        QCOMPARE(*reader.next(), std::string("header"));
        QCOMPARE(reader.takeRest(), Blob(5, std::byte{0xff}));
    }
    void messages_protobufIsLite() {
        bulkhead::agent::StreamHeader header;
        header.mutable_exec()->add_argv("true");
        bulkhead::agent::StreamHeader back;
        QVERIFY(back.ParseFromString(header.SerializeAsString()));
        QCOMPARE(back.exec().argv(0), std::string("true"));
    }
};

QTEST_APPLESS_MAIN(TestProtocolFrames)
#include "tst_protocol_frames.moc"

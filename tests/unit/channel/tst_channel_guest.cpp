// SPDX-License-Identifier: Apache-2.0
#include "channel_rig.hpp"
#include "protocol/frame.hpp"

#include <QTest>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::channel;
using namespace bulkhead::channel::test;
using exec_stream::ClientEventKind;
using protocol::Violation;

namespace {
agent::ExecEvent exitedEvent(std::uint32_t status, std::uint32_t signal = 0, bool core = false) {
    agent::ExecEvent event;
    event.mutable_exited()->set_status(status);
    event.mutable_exited()->set_signal(signal);
    event.mutable_exited()->set_core_dumped(core);
    return event;
}
} // namespace

/// The session with good, bad, slow and dead guests; and the daemon's requests.
class TestChannelGuest : public QObject {
    Q_OBJECT

private slots:
    void helloAndReady() {
        Rig rig;
        rig.guest.answersHello = false;
        rig.connectDaemon();
        const auto hello = rig.next(FromChannelKind::Hello);
        QVERIFY(hello);
        QCOMPARE(hello->record.a, 0U);
        QVERIFY(rig.until([&] { return rig.guest.control != 0; }));
        QCOMPARE(rig.guest.control, 1U);
        rig.send(ToChannelKind::Status, 3);
        QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, std::uint32_t(RefusedReason::NotReady));
        agent::ExecRequest request;
        request.add_argv("x");
        rig.send(ToChannelKind::Exec, 4, 0, request.SerializeAsString());
        QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, std::uint32_t(RefusedReason::NotReady));
        rig.guest.send(rig.guest.control, rig.guest.hello);
        const auto ready = rig.next(FromChannelKind::Ready);
        QVERIFY(ready);
        QCOMPARE(ready->record.a, 1U);
        rig.send(ToChannelKind::Close, 0);
        QCOMPARE(rig.exitStatus(), std::optional(0));
    }
    void guestThatBootsSlowly_isAskedAgain() {
        Rig rig;
        rig.guest.reads = false;
        rig.connectDaemon();
        QVERIFY(!rig.next(FromChannelKind::Ready, 3));
        char waiting[1024];
        // A few resets of 64 bytes, no more.
        const ssize_t size = ::recv(rig.guest.fd(), waiting, sizeof waiting, MSG_PEEK | MSG_DONTWAIT);
        QVERIFY(size >= 128 && size <= 5 * 64);
        rig.guest.reads = true;
        QVERIFY(rig.next(FromChannelKind::Ready));
        QCOMPARE(rig.guest.sessions, 1);
        QVERIFY(rig.exec());
    }
    void guestWithAnotherToken_isNeverReady() {
        Rig rig(8);
        rig.connectDaemon();
        QVERIFY(!rig.next(FromChannelKind::Ready, 2));
        QCOMPARE(rig.guest.sessions, 0);
        QVERIFY(!rig.exitStatus(0));
    }
    void guestGoes_everybodyIsTold() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        rig.guest.close();
        QVERIFY(rig.until([&] {
            client->readEvents();
            return client->controlEnded;
        }));
        QCOMPARE(client->events.back().kind, ClientEventKind::Lost);
        QCOMPARE(client->events.back().a, std::uint32_t(LostReason::EndOfFile));
        const auto lost = rig.next(FromChannelKind::Lost);
        QVERIFY(lost);
        QCOMPARE(lost->record.a, std::uint32_t(LostReason::EndOfFile));
        QCOMPARE(rig.exitStatus(), std::optional(0));
    }

    void garbage_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<int>("violation");
        QTest::newRow("text") << QByteArray("GET / HTTP/1.0\r\n\r\n") << int(Violation::BadVersion);
        QTest::newRow("ones") << QByteArray(5000, '\xff') << int(Violation::BadVersion);
        QTest::newRow("zeros") << QByteArray(5000, '\0') << int(Violation::BadStreamId);
        QTest::newRow("huge frame") << QByteArray::fromHex("000000000000000180000000") << int(Violation::FrameTooLarge);
        QTest::newRow("opens a stream") << QByteArray::fromHex("000100010000000200000000") << int(Violation::BadFlags);
        QTest::newRow("goes away") << QByteArray::fromHex("000300000000000000000000") << int(Violation::GoAway);
        QTest::newRow("ping flood") << QByteArray::fromHex("000200010000000000000000").repeated(200000)
                                    << int(Violation::TooManyControlFrames);
    }
    void garbage() {
        QFETCH(QByteArray, bytes);
        QFETCH(int, violation);
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        rig.guest.reads = false;
        rig.guest.sendRaw(std::as_bytes(std::span(bytes.constData(), std::size_t(bytes.size()))));
        const auto lost = rig.next(FromChannelKind::Lost);
        QVERIFY(lost);
        QCOMPARE(lost->record.a, std::uint32_t(LostReason::Violation));
        QCOMPARE(nameOf(Violation(lost->record.b)), nameOf(Violation(violation)));
        client->readEvents();
        QCOMPARE(client->events.back().kind, ClientEventKind::Lost);
        QCOMPARE(client->events.back().b, violation);
        QCOMPARE(rig.exitStatus(), std::optional(0));
    }

    void badMessages_data() {
        using Send = std::function<void(FakeGuest&, FakeGuest::Program&)>;
        QTest::addColumn<Send>("send");
        QTest::addColumn<int>("violation");
        const auto row = [](const char* name, Violation violation, Send send) {
            QTest::newRow(name) << send << int(violation);
        };
        const auto bad = Violation::BadMessage;
        row("exec message of 4 GiB", Violation::MessageTooLarge,
            [](auto& guest, auto& program) { guest.write(program.exec, "\xff\xff\xff\xff"); });
        row("one byte too long", Violation::MessageTooLarge,
            [](auto& guest, auto& program) { guest.write(program.exec, std::string("\1\0\1\0", 4)); });
        row("control message of 4 GiB", Violation::MessageTooLarge,
            [](auto& guest, auto&) { guest.write(guest.control, "\xff\xff\xff\xff"); });
        row("no protobuf", bad,
            [](auto& guest, auto& program) { guest.write(program.exec, std::string("\3\0\0\0\xff\xff\xff", 7)); });
        row("event of no known kind", bad,
            [](auto& guest, auto& program) { guest.send(program.exec, agent::ExecEvent()); });
        row("exited before started", bad, [](auto& guest, auto& program) { guest.send(program.exec, exitedEvent(0)); });
        row("started twice", bad, [](auto& guest, auto& program) {
            guest.started(program);
            guest.started(program);
        });
        row("exited twice", bad, [](auto& guest, auto& program) {
            guest.started(program);
            guest.write(program.stdio, std::string(100'000, 'x')); // so that it is not over with the first
            guest.write(program.err, std::string(600'000, 'x'));
            guest.send(program.exec, exitedEvent(0));
            guest.send(program.exec, exitedEvent(0));
        });
        row("failed after started", bad, [](auto& guest, auto& program) {
            guest.started(program);
            agent::ExecEvent event;
            event.mutable_failed()->set_reason(agent::ExecFailed::LIMIT);
            guest.send(program.exec, event);
        });
        row("end of the exec stream without an end", bad,
            [](auto& guest, auto& program) { guest.finish(program.exec); });
        row("end of the control stream", bad, [](auto& guest, auto&) { guest.finish(guest.control); });
        row("second hello", bad, [](auto& guest, auto&) { guest.send(guest.control, guest.hello); });
        row("answer to nothing", bad, [](auto& guest, auto&) {
            agent::Reply reply;
            reply.set_id(17);
            reply.mutable_done();
            guest.send(guest.control, reply);
        });
    }
    void badMessages() {
        using Send = std::function<void(FakeGuest&, FakeGuest::Program&)>;
        QFETCH(Send, send);
        QFETCH(int, violation);
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        auto client = rig.exec();
        QVERIFY(client);
        send(rig.guest, rig.program());
        const auto lost = rig.next(FromChannelKind::Lost);
        QVERIFY(lost);
        QCOMPARE(nameOf(Violation(lost->record.b)), nameOf(Violation(violation)));
        QCOMPARE(rig.exitStatus(), std::optional(0));
    }
    void badHello_data() {
        QTest::addColumn<int>("what");
        QTest::newRow("another version") << 0;
        QTest::newRow("a feature name with a space") << 1;
        QTest::newRow("65 features") << 2;
        QTest::newRow("another reply first") << 3;
    }
    void badHello() {
        QFETCH(int, what);
        Rig rig;
        auto& hello = rig.guest.hello;
        if (what == 0) {
            hello.mutable_hello()->set_version(2);
        } else if (what == 1) {
            hello.mutable_hello()->add_features("with space");
        } else if (what == 2) {
            for (int i = 0; i < 65; ++i) {
                hello.mutable_hello()->add_features("x");
            }
        } else {
            hello.mutable_done();
        }
        rig.connectDaemon();
        const auto lost = rig.next(FromChannelKind::Lost);
        QVERIFY(lost);
        QCOMPARE(nameOf(Violation(lost->record.b)), nameOf(Violation::BadMessage));
    }

    void requests_areAnswered() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind::Status, 11);
        QVERIFY(rig.until([&] { return rig.guest.requests.size() == 1; }));
        QVERIFY(rig.guest.requests[0].has_status());
        agent::Reply reply;
        reply.set_id(rig.guest.requests[0].id());
        auto& status = *reply.mutable_status();
        status.set_uptime_ms(1);
        status.set_memory_total(3);
        status.set_memory_available(2);
        status.set_processes(4);
        status.mutable_system()->set_total(6);
        status.mutable_system()->set_available(5);
        status.mutable_home()->set_total(8);
        status.mutable_home()->set_available(7);
        rig.guest.send(rig.guest.control, reply);
        const auto answer = rig.next(FromChannelKind::Status);
        QVERIFY(answer);
        QCOMPARE(answer->record.request, std::uint64_t{11});
        QCOMPARE(answer->record.value, (std::array<std::uint64_t, 8>{1, 3, 2, 4, 6, 5, 8, 7}));

        rig.send(ToChannelKind::Shutdown, 12, 1500);
        rig.send(ToChannelKind::SetClock, 13, 1'700'000'000'000'000'000);
        QVERIFY(rig.until([&] { return rig.guest.requests.size() == 3; }));
        QCOMPARE(rig.guest.requests[1].shutdown().grace_ms(), 1500U);
        QCOMPARE(rig.guest.requests[2].set_clock().realtime_ns(), std::int64_t{1'700'000'000'000'000'000});
        // In the other order, and one refused.
        reply.Clear();
        reply.set_id(rig.guest.requests[2].id());
        reply.set_error_number(1);
        rig.guest.send(rig.guest.control, reply);
        const auto refused = rig.next(FromChannelKind::Refused);
        QCOMPARE(refused->record.request, std::uint64_t{13});
        QCOMPARE(refused->record.a, std::uint32_t(RefusedReason::GuestError));
        reply.Clear();
        reply.set_id(rig.guest.requests[1].id());
        reply.mutable_done();
        rig.guest.send(rig.guest.control, reply);
        QCOMPARE(rig.next(FromChannelKind::Done)->record.request, std::uint64_t{12});
        rig.send(ToChannelKind::SetClock, 15, 1, "Europe/Berlin");
        QVERIFY(rig.until([&] { return rig.guest.requests.size() == 4; }));
        QCOMPARE(rig.guest.requests[3].set_clock().time_zone(), std::string("Europe/Berlin"));
        rig.send(ToChannelKind::SetClock, 16, 1, "../../etc/passwd");
        QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, std::uint32_t(RefusedReason::BadRequest));
        rig.send(ToChannelKind::Shutdown, 14, -1);
        QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, std::uint32_t(RefusedReason::BadRequest));
    }
    void snapshotRequests_data() {
        QTest::addColumn<std::uint32_t>("kind");
        QTest::addColumn<qint64>("argument");
        QTest::addColumn<QByteArray>("rest");
        QTest::addColumn<std::uint32_t>("refused"); // 0: passed on
        QTest::addColumn<QByteArray>("message");
        constexpr auto kBad = std::uint32_t(RefusedReason::BadRequest);
        const auto row = [](const char* name, ToChannelKind kind, qint64 argument, const QByteArray& rest,
                            std::uint32_t refused, const std::function<void(agent::Request&)>& fill = {}) {
            agent::Request message;
            if (fill) {
                fill(message);
            }
            QTest::newRow(name) << std::uint32_t(kind) << argument << rest << refused
                                << QByteArray::fromStdString(message.SerializeAsString());
        };
        row("freeze", ToChannelKind::Freeze, 0, {}, 0, [](auto& m) { m.mutable_freeze(); });
        row("freeze, memory", ToChannelKind::Freeze, 1, {}, 0,
            [](auto& m) { m.mutable_freeze()->set_of_memory(true); });
        row("freeze, something else", ToChannelKind::Freeze, 2, {}, kBad);
        row("thaw", ToChannelKind::Thaw, 1'700'000'000'000'000'000, {}, 0,
            [](auto& m) { m.mutable_thaw()->set_realtime_ns(1'700'000'000'000'000'000); });
        row("name", ToChannelKind::SetHostname, 0, "work-2", 0,
            [](auto& m) { m.mutable_set_hostname()->set_name("work-2"); });
        for (const char* name : {"", "-a", "a.b", "a\n", "../x"}) {
            row(qPrintable(QString("name: ") + name), ToChannelKind::SetHostname, 0, name, kBad);
        }
        row("name: too long", ToChannelKind::SetHostname, 0, QByteArray(64, 'a'), kBad);
    }
    void snapshotRequests() {
        QFETCH(std::uint32_t, kind);
        QFETCH(qint64, argument);
        QFETCH(QByteArray, rest);
        QFETCH(std::uint32_t, refused);
        QFETCH(QByteArray, message);
        {
            // An agent that is older than they are never sees one.
            Rig rig;
            QVERIFY(rig.connectAndWaitUntilReady());
            rig.send(ToChannelKind(kind), 30, argument, rest.toStdString());
            QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, std::uint32_t(RefusedReason::Unsupported));
            QVERIFY(rig.guest.requests.empty());
        }
        Rig rig;
        rig.guest.hello.mutable_hello()->add_features(protocol::kFeatureSnapshot);
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind(kind), 31, argument, rest.toStdString());
        if (refused != 0) {
            QCOMPARE(rig.next(FromChannelKind::Refused)->record.a, refused);
            QVERIFY(rig.guest.requests.empty());
            return;
        }
        QVERIFY(rig.until([&] { return rig.guest.requests.size() == 1; }));
        agent::Reply reply;
        reply.set_id(rig.guest.requests[0].id());
        rig.guest.requests[0].clear_id();
        QCOMPARE(QByteArray::fromStdString(rig.guest.requests[0].SerializeAsString()), message);
        reply.mutable_done();
        rig.guest.send(rig.guest.control, reply);
        QCOMPARE(rig.next(FromChannelKind::Done)->record.request, std::uint64_t{31});
    }
    void freezing_mayTakeLongerThanOtherRequests() {
        Rig rig;
        rig.guest.hello.mutable_hello()->add_features(protocol::kFeatureSnapshot);
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind::Freeze, 40);
        rig.send(ToChannelKind::Status, 41);
        // The guest answers neither; only the one that should have come is given up.
        const auto refused = rig.next(FromChannelKind::Refused, 15);
        QVERIFY(refused);
        QCOMPARE(refused->record.request, std::uint64_t{41});
        QVERIFY(!rig.next(FromChannelKind::Refused, 1));
    }
    void aQuietGuest_isAskedWhetherItIsThere() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        QVERIFY(rig.until([&] { return !rig.guest.requests.empty(); }, 15));
        QVERIFY(rig.guest.requests[0].has_ping());
        agent::Reply reply;
        reply.set_id(rig.guest.requests[0].id());
        reply.mutable_done();
        rig.guest.send(rig.guest.control, reply);
        // The daemon hears nothing of it, and all goes on.
        QVERIFY(rig.exec());
        QVERIFY(!rig.next(FromChannelKind::Lost, 1));
    }
    void requests_ofAnEarlierConnection_areNotAnsweredToTheNext() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind::Shutdown, 21, 0);
        QVERIFY(rig.until([&] { return rig.guest.requests.size() == 1; }));
        rig.connectDaemon();
        QVERIFY(rig.next(FromChannelKind::Ready));
        agent::Reply reply;
        reply.set_id(rig.guest.requests[0].id());
        reply.mutable_done();
        rig.guest.send(rig.guest.control, reply);
        rig.send(ToChannelKind::Shutdown, 22, 0);
        QVERIFY(rig.until([&] { return rig.guest.requests.size() == 2; }));
        reply.set_id(rig.guest.requests[1].id());
        rig.guest.send(rig.guest.control, reply);
        QCOMPARE(rig.next(FromChannelKind::Done)->record.request, std::uint64_t{22});
    }
    void requests_atMost16_andTimedOut() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        for (std::uint64_t i = 0; i < 17; ++i) {
            rig.send(ToChannelKind::Status, 100 + i);
        }
        auto refused = rig.next(FromChannelKind::Refused);
        QCOMPARE(refused->record.request, std::uint64_t{116});
        QCOMPARE(refused->record.a, std::uint32_t(RefusedReason::TooMany));
        refused = rig.next(FromChannelKind::Refused, 15);
        QVERIFY(refused);
        QCOMPARE(refused->record.request, std::uint64_t{100});
        QCOMPARE(refused->record.a, std::uint32_t(RefusedReason::TimedOut));
        // Late, but an answer: not a violation.
        agent::Reply reply;
        reply.set_id(rig.guest.requests[0].id());
        reply.mutable_status();
        rig.guest.send(rig.guest.control, reply);
        rig.send(ToChannelKind::Close, 0);
        QCOMPARE(rig.exitStatus(), std::optional(0));
    }

    void daemon_brokenPackets_endOnlyTheConnection() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind::Exec, 1, 0, std::string(70'000, 'x'));
        QVERIFY(rig.until([&] { return rig.daemonEnded; }));
        QVERIFY(rig.connectAndWaitUntilReady());
        rig.send(ToChannelKind(77), 6);
        QCOMPARE(rig.next(FromChannelKind::Refused)->record.request, std::uint64_t{6});
        QVERIFY(rig.exec());
    }
    void daemon_ofAnotherUser_isDropped() {
        QVERIFY2(::getuid() == 0, "run as root: this test becomes another user");
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        const std::string path = rig.socketPath();
        ::chmod(path.substr(0, path.rfind('/')).c_str(), 0755);
        ::chmod(path.c_str(), 0777);
        const pid_t child = ::fork();
        if (child == 0) {
            const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            path.copy(address.sun_path, sizeof address.sun_path - 1);
            char byte = 0;
            const bool connected = ::setresuid(65534, 65534, 65534) == 0 &&
                                   ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
            ::_exit(!connected ? 2 : ::recv(fd, &byte, 1, 0) == 0 ? 0 : 1);
        }
        int status = 0;
        QVERIFY(rig.until([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
        QCOMPARE(WEXITSTATUS(status), 0);
        // The true daemon has kept its connection.
        QVERIFY(rig.exec());
    }

    void process_hasGivenUpItsPrivileges() {
        Rig rig;
        QVERIFY(rig.connectAndWaitUntilReady());
        const QString status = QString::fromStdString(rig.procStatus());
        for (const char* line : {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
                                 "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
#ifndef __SANITIZE_ADDRESS__
                                 "Seccomp:\t2",
#endif
                                 "Umask:\t0077"}) {
            QVERIFY2(status.contains(QLatin1String(line)), line);
        }
    }
};

QTEST_GUILESS_MAIN(TestChannelGuest)
#include "tst_channel_guest.moc"

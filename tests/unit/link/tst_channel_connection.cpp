// SPDX-License-Identifier: Apache-2.0
// The daemon's side of a channel process, which a socketpair plays.
#include "base/unique_fd.hpp"
#include "link/channel_connection.hpp"
#include "process/poller.hpp"

#include <QTest>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <sys/socket.h>
#include <thread>

using namespace bulkhead;
using namespace bulkhead::link;
using channel::FromChannel;
using channel::FromChannelKind;
using channel::ToChannel;
using channel::ToChannelKind;
using namespace std::chrono_literals;

class TestChannelConnection : public QObject {
    Q_OBJECT

private:
    process::Poller m_poller;
    UniqueFd m_peer;
    std::unique_ptr<ChannelConnection> m_connection;
    std::atomic<unsigned> m_finished = 0;
    std::atomic<unsigned> m_opened = 0;
    std::atomic<unsigned> m_closed = 0;
    std::atomic<unsigned> m_lostCount = 0;
    std::string m_lost;

    void say(const FromChannel& record) { QCOMPARE(::send(m_peer.get(), &record, sizeof record, 0), ssize_t{88}); }
    ToChannel hear() {
        ToChannel record;
        [[maybe_unused]] const auto size = ::recv(m_peer.get(), &record, sizeof record, 0);
        return record;
    }

private slots:
    void init() {
        std::array<int, 2> ends{};
        QCOMPARE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        m_peer = UniqueFd(ends[1]);
        m_finished = 0;
        m_lostCount = 0;
        ChannelConnection::Events events;
        events.execFinished = [this](std::uint64_t, unsigned) { ++m_finished; };
        events.windowsChanged = [this](bool areOpen) { (areOpen ? m_opened : m_closed)++; };
        events.lost = [this](const core::LinkLoss& loss) {
            m_lost = loss.reason;
            ++m_lostCount;
        };
        m_connection = std::make_unique<ChannelConnection>(UniqueFd(ends[0]), m_poller, std::move(events));
    }
    void cleanup() { m_connection.reset(); }

    void helloAndReady() {
        say({.kind = FromChannelKind::Hello, .a = 0, .b = 3});
        QCOMPARE(m_connection->waitHello(5s).value().programs, 3U);
        QVERIFY(!m_connection->waitHello(5s).value().hasWindows);
        QCOMPARE(m_connection->waitReady(1ms, {}).error().code, ErrorCode::TimedOut);
        say({.kind = FromChannelKind::Ready, .a = 1});
        QVERIFY(m_connection->waitReady(5s, {}).has_value());
    }

    void windowsAreToldAndRemembered() {
        m_opened = m_closed = 0;
        FromChannel hello{.kind = FromChannelKind::Hello};
        hello.value[0] = static_cast<std::uint64_t>(channel::WindowsState::Open);
        say(hello);
        QVERIFY(m_connection->waitHello(5s).value().hasWindows);
        say({.kind = FromChannelKind::Windows, .a = static_cast<std::uint32_t>(channel::WindowsState::Closed)});
        QTRY_COMPARE(m_closed.load(), 1U);
        QVERIFY(!m_connection->waitHello(5s).value().hasWindows);
        say({.kind = FromChannelKind::Windows, .a = static_cast<std::uint32_t>(channel::WindowsState::Open)});
        QTRY_COMPARE(m_opened.load(), 1U);
        QCOMPARE(m_closed.load(), 1U);
    }

    void waitingIsCancelled() {
        std::stop_source stop;
        auto waiting = std::async(std::launch::async, [&] { return m_connection->waitReady(1min, stop.get_token()); });
        stop.request_stop();
        QCOMPARE(waiting.get().error().code, ErrorCode::Cancelled);
    }

    void answersAreMatched_andDescriptorsArrive() {
        auto asking = std::async(std::launch::async,
                                 [&] { return m_connection->ask({.kind = ToChannelKind::Exec}, "payload", 10s); });
        const ToChannel request = hear();
        QCOMPARE(request.kind, ToChannelKind::Exec);
        say({.kind = FromChannelKind::Done, .request = request.request + 7}); // nobody's
        FromChannel answer{.kind = FromChannelKind::ExecAccepted, .request = request.request};
        answer.value[0] = 42;
        iovec part{&answer, sizeof answer};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(2 * sizeof(int));
        const std::array<int, 2> descriptors{0, 1};
        std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof descriptors);
        QCOMPARE(::sendmsg(m_peer.get(), &message, 0), ssize_t{88});
        const auto got = asking.get();
        QVERIFY(got.has_value());
        QCOMPARE(got->record.value[0], std::uint64_t{42});
        QCOMPARE(got->descriptors.size(), std::size_t{2});
        QCOMPARE(m_connection->runningExecs(), 1U);
        FromChannel finished{.kind = FromChannelKind::ExecFinished};
        say(finished);
        QTRY_COMPARE(m_finished.load(), 1U);
        QCOMPARE(m_connection->runningExecs(), 0U);
    }

    void useIsKnown() {
        // Nothing was said yet, or an older process says nothing of windows: it may be in use.
        QVERIFY(m_connection->use().isInUse);
        FromChannel hello{.kind = FromChannelKind::Hello};
        say(hello);
        QVERIFY(m_connection->waitHello(10s));
        QVERIFY(m_connection->use().isInUse);
        hello.value[1] = static_cast<std::uint64_t>(channel::WindowsOpen::None);
        say(hello);
        QTRY_VERIFY(!m_connection->use().isInUse);
        const auto before = m_connection->use().count;
        say({.kind = FromChannelKind::WindowsOpen, .a = static_cast<std::uint32_t>(channel::WindowsOpen::Some)});
        QTRY_VERIFY(m_connection->use().isInUse);
        say({.kind = FromChannelKind::WindowsOpen, .a = static_cast<std::uint32_t>(channel::WindowsOpen::None)});
        QTRY_VERIFY(!m_connection->use().isInUse);
        QCOMPARE(m_connection->use().count, before + 2);
        FromChannel finished{.kind = FromChannelKind::ExecFinished};
        say(finished);
        QTRY_COMPARE(m_connection->use().count, before + 3);
        m_peer.reset(); // lost: nothing is known
        QTRY_VERIFY(m_connection->use().isInUse);
    }

    void refusalsAreErrors_data() {
        QTest::addColumn<int>("reason");
        QTest::addColumn<int>("errorNumber");
        QTest::addColumn<int>("code");
        const auto row = [](const char* name, channel::RefusedReason reason, int errorNumber, ErrorCode code) {
            QTest::newRow(name) << int(reason) << errorNumber << int(code);
        };
        row("too many", channel::RefusedReason::TooMany, 0, ErrorCode::LimitExceeded);
        row("not ready", channel::RefusedReason::NotReady, 0, ErrorCode::Unavailable);
        row("no answer", channel::RefusedReason::TimedOut, 0, ErrorCode::TimedOut);
        row("an older agent", channel::RefusedReason::Unsupported, 0, ErrorCode::WrongState);
        row("the guest is busy", channel::RefusedReason::GuestError, EAGAIN, ErrorCode::Busy);
        row("its disks are slow", channel::RefusedReason::GuestError, ETIMEDOUT, ErrorCode::TimedOut);
        row("its disks are broken", channel::RefusedReason::GuestError, EIO, ErrorCode::GuestFailure);
    }
    void refusalsAreErrors() {
        QFETCH(int, reason);
        QFETCH(int, errorNumber);
        auto asking =
            std::async(std::launch::async, [&] { return m_connection->ask({.kind = ToChannelKind::Freeze}, {}, 10s); });
        say({.kind = FromChannelKind::Refused,
             .a = static_cast<std::uint32_t>(reason),
             .request = hear().request,
             .b = errorNumber});
        QTEST(int(asking.get().error().code), "code");
    }

    void theGuestsName_isSentAndNotWaitedFor() {
        m_connection->setHostname("work");
        QCOMPARE(hear().kind, ToChannelKind::SetHostname);
    }

    void ends_data() {
        QTest::addColumn<int>("how");
        QTest::newRow("closed") << 0;
        QTest::newRow("said lost") << 1;
        QTest::newRow("short record") << 2;
        QTest::newRow("unknown record") << 3;
    }
    void ends() {
        QFETCH(int, how);
        auto asking = std::async(std::launch::async,
                                 [&] { return m_connection->ask({.kind = ToChannelKind::Status}, {}, 1min); });
        hear();
        if (how == 0) {
            m_peer.reset();
        } else if (how == 1) {
            say({.kind = FromChannelKind::Lost,
                 .a = static_cast<std::uint32_t>(channel::LostReason::Violation),
                 .b = 3});
        } else if (how == 2) {
            QCOMPARE(::send(m_peer.get(), "x", 1, 0), ssize_t{1});
        } else {
            say({.kind = static_cast<FromChannelKind>(99)});
        }
        // Whoever waits is told at once, and the event comes once.
        QCOMPARE(asking.get().error().code, ErrorCode::GuestFailure);
        QTRY_COMPARE(m_lostCount.load(), 1U);
        m_peer.reset();
        QVERIFY(!m_connection->ask({.kind = ToChannelKind::Status}, {}, 1s));
        QCOMPARE(m_lostCount.load(), 1U);
        QVERIFY(!m_lost.empty());
    }

    // Once a connection was destroyed while its callback still told of the loss, and the poller's thread locked freed
    // memory for ever: every later start of a domain hung.
    void destructorWaitsForTheEventOfTheLoss() {
        std::array<int, 2> ends{};
        QCOMPARE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
        std::promise<void> entered;
        std::atomic<bool> isDestroyed = false;
        std::atomic<bool> wasDestroyedInside = false;
        ChannelConnection::Events events;
        events.lost = [&](const core::LinkLoss&) {
            entered.set_value();
            for (int i = 0; i < 1000 && !isDestroyed; ++i) {
                std::this_thread::yield();
            }
            wasDestroyedInside = isDestroyed.load();
        };
        auto connection = std::make_unique<ChannelConnection>(UniqueFd(ends[0]), m_poller, std::move(events));
        ::close(ends[1]);
        entered.get_future().wait();
        connection.reset();
        isDestroyed = true;
        std::promise<void> passed;
        m_poller.post([&] { passed.set_value(); });
        passed.get_future().wait();
        QVERIFY(!wasDestroyedInside);
    }
};

QTEST_GUILESS_MAIN(TestChannelConnection)
#include "tst_channel_connection.moc"

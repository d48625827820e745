// SPDX-License-Identifier: Apache-2.0
// What can be tested of vsock without a guest: when to try again and when to give up, the choice, the kernel's list.
#include "link/channel_probe.hpp"
#include "link/guest_socket.hpp"
#include "link/vsock_listeners.hpp"
#include "link/vsock_transport.hpp"
#include "support/fakes/fake_host.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/vm_sockets_diag.h>
#include <sys/socket.h>
#include <thread>

using namespace bulkhead;
using namespace bulkhead::link;
using namespace std::chrono_literals;

namespace {

/// A guest whose tries come to these errors, and then to a connection (or, with `last`, to that for ever).
ConnectOnce guestThat(std::deque<int> errors, int last = 0) {
    return [errors, last](std::chrono::milliseconds, const std::stop_token&) mutable -> ConnectTry {
        const int error = errors.empty() ? last : errors.front();
        if (!errors.empty()) {
            errors.pop_front();
        }
        return error == 0 ? ConnectTry{UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), 0}
                          : ConnectTry{UniqueFd(), error};
    };
}

void append(std::vector<std::byte>& bytes, const void* what, std::size_t size) {
    const auto* const begin = static_cast<const std::byte*>(what);
    bytes.insert(bytes.end(), begin, begin + size);
}

constexpr std::uint32_t kSequence = 7;

std::vector<std::byte> message(std::uint16_t type, const void* body, std::size_t size,
                               std::uint32_t sequence = kSequence) {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + size);
    header.nlmsg_type = type;
    header.nlmsg_seq = sequence;
    std::vector<std::byte> bytes;
    append(bytes, &header, sizeof header);
    append(bytes, body, size);
    bytes.resize(NLMSG_ALIGN(bytes.size()));
    return bytes;
}

std::vector<std::byte> socketMessage(std::uint32_t cid, std::uint32_t port, std::uint8_t state = 10) {
    vsock_diag_msg socket{};
    socket.vdiag_family = AF_VSOCK;
    socket.vdiag_state = state;
    socket.vdiag_src_cid = cid;
    socket.vdiag_src_port = port;
    return message(SOCK_DIAG_BY_FAMILY, &socket, sizeof socket);
}

std::vector<std::byte> operator+(std::vector<std::byte> a, const std::vector<std::byte>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

} // namespace

class TestLinkVsock : public QObject {
    Q_OBJECT

private slots:
    void connect_triesAgainWhileTheGuestBoots() {
        const auto socket = connectWhenReady(
            guestThat({ETIMEDOUT, ENODEV, ETIMEDOUT, ECONNRESET, ECONNRESET, EINTR, ECONNREFUSED}), 60s, {});
        QVERIFY2(socket, socket ? "" : socket.error().message.c_str());
        QVERIFY(socket->isOpen());
    }

    void connect_endsWithTheEmulator() {
        const auto socket = connectWhenReady(guestThat({ECONNRESET}, ENODEV), 60s, {});
        QCOMPARE(socket.error().code, ErrorCode::GuestFailure);
        QVERIFY(socket.error().message.find("no emulator") != std::string::npos);
    }

    void connect_endsInTime() {
        const auto socket = connectWhenReady(guestThat({}, ECONNRESET), 150ms, {});
        QCOMPARE(socket.error().code, ErrorCode::TimedOut);
    }

    void connect_doesNotRepeatWhatCannotPass() {
        const auto socket = connectWhenReady(guestThat({}, EAFNOSUPPORT), 60s, {});
        QCOMPARE(socket.error().code, ErrorCode::HostFailure);
    }

    void connect_canBeCancelled() {
        std::stop_source stop;
        // In the pause between two tries, and within a try.
        std::jthread later([&stop] {
            std::this_thread::sleep_for(50ms); // lint-allow(sleep): it is to come in the middle
            stop.request_stop();
        });
        QCOMPARE(connectWhenReady(guestThat({}, ECONNRESET), 60s, stop.get_token()).error().code, ErrorCode::Cancelled);
        QCOMPARE(connectWhenReady(guestThat({}, ECANCELED), 60s, {}).error().code, ErrorCode::Cancelled);
    }

    void connect_realSocketOfNobody() {
        // Whatever this machine's kernel makes of it: an answer, in about the time that was given for it.
        const auto attempt = connectVsockOnce(0x7ffffff0, 1914, 200ms, {});
        QVERIFY(!attempt.socket);
        QVERIFY(attempt.error != 0);
    }

    void choice_data() {
        QTest::addColumn<int>("wish");
        QTest::addColumn<bool>("hasDevice");
        QTest::addColumn<QString>("transport"); // empty: refused
        QTest::newRow("auto, device") << int(TransportWish::Auto) << true << "vsock";
        QTest::newRow("auto, none") << int(TransportWish::Auto) << false << "virtio-serial";
        QTest::newRow("vsock, device") << int(TransportWish::Vsock) << true << "vsock";
        QTest::newRow("vsock, none") << int(TransportWish::Vsock) << false << "";
        QTest::newRow("serial, device") << int(TransportWish::VirtioSerial) << true << "virtio-serial";
        QTest::newRow("serial, none") << int(TransportWish::VirtioSerial) << false << "virtio-serial";
    }
    void choice() {
        QFETCH(int, wish);
        QFETCH(bool, hasDevice);
        QFETCH(QString, transport);
        // Any character device stands for the kernel's.
        VsockTransport probe({TransportWish(wish), hasDevice ? "/dev/null" : "/dev/no-vhost-vsock"});
        if (hasDevice && probe.obstacle()) {
            QVERIFY(probe.obstacle()->find("AF_VSOCK") != std::string::npos); // this kernel has none at all
            return;
        }
        const auto chosen = probe.choose();
        QCOMPARE(chosen ? QString::fromStdString(std::string(nameOf(chosen->transport))) : QString(), transport);
        if (chosen && wish == int(TransportWish::Auto) && !hasDevice) {
            QVERIFY(chosen->reason.find("modprobe vhost_vsock") != std::string::npos);
        }
        if (!chosen) {
            QCOMPARE(chosen.error().code, ErrorCode::Unavailable);
            QVERIFY(chosen.error().message.find("modprobe vhost_vsock") != std::string::npos);
        }
    }

    void device_thatIsNoneOrClosed() {
        const QTemporaryDir folder;
        const std::filesystem::path file = (folder.path() + "/vhost").toStdString();
        UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
        QVERIFY(VsockTransport({.device = file}).obstacle()->find("not a device") != std::string::npos);
        QVERIFY(VsockTransport({.device = file / "x"}).obstacle().has_value());
        QVERIFY(VsockTransport({.device = "/dev/no-vhost-vsock"}).isCidFree(5));
    }

    void wishes_areTotal() {
        QVERIFY(*transportWish("auto") == TransportWish::Auto);
        QVERIFY(*transportWish("vsock") == TransportWish::Vsock);
        QVERIFY(*transportWish("virtio-serial") == TransportWish::VirtioSerial);
        QVERIFY(!transportWish("serial"));
        QVERIFY(!transportWish(""));
    }

    void dump_listsListeners() {
        const int done = 0;
        const auto bytes = socketMessage(0xffffffff, 22) + socketMessage(2, 1024) + socketMessage(1, 9) +
                           socketMessage(2, 5000, 1) + message(NLMSG_DONE, &done, sizeof done);
        const auto dump = parseVsockDump(bytes, kSequence);
        QVERIFY(dump.has_value());
        QVERIFY(dump->isLast);
        // A connection is no listener.
        QVERIFY((dump->listeners == std::vector<VsockListener>{{0xffffffff, 22}, {2, 1024}, {1, 9}}));
        QVERIFY(dump->listeners[0].isReachableFromGuests());
        QVERIFY(dump->listeners[1].isReachableFromGuests());
        QVERIFY(!dump->listeners[2].isReachableFromGuests());
        const auto first = parseVsockDump(socketMessage(2, 1), kSequence);
        QVERIFY(first && !first->isLast);
    }

    void dump_staysWithinItsBytes() {
        // Every cut, every length that lies, and other people's answers: an error, and (under the sanitizers) no read
        // outside of the bytes.
        const auto whole = socketMessage(2, 1024) + socketMessage(2, 1025);
        for (std::size_t size = 1; size < whole.size(); ++size) {
            const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
            const auto dump = parseVsockDump(cut, kSequence);
            QVERIFY2(!dump || size == whole.size() / 2, qPrintable(QString::number(size)));
        }
        for (const std::uint32_t length : {0U, 1U, 15U, 16U, 20U, 47U, 1000U, 0xffffffffU}) {
            auto bytes = whole;
            std::memcpy(bytes.data(), &length, sizeof length);
            QVERIFY2(!parseVsockDump(bytes, kSequence), qPrintable(QString::number(length)));
        }
        QVERIFY(!parseVsockDump(whole, kSequence + 1));
        QVERIFY(!parseVsockDump(message(NLMSG_ERROR, "", 0), kSequence));
        const int absent = -ENOENT;
        QCOMPARE(parseVsockDump(message(NLMSG_ERROR, &absent, sizeof absent), kSequence).error().code,
                 ErrorCode::Unavailable);
        const int refused = -EPERM;
        QCOMPARE(parseVsockDump(message(NLMSG_ERROR, &refused, sizeof refused), kSequence).error().code,
                 ErrorCode::HostFailure);
    }

    void finding_saysWhatIsInForce() {
        tests::FakeTransport transport;
        ChannelProbe serial(transport, [] { return std::vector<VsockListener>{{2, 22}}; });
        auto findings = serial.examine(false);
        QCOMPARE(findings.size(), std::size_t{1}); // guests without the device reach nobody
        QVERIFY(findings[0].status == core::FindingStatus::Ok);
        QVERIFY(findings[0].text.find("virtio-serial is used: a test") != std::string::npos);
        QVERIFY(findings[0].fix.empty());

        transport.transport = core::Transport::Vsock;
        findings = serial.examine(false);
        QCOMPARE(findings.size(), std::size_t{2});
        QVERIFY(findings[0].text.find("vsock is used") != std::string::npos);
        QVERIFY(findings[1].status == core::FindingStatus::Warning);
        QVERIFY(findings[1].text.find("port 22") != std::string::npos);

        ChannelProbe quiet(transport, [] { return std::vector<VsockListener>{{1, 22}}; });
        QVERIFY(quiet.examine(false)[1].status == core::FindingStatus::Ok);
        ChannelProbe unknown(transport, []() -> Result<std::vector<VsockListener>> {
            return fail(ErrorCode::Unavailable, "no such module");
        });
        QVERIFY(unknown.examine(false)[1].status == core::FindingStatus::Warning);

        transport.error = Error{ErrorCode::Unavailable, "not here"};
        QVERIFY(serial.examine(false)[0].status == core::FindingStatus::Problem);
    }

    void kernelsOwnList() {
        const auto before = vsockListeners();
        if (!before) {
            QCOMPARE(before.error().code, ErrorCode::Unavailable);
            return; // this kernel has no such list
        }
        UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_storage address{};
        address.ss_family = AF_VSOCK;
        const std::uint32_t any = 0xffffffff;
        const std::uint32_t port = 40917;
        std::memcpy(reinterpret_cast<char*>(&address) + 4, &port, sizeof port);
        std::memcpy(reinterpret_cast<char*>(&address) + 8, &any, sizeof any);
        if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), 16) != 0 ||
            ::listen(socket.get(), 1) != 0) {
            return; // this kernel lets nobody listen
        }
        const auto listeners = vsockListeners();
        QVERIFY(std::find(listeners->begin(), listeners->end(), VsockListener{any, port}) != listeners->end());
    }
};

QTEST_GUILESS_MAIN(TestLinkVsock)
#include "tst_link_vsock.moc"

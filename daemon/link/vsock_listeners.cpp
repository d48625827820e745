// SPDX-License-Identifier: Apache-2.0
#include "link/vsock_listeners.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/vm_sockets_diag.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>

// Needs sa_family_t from above.
#include <linux/vm_sockets.h>

namespace bulkhead::link {
namespace {

constexpr std::uint8_t kListening = 10; // TCP_LISTEN, which the kernel uses for this family, too
constexpr std::size_t kMostListeners = 4096;
constexpr std::size_t kMostDatagrams = 1024;

/// A T at `at`, which the caller has checked to lie within.
template <class T> T readAt(std::span<const std::byte> bytes, std::size_t at) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

tl::unexpected<Error> malformed() {
    return fail(ErrorCode::HostFailure, "the kernel's list of AF_VSOCK sockets is malformed");
}

tl::unexpected<Error> kernelError(int number) {
    if (number == ENOENT || number == EINVAL || number == EPROTONOSUPPORT || number == EOPNOTSUPP) {
        return fail(ErrorCode::Unavailable, "this kernel does not list AF_VSOCK sockets (module vsock_diag)");
    }
    return failErrno("asking the kernel for its AF_VSOCK sockets", number);
}

} // namespace

bool VsockListener::isReachableFromGuests() const {
    return cid == VMADDR_CID_ANY || cid == VMADDR_CID_HOST;
}

Result<VsockDump> parseVsockDump(std::span<const std::byte> datagram, std::uint32_t sequence) {
    VsockDump dump;
    std::size_t at = 0;
    while (at < datagram.size()) {
        const std::size_t left = datagram.size() - at;
        if (left < sizeof(nlmsghdr)) {
            return malformed();
        }
        const auto header = readAt<nlmsghdr>(datagram, at);
        if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > left || header.nlmsg_seq != sequence) {
            return malformed();
        }
        const std::size_t body = at + NLMSG_HDRLEN;
        const std::size_t bodySize = header.nlmsg_len - sizeof(nlmsghdr);
        if (header.nlmsg_type == NLMSG_DONE) {
            dump.isLast = true;
            return dump;
        }
        if (header.nlmsg_type == NLMSG_ERROR) {
            if (bodySize < sizeof(int)) {
                return malformed();
            }
            return kernelError(-readAt<int>(datagram, body));
        }
        if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY) {
            if (bodySize < sizeof(vsock_diag_msg)) {
                return malformed();
            }
            const auto socket = readAt<vsock_diag_msg>(datagram, body);
            if (socket.vdiag_family == AF_VSOCK && socket.vdiag_state == kListening) {
                dump.listeners.push_back({socket.vdiag_src_cid, socket.vdiag_src_port});
            }
        }
        // The last one may lack its padding.
        at += NLMSG_ALIGN(std::size_t{header.nlmsg_len});
    }
    return dump;
}

Result<std::vector<VsockListener>> vsockListeners() {
    const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!netlink) {
        return failErrno("a netlink socket", errno);
    }
    const timeval patience{.tv_sec = 2, .tv_usec = 0};
    static_cast<void>(::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience));
    constexpr std::uint32_t kSequence = 1;
    struct {
        nlmsghdr header;
        vsock_diag_req request;
    } question{};
    static_assert(sizeof(nlmsghdr) == NLMSG_HDRLEN);
    question.header.nlmsg_len = sizeof question;
    question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    question.header.nlmsg_seq = kSequence;
    question.request.sdiag_family = AF_VSOCK;
    question.request.vdiag_states = 1U << kListening;
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (::sendto(netlink.get(), &question, sizeof question, 0, reinterpret_cast<const sockaddr*>(&kernel),
                 sizeof kernel) < 0) {
        return kernelError(errno);
    }
    std::vector<VsockListener> listeners;
    std::array<std::byte, 32768> buffer{};
    for (std::size_t datagrams = 0; datagrams < kMostDatagrams; ++datagrams) {
        sockaddr_nl sender{};
        socklen_t senderSize = sizeof sender;
        const ssize_t size = ::recvfrom(netlink.get(), buffer.data(), buffer.size(), MSG_TRUNC,
                                        reinterpret_cast<sockaddr*>(&sender), &senderSize);
        if (size < 0) {
            return kernelError(errno);
        }
        if (sender.nl_pid != 0) {
            continue; // not the kernel
        }
        if (static_cast<std::size_t>(size) > buffer.size()) {
            return malformed();
        }
        auto dump = parseVsockDump(std::span(buffer).first(static_cast<std::size_t>(size)), kSequence);
        if (!dump) {
            return fail(dump.error());
        }
        listeners.insert(listeners.end(), dump->listeners.begin(), dump->listeners.end());
        if (dump->isLast || listeners.size() > kMostListeners) {
            return listeners;
        }
    }
    return malformed();
}

} // namespace bulkhead::link

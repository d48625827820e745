// SPDX-License-Identifier: Apache-2.0
#include "channel/daemon_link.hpp"

#include "base/log.hpp"
#include "protocol/limits.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace bulkhead::channel {

namespace {
/// A daemon that leaves this many records unread hangs; it will connect again when it is well.
constexpr std::size_t kMaxQueued = 1024;
constexpr std::size_t kMaxPacket = sizeof(ToChannel) + protocol::kMaxMessage;
constexpr std::size_t kMaxFds = 4;

bool isAllowedPeer(int fd, uid_t own) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        return false;
    }
    return peer.uid == 0 || peer.uid == own;
}

ssize_t sendPacket(int fd, const FromChannel& record, const std::vector<UniqueFd>& fds) {
    iovec part{const_cast<FromChannel*>(&record), sizeof record};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
    if (!fds.empty()) {
        std::array<int, kMaxFds> raw{};
        for (std::size_t i = 0; i < fds.size(); ++i) {
            raw.at(i) = fds[i].get();
        }
        const std::size_t bytes = sizeof(int) * fds.size();
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(bytes);
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(bytes);
        std::memcpy(CMSG_DATA(head), raw.data(), bytes);
    }
    return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}
} // namespace

DaemonLink::DaemonLink(Poller& poller, UniqueFd listener, DaemonEvents& events)
    : m_poller(poller)
    , m_events(events)
    , m_ownUid(::getuid())
    , m_buffer(kMaxPacket + 1)
    , m_listener(poller, std::move(listener), EPOLLIN, [this](std::uint32_t) { onListener(); }) {}

void DaemonLink::onListener() {
    UniqueFd fd(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
        return;
    }
    if (!isAllowedPeer(fd.get(), m_ownUid)) {
        log::warning("refused a control connection of another user");
        return;
    }
    drop();
    ++m_generation;
    m_connection = WatchedFd(m_poller, std::move(fd), EPOLLIN, [this](std::uint32_t events) { onConnection(events); });
    m_events.onDaemonConnected();
}

void DaemonLink::onConnection(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        flush();
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        receive();
    }
}

void DaemonLink::receive() {
    if (!m_connection.isOpen()) {
        return;
    }
    // With MSG_TRUNC the true size of the packet is returned.
    const ssize_t count = ::recv(m_connection.get(), m_buffer.data(), m_buffer.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    const auto size = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    if (size < sizeof(ToChannel) || size > kMaxPacket) {
        if (size != 0) {
            log::warning("the control connection sent a packet of a wrong size; dropped it");
        }
        drop();
        return;
    }
    ToChannel record;
    std::memcpy(&record, m_buffer.data(), sizeof record);
    m_events.onDaemonRecord(record, std::string_view(m_buffer.data(), size).substr(sizeof record));
}

void DaemonLink::send(const FromChannel& record, std::vector<UniqueFd> fds) {
    if (!m_connection.isOpen()) {
        return;
    }
    if (m_queue.size() >= kMaxQueued) {
        log::warning("the daemon does not read; dropped its connection");
        drop();
        return;
    }
    m_queue.push_back({record, std::move(fds)});
    flush();
}

void DaemonLink::flush() {
    while (!m_queue.empty() && m_connection.isOpen()) {
        const Packet& packet = m_queue.front();
        if (sendPacket(m_connection.get(), packet.record, packet.fds) < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN) {
                drop();
                return;
            }
            m_connection.setEvents(EPOLLIN | EPOLLOUT);
            return;
        }
        m_queue.pop_front();
    }
    m_connection.setEvents(EPOLLIN);
}

void DaemonLink::drop() {
    m_connection.close();
    m_queue.clear();
}

void DaemonLink::sendRemaining(std::chrono::milliseconds atMost) {
    const auto deadline = Clock::now() + atMost;
    flush();
    while (!m_queue.empty() && m_connection.isOpen()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd waiting{m_connection.get(), POLLOUT, 0};
        if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
            return;
        }
        flush();
    }
}

} // namespace bulkhead::channel

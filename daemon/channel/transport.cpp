// SPDX-License-Identifier: Apache-2.0
#include "channel/transport.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/epoll.h>
#include <system_error>
#include <unistd.h>

namespace bulkhead::channel {

namespace {
constexpr std::size_t kReadSize = std::size_t{64} * 1024;

UniqueFd nonBlocking(UniqueFd fd) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot use the descriptor of the guest");
    }
    return fd;
}
} // namespace

Transport::Transport(Poller& poller, UniqueFd fd, protocol::Session& session, std::function<void(Ended)> onEnded)
    : m_session(session)
    , m_onEnded(std::move(onEnded))
    , m_buffer(kReadSize)
    , m_fd(poller, nonBlocking(std::move(fd)), EPOLLIN, [this](std::uint32_t events) { onEvents(events); }) {}

void Transport::end(Ended ended) {
    if (!m_hasEnded) {
        m_hasEnded = true;
        m_fd.setEvents(0);
        m_onEnded(ended);
    }
}

void Transport::onEvents(std::uint32_t events) {
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        const ssize_t count = ::read(m_fd.get(), m_buffer.data(), m_buffer.size());
        if (count == 0) {
            end({protocol::Violation::None, 0});
            return;
        }
        if (count < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                end({protocol::Violation::None, errno});
            }
            return;
        }
        m_lastHeard = Clock::now();
        const auto violation = m_session.feed(std::span(m_buffer).first(static_cast<std::size_t>(count)));
        if (violation != protocol::Violation::None) {
            end({violation, 0});
            return;
        }
    }
    flush();
}

void Transport::flush() {
    while (!m_hasEnded) {
        const auto bytes = m_session.pendingOutput();
        if (bytes.empty()) {
            m_fd.setEvents(EPOLLIN);
            return;
        }
        const ssize_t count = ::write(m_fd.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            m_fd.setEvents(EPOLLIN | EPOLLOUT);
            return;
        }
        if (count <= 0) {
            // What the guest said before it went away is still to be read; reading then tells of the end.
            m_fd.setEvents(EPOLLIN);
            return;
        }
        m_session.outputWritten(static_cast<std::size_t>(count));
    }
}

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#include "channel/client_streams.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace bulkhead::channel {

namespace {
constexpr std::size_t kPiece = std::size_t{64} * 1024;
constexpr std::uint32_t kHangUpOnly = EPOLLERR;
} // namespace

ClientOutput::ClientOutput(protocol::Session& session, Poller& poller, protocol::StreamId stream, UniqueFd fd,
                           std::function<void()> onGone)
    : m_session(session)
    , m_stream(stream)
    , m_onGone(std::move(onGone))
    , m_fd(poller, std::move(fd), kHangUpOnly, [this](std::uint32_t events) { onEvents(events); }) {}

void ClientOutput::take(std::span<const std::byte> bytes) {
    if (!m_fd.isOpen()) {
        m_session.consumed(m_stream, bytes.size());
        return;
    }
    m_pending.insert(m_pending.end(), bytes.begin(), bytes.end());
    flush();
}

void ClientOutput::flush() {
    while (m_fd.isOpen() && !isFlushed()) {
        const auto rest = std::span(m_pending).subspan(m_done);
        const ssize_t count = ::send(m_fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            m_fd.setEvents(EPOLLOUT);
            if (m_done >= kPiece) {
                m_pending.erase(m_pending.begin(), m_pending.begin() + static_cast<std::ptrdiff_t>(m_done));
                m_done = 0;
            }
            return;
        }
        if (count < 0) {
            discard();
            m_onGone();
            return;
        }
        m_done += static_cast<std::size_t>(count);
        m_session.consumed(m_stream, static_cast<std::size_t>(count));
    }
    m_pending.clear();
    m_done = 0;
    m_fd.setEvents(kHangUpOnly);
    if (m_isFinished) {
        m_fd.close();
    }
}

void ClientOutput::finish() {
    m_isFinished = true;
    flush();
}

void ClientOutput::discard() {
    m_session.consumed(m_stream, m_pending.size() - m_done);
    m_pending.clear();
    m_done = 0;
    m_fd.close();
}

void ClientOutput::onEvents(std::uint32_t events) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        discard();
        m_onGone();
    } else {
        flush();
    }
}

ClientInput::ClientInput(protocol::Session& session, Poller& poller, Outbox outbox, UniqueFd fd)
    : m_session(session)
    , m_outbox(std::move(outbox))
    , m_fd(poller, std::move(fd), 0, [this](std::uint32_t) { onReadable(); }) {}

void ClientInput::onReadable() {
    std::array<std::byte, kPiece> piece;
    const std::size_t room = std::min(piece.size(), m_session.writable(m_outbox.stream()));
    if (room == 0 || !m_outbox.isEmpty()) {
        return;
    }
    const ssize_t count = ::recv(m_fd.get(), piece.data(), room, MSG_DONTWAIT);
    if (count > 0) {
        // Never cut short: no more was read than is taken.
        (void)m_session.write(m_outbox.stream(), std::span(piece).first(static_cast<std::size_t>(count)));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        close();
    }
}

void ClientInput::turn() {
    const bool isSent = m_outbox.flush();
    if (m_isAtEnd && isSent && !m_isFinished) {
        m_isFinished = true;
        m_session.finish(m_outbox.stream());
    }
    // Paused completely when there is no room: a closed client would else be reported again and again.
    m_fd.setEvents(isSent && m_session.writable(m_outbox.stream()) > 0 ? std::uint32_t{EPOLLIN} : 0);
}

void ClientInput::abandon() {
    m_outbox.drop();
    m_isFinished = true;
    m_fd.close();
}

void ClientInput::close() {
    m_isAtEnd = true;
    m_fd.close();
    turn();
}

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#include "agent/link.hpp"

#include <span>
#include <sys/epoll.h>
#include <utility>

namespace bulkhead::agent {
namespace {

constexpr std::size_t kBlock = std::size_t{64} * 1024;
/// The port takes 32 KiB at most per write; more calls in a row than this would starve the programs' pipes.
constexpr int kMovesPerTurn = 16;
/// An edge can be lost when the host connects while we look; the port is tried again then.
constexpr std::chrono::milliseconds kRetry{50};

} // namespace

Link::Link(EventLoop& loop, std::unique_ptr<Transport> transport, protocol::Session& session,
           std::function<void()> onEnded)
    : m_loop(loop)
    , m_transport(std::move(transport))
    , m_session(session)
    , m_onEnded(std::move(onEnded))
    , m_buffer(kBlock) {
    m_watch = m_loop.watch(m_transport->fd(), EPOLLIN | EPOLLOUT | EPOLLET, [this](std::uint32_t) {
        m_mayRead = true;
        m_mayWrite = true;
    });
}

Link::~Link() {
    m_loop.cancel(m_retry);
    m_loop.unwatch(m_watch);
}

void Link::receive() {
    for (int i = 0; i < kMovesPerTurn && m_mayRead; ++i) {
        const auto [outcome, count] = m_transport->read(m_buffer);
        switch (outcome) {
        case Transport::Outcome::Done:
            m_received += count;
            // A violation needs no act: the session waits for the host's next reset by itself.
            static_cast<void>(m_session.feed(std::span(m_buffer).first(count)));
            break;
        case Transport::Outcome::Later:
        case Transport::Outcome::Absent:
            m_mayRead = false;
            break;
        case Transport::Outcome::Ended:
            m_mayRead = false;
            m_ended = true;
            break;
        }
    }
}

void Link::send() {
    for (int i = 0; i < kMovesPerTurn && m_mayWrite; ++i) {
        const auto output = m_session.pendingOutput();
        if (output.empty()) {
            return;
        }
        const auto [outcome, count] = m_transport->write(output);
        switch (outcome) {
        case Transport::Outcome::Done:
            m_session.outputWritten(count);
            break;
        case Transport::Outcome::Later:
        case Transport::Outcome::Absent:
            m_mayWrite = false;
            retryLater();
            break;
        case Transport::Outcome::Ended:
            m_mayWrite = false;
            m_ended = true;
            break;
        }
    }
}

void Link::retryLater() {
    if (m_retry == 0) {
        m_retry = m_loop.after(kRetry, [this] {
            m_retry = 0;
            m_mayRead = true;
            m_mayWrite = true;
        });
    }
}

bool Link::pump() {
    if (m_ended) {
        return false;
    }
    receive();
    send();
    if (m_ended) {
        m_loop.unwatch(std::exchange(m_watch, 0));
        m_onEnded();
        return false;
    }
    return m_mayRead || (m_mayWrite && !m_session.pendingOutput().empty());
}

} // namespace bulkhead::agent

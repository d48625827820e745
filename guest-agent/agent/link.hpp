// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/event_loop.hpp"
#include "agent/transport.hpp"
#include "protocol/session.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace bulkhead::agent {

/// Moves bytes between a transport and a session. Watches edge-triggered, so that a port without a host (always "hung
/// up") costs nothing, and therefore reads and writes until the transport has no more.
class Link {
public:
    /// `onEnded`: the transport is over for good.
    Link(EventLoop& loop, std::unique_ptr<Transport> transport, protocol::Session& session,
         std::function<void()> onEnded);
    ~Link();
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    /// One turn of reading and writing. True: there is more to do at once. To be called at the end of each round.
    bool pump();
    /// Bytes that have ever come.
    [[nodiscard]] std::size_t received() const { return m_received; }
    /// True when all that the session has to say has been handed to the transport.
    [[nodiscard]] bool isFlushed() const { return m_session.pendingOutput().empty(); }

private:
    void receive();
    void send();
    void retryLater();

    EventLoop& m_loop;
    std::unique_ptr<Transport> m_transport;
    protocol::Session& m_session;
    std::function<void()> m_onEnded;
    EventLoop::WatchId m_watch = 0;
    EventLoop::TimerId m_retry = 0;
    std::vector<std::byte> m_buffer;
    bool m_mayRead = true;
    bool m_mayWrite = true;
    bool m_ended = false;
    std::size_t m_received = 0;
};

} // namespace bulkhead::agent

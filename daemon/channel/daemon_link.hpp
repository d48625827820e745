// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/poller.hpp"
#include "channel/records.hpp"

#include <deque>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::channel {

/// What the daemon's connection tells its owner.
class DaemonEvents {
public:
    virtual ~DaemonEvents() = default;
    virtual void onDaemonConnected() = 0;
    /// `rest`: what follows the record in its packet. Valid during the call.
    virtual void onDaemonRecord(const ToChannel& record, std::string_view rest) = 0;
};

/// The listening socket and the one connection of the daemon. Everything works on without one.
class DaemonLink {
public:
    DaemonLink(Poller& poller, UniqueFd listener, DaemonEvents& events);

    /// Sends a record (with descriptors) to the daemon; drops it when there is none.
    void send(const FromChannel& record, std::vector<UniqueFd> fds = {});
    /// Number of the present connection, 0 for none: an answer belongs to the connection that asked.
    [[nodiscard]] std::uint64_t connection() const { return m_connection.isOpen() ? m_generation : 0; }
    /// Before the end of the process: waits a moment for the daemon to take what is queued.
    void sendRemaining(std::chrono::milliseconds atMost);

private:
    struct Packet {
        FromChannel record;
        std::vector<UniqueFd> fds;
    };
    void onListener();
    void onConnection(std::uint32_t events);
    void receive();
    void flush();
    void drop();

    Poller& m_poller;
    DaemonEvents& m_events;
    uid_t m_ownUid; ///< asked for at the start: the system call filter allows it no more
    std::vector<char> m_buffer;
    std::deque<Packet> m_queue;
    std::uint64_t m_generation = 0;
    WatchedFd m_connection;
    WatchedFd m_listener;
};

} // namespace bulkhead::channel

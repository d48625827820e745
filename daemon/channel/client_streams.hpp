// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/outbox.hpp"
#include "channel/poller.hpp"

#include <functional>
#include <span>
#include <vector>

namespace bulkhead::channel {

/// Bytes of one stream of the guest on their way to a client's socket. What the client has not read is not consumed,
/// so the guest's window closes: at most one window is held here.
class ClientOutput {
public:
    /// `onGone`: the client closed its end. Called from the poller.
    ClientOutput(protocol::Session& session, Poller& poller, protocol::StreamId stream, UniqueFd fd,
                 std::function<void()> onGone);

    void take(std::span<const std::byte> bytes);
    /// The guest sends no more: the client gets its end of file behind the last byte.
    void finish();
    /// From here on the guest's bytes are thrown away.
    void discard();
    /// Nothing is left to be written (or nobody to write to).
    [[nodiscard]] bool isFlushed() const { return m_done == m_pending.size(); }
    [[nodiscard]] protocol::StreamId stream() const { return m_stream; }

private:
    void onEvents(std::uint32_t events);
    void flush();

    protocol::Session& m_session;
    protocol::StreamId m_stream;
    std::function<void()> m_onGone;
    std::vector<std::byte> m_pending;
    std::size_t m_done = 0;
    bool m_isFinished = false;
    WatchedFd m_fd;
};

/// Bytes from a client's socket on their way to a stream of the guest. Reads no more than the stream takes.
class ClientInput {
public:
    /// `outbox` is the stream's own: its header goes first.
    ClientInput(protocol::Session& session, Poller& poller, Outbox outbox, UniqueFd fd);
    /// Sends what waits, and reads on when there is room.
    void turn();
    /// The stream's header is on its way.
    [[nodiscard]] bool isAnnounced() const { return m_outbox.isEmpty(); }
    /// Takes no more from the client, and tells the guest that there is no more.
    void close();
    /// The stream is gone: takes no more from the client, and sends nothing.
    void abandon();

private:
    void onReadable();

    protocol::Session& m_session;
    Outbox m_outbox;
    WatchedFd m_fd;
    bool m_isAtEnd = false;
    bool m_isFinished = false;
};

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bulkhead::channel {

/// Messages on their way to one stream of the guest, kept while the session takes no more.
class Outbox {
public:
    Outbox(protocol::Session& session, protocol::StreamId stream)
        : m_session(&session)
        , m_stream(stream) {}
    /// Queues one message (its protobuf bytes, at most kMaxMessage). flush() sends it.
    void push(std::string_view message);
    /// Gives the session what it takes. True when nothing is left.
    bool flush();
    /// The stream is gone: what waits and what will be pushed belongs to nobody, and counts as sent.
    void drop();
    [[nodiscard]] bool isEmpty() const { return m_done == m_bytes.size(); }
    [[nodiscard]] protocol::StreamId stream() const { return m_stream; }

private:
    protocol::Session* m_session;
    protocol::StreamId m_stream;
    std::vector<std::byte> m_bytes;
    std::size_t m_done = 0;
    bool m_isDropped = false;
};

} // namespace bulkhead::channel

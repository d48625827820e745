// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/message_stream.hpp"
#include "protocol/session.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace bulkhead::agent {

/// Puts framed messages on a stream and keeps what the stream does not take yet.
class MessageWriter {
public:
    MessageWriter(protocol::Session& session, protocol::StreamId stream)
        : m_session(session)
        , m_stream(stream) {}

    template <class Message> void send(const Message& message) {
        const auto framed = protocol::frameMessage(message.SerializeAsString());
        m_waiting.insert(m_waiting.end(), framed.begin(), framed.end());
        ++m_unsent;
        flush();
    }
    /// Half-closes after the last message.
    void finish() {
        m_finishing = true;
        flush();
    }
    void flush() {
        if (!m_waiting.empty()) {
            const std::size_t taken = m_session.write(m_stream, m_waiting);
            m_waiting.erase(m_waiting.begin(), m_waiting.begin() + static_cast<std::ptrdiff_t>(taken));
        }
        if (m_waiting.empty()) {
            m_unsent = 0;
            if (m_finishing && !m_finished) {
                m_finished = true;
                m_session.finish(m_stream);
            }
        }
    }
    /// Messages since the queue was last empty: a bound for what a host that does not read can make us keep.
    [[nodiscard]] std::size_t unsent() const { return m_unsent; }

private:
    protocol::Session& m_session;
    protocol::StreamId m_stream;
    std::vector<std::byte> m_waiting;
    std::size_t m_unsent = 0;
    bool m_finishing = false;
    bool m_finished = false;
};

} // namespace bulkhead::agent

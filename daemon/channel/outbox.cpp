// SPDX-License-Identifier: Apache-2.0
#include "channel/outbox.hpp"

#include "protocol/message_stream.hpp"

namespace bulkhead::channel {

void Outbox::push(std::string_view message) {
    if (m_isDropped) {
        return;
    }
    const auto framed = protocol::frameMessage(message);
    m_bytes.insert(m_bytes.end(), framed.begin(), framed.end());
}

void Outbox::drop() {
    m_isDropped = true;
    m_bytes.clear();
    m_done = 0;
}

bool Outbox::flush() {
    if (!isEmpty()) {
        m_done += m_session->write(m_stream, std::span(m_bytes).subspan(m_done));
    }
    if (isEmpty()) {
        m_bytes.clear();
        m_done = 0;
    }
    return isEmpty();
}

} // namespace bulkhead::channel

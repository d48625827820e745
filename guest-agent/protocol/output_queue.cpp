// SPDX-License-Identifier: Apache-2.0
#include "protocol/output_queue.hpp"

#include <algorithm>

namespace bulkhead::protocol {

namespace {
/// Frames are put together up to about this much per write: few system calls, and control frames wait for no more.
constexpr std::size_t kWireBatch = std::size_t{64} * 1024;
} // namespace

void OutputQueue::pushControl(std::vector<std::byte> frame) {
    m_control.push_back(std::move(frame));
}

void OutputQueue::pushData(StreamId stream, std::vector<std::byte> frame) {
    m_dataBytes += frame.size();
    m_data.push_back({stream, std::move(frame)});
}

void OutputQueue::dropData(StreamId stream) {
    std::erase_if(m_data, [&](const DataFrame& frame) {
        if (frame.stream != stream) {
            return false;
        }
        m_dataBytes -= frame.bytes.size();
        return true;
    });
}

void OutputQueue::clear() {
    m_control.clear();
    m_data.clear();
    m_dataBytes = 0;
    m_wire.clear();
    m_wireDone = 0;
}

bool OutputQueue::isEmpty() const {
    return m_control.empty() && m_data.empty() && m_wireDone == m_wire.size();
}

std::span<const std::byte> OutputQueue::pending() {
    if (m_wireDone == m_wire.size()) {
        m_wire.clear();
        m_wireDone = 0;
        while (!m_control.empty() && m_wire.size() < kWireBatch) {
            m_wire.insert(m_wire.end(), m_control.front().begin(), m_control.front().end());
            m_control.pop_front();
        }
        while (!m_data.empty() && m_wire.size() < kWireBatch) {
            const auto& bytes = m_data.front().bytes;
            m_wire.insert(m_wire.end(), bytes.begin(), bytes.end());
            m_dataBytes -= bytes.size();
            m_data.pop_front();
        }
    }
    return std::span(m_wire).subspan(m_wireDone);
}

void OutputQueue::written(std::size_t count) {
    m_wireDone += std::min(count, m_wire.size() - m_wireDone);
}

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session.hpp"

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace bulkhead::protocol {

/// What waits for the transport. Control frames overtake data, but never cut a frame in two.
class OutputQueue {
public:
    /// Whole frames (or packets of the handshake).
    void pushControl(std::vector<std::byte> frame);
    void pushData(StreamId stream, std::vector<std::byte> frame);
    /// Forgets the data of one stream that has not begun its way.
    void dropData(StreamId stream);
    void clear();

    /// The next bytes, in one piece; valid until anything else is called.
    [[nodiscard]] std::span<const std::byte> pending();
    void written(std::size_t count);

    [[nodiscard]] bool isEmpty() const;
    /// Bytes of data frames (and whatever has begun its way with them).
    [[nodiscard]] std::size_t dataBytes() const { return m_dataBytes + (m_wire.size() - m_wireDone); }
    /// Control frames that have not begun their way.
    [[nodiscard]] std::size_t controlFrames() const { return m_control.size(); }

private:
    struct DataFrame {
        StreamId stream;
        std::vector<std::byte> bytes;
    };
    std::deque<std::vector<std::byte>> m_control;
    std::deque<DataFrame> m_data;
    std::size_t m_dataBytes = 0;
    std::vector<std::byte> m_wire;
    std::size_t m_wireDone = 0;
};

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

/// yamux frames: a 12 byte header in network byte order, and for data frames `length` bytes of payload.
namespace bulkhead::protocol {

enum class FrameType : std::uint8_t { Data = 0, WindowUpdate = 1, Ping = 2, GoAway = 3 };

namespace flag {
constexpr std::uint16_t kSyn = 1;
constexpr std::uint16_t kAck = 2;
constexpr std::uint16_t kFin = 4;
constexpr std::uint16_t kRst = 8;
} // namespace flag

constexpr std::size_t kFrameHeaderSize = 12;
using HeaderBytes = std::array<std::byte, kFrameHeaderSize>;

struct FrameHeader {
    FrameType type = FrameType::Data;
    std::uint16_t flags = 0;
    StreamId stream = 0;      ///< 0 for the session itself (ping, go away)
    std::uint32_t length = 0; ///< data: bytes of payload; window update: bytes granted; ping: opaque; go away: code

    [[nodiscard]] bool has(std::uint16_t bit) const { return (flags & bit) != 0; }
    bool operator==(const FrameHeader&) const = default;
};

[[nodiscard]] HeaderBytes encodeHeader(const FrameHeader& header);
/// Header and payload in one piece.
[[nodiscard]] std::vector<std::byte> encodeFrame(const FrameHeader& header, std::span<const std::byte> payload = {});

/// Reads a header and checks all that can be checked without knowing the streams: version, type, flags that exist and
/// fit the type, stream id 0 exactly where it belongs, payload within kMaxFramePayload.
[[nodiscard]] std::variant<FrameHeader, Violation> decodeHeader(std::span<const std::byte, kFrameHeaderSize> bytes);

} // namespace bulkhead::protocol

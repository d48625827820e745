// SPDX-License-Identifier: Apache-2.0
#include "protocol/frame.hpp"

#include <algorithm>

namespace bulkhead::protocol {

namespace {

constexpr std::uint16_t kAllFlags = flag::kSyn | flag::kAck | flag::kFin | flag::kRst;

template <class Integer> void putBigEndian(std::byte* out, Integer value) {
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
        out[i] = static_cast<std::byte>((value >> (8 * (sizeof(Integer) - 1 - i))) & 0xff);
    }
}

template <class Integer> Integer getBigEndian(const std::byte* in) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
        value = (value << 8) | std::to_integer<std::uint32_t>(in[i]);
    }
    return static_cast<Integer>(value);
}

Violation checkStreamFrame(const FrameHeader& header) {
    if (header.stream == 0) {
        return Violation::BadStreamId;
    }
    // A stream is opened or answered or abandoned; no frame does two of these.
    const int purposes = int{header.has(flag::kSyn)} + int{header.has(flag::kAck)} + int{header.has(flag::kRst)};
    if (purposes > 1 || (header.has(flag::kRst) && (header.has(flag::kFin) || header.length != 0))) {
        return Violation::BadFlags;
    }
    if (header.type == FrameType::Data && header.length > kMaxFramePayload) {
        return Violation::FrameTooLarge;
    }
    return Violation::None;
}

Violation checkSessionFrame(const FrameHeader& header) {
    if (header.stream != 0) {
        return Violation::BadStreamId;
    }
    const bool good =
        header.type == FrameType::Ping ? header.flags == flag::kSyn || header.flags == flag::kAck : header.flags == 0;
    return good ? Violation::None : Violation::BadFlags;
}

} // namespace

HeaderBytes encodeHeader(const FrameHeader& header) {
    HeaderBytes bytes{};
    bytes[1] = static_cast<std::byte>(header.type);
    putBigEndian(bytes.data() + 2, header.flags);
    putBigEndian(bytes.data() + 4, header.stream);
    putBigEndian(bytes.data() + 8, header.length);
    return bytes;
}

std::vector<std::byte> encodeFrame(const FrameHeader& header, std::span<const std::byte> payload) {
    const HeaderBytes head = encodeHeader(header);
    std::vector<std::byte> frame(head.size() + payload.size());
    std::copy(payload.begin(), payload.end(), std::copy(head.begin(), head.end(), frame.begin()));
    return frame;
}

std::variant<FrameHeader, Violation> decodeHeader(std::span<const std::byte, kFrameHeaderSize> bytes) {
    if (bytes[0] != std::byte{0}) {
        return Violation::BadVersion;
    }
    if (bytes[1] > static_cast<std::byte>(FrameType::GoAway)) {
        return Violation::BadType;
    }
    const FrameHeader header{.type = static_cast<FrameType>(bytes[1]),
                             .flags = getBigEndian<std::uint16_t>(bytes.data() + 2),
                             .stream = getBigEndian<std::uint32_t>(bytes.data() + 4),
                             .length = getBigEndian<std::uint32_t>(bytes.data() + 8)};
    if ((header.flags & ~kAllFlags) != 0) {
        return Violation::BadFlags;
    }
    const bool ofStream = header.type == FrameType::Data || header.type == FrameType::WindowUpdate;
    const Violation violation = ofStream ? checkStreamFrame(header) : checkSessionFrame(header);
    if (violation != Violation::None) {
        return violation;
    }
    return header;
}

} // namespace bulkhead::protocol

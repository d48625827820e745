// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/limits.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::protocol {

/// Cuts a byte stream into messages: little-endian u32 length, then that many bytes. The length is checked before
/// anything is kept. Not thread-safe.
class MessageReader {
public:
    /// Adds bytes. False: a length over kMaxMessage was announced; the reader takes nothing more.
    [[nodiscard]] bool feed(std::span<const std::byte> bytes);
    /// The next whole message (the protobuf bytes), if one is there.
    [[nodiscard]] std::optional<std::string> next();
    /// True when the message that is next in line announces more than kMaxMessage: next() gives nothing any more.
    /// Ask after the last next(): a length that follows a good message in the same piece is seen only then.
    [[nodiscard]] bool isBroken() const;
    /// Bytes that were fed behind the last message returned: for streams that begin with one message and go on raw.
    [[nodiscard]] std::vector<std::byte> takeRest();

private:
    std::vector<std::byte> m_buffer;
    std::size_t m_taken = 0; ///< bytes at the front of m_buffer that next() has given away
};

/// The bytes of one framed message. `message` must not exceed kMaxMessage (asserted).
[[nodiscard]] std::vector<std::byte> frameMessage(std::string_view message);

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
// The header codec and the cutting of messages: what is accepted must be written back byte for byte.
#include "protocol/frame.hpp"
#include "protocol/message_stream.hpp"

#include <algorithm>
#include <cstdlib>

using namespace bulkhead::protocol;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void checkHeader(std::span<const std::byte, kFrameHeaderSize> bytes) {
    const auto decoded = decodeHeader(bytes);
    if (const auto* const header = std::get_if<FrameHeader>(&decoded)) {
        const HeaderBytes again = encodeHeader(*header);
        require(std::equal(again.begin(), again.end(), bytes.begin()));
        require(header->type != FrameType::Data || header->length <= kMaxFramePayload);
    } else {
        require(*std::get_if<Violation>(&decoded) != Violation::None);
    }
}

/// However the bytes are cut up, the same messages come out.
std::vector<std::string> messagesOf(std::span<const std::byte> bytes, std::size_t step) {
    MessageReader reader;
    std::vector<std::string> messages;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        const bool taken = reader.feed(bytes.subspan(at, std::min(step, bytes.size() - at)));
        while (auto message = reader.next()) {
            require(message->size() <= kMaxMessage);
            messages.push_back(std::move(*message));
        }
        if (!taken || reader.isBroken()) {
            break;
        }
    }
    return messages;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    for (std::size_t at = 0; at + kFrameHeaderSize <= bytes.size() && at < 64 * kFrameHeaderSize;
         at += kFrameHeaderSize) {
        checkHeader(bytes.subspan(at).first<kFrameHeaderSize>());
    }
    if (!bytes.empty()) {
        const std::size_t step = 1 + std::to_integer<std::size_t>(bytes.front());
        const auto stream = bytes.subspan(1);
        require(messagesOf(stream, step) == messagesOf(stream, std::max<std::size_t>(stream.size(), 1)));
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "protocol/message_stream.hpp"

#include <cassert>
#include <cstdint>
#include <cstring>

namespace bulkhead::protocol {

namespace {

constexpr std::size_t kPrefixSize = 4;

std::size_t lengthAt(const std::byte* prefix) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kPrefixSize; ++i) {
        length |= std::to_integer<std::size_t>(prefix[i]) << (8 * i);
    }
    return length;
}

} // namespace

bool MessageReader::isBroken() const {
    return m_buffer.size() - m_taken >= kPrefixSize && lengthAt(m_buffer.data() + m_taken) > kMaxMessage;
}

bool MessageReader::feed(std::span<const std::byte> bytes) {
    if (isBroken()) {
        return false;
    }
    // Of a message that is too long no more than its prefix is kept.
    while (m_buffer.size() - m_taken < kPrefixSize && !bytes.empty()) {
        m_buffer.push_back(bytes.front());
        bytes = bytes.subspan(1);
    }
    if (isBroken()) {
        return false;
    }
    m_buffer.insert(m_buffer.end(), bytes.begin(), bytes.end());
    return true;
}

std::optional<std::string> MessageReader::next() {
    if (m_buffer.size() - m_taken < kPrefixSize || isBroken()) {
        return std::nullopt;
    }
    const std::size_t length = lengthAt(m_buffer.data() + m_taken);
    if (m_buffer.size() - m_taken - kPrefixSize < length) {
        // Only here is the buffer moved, so that many messages in one piece cost no more than their bytes.
        m_buffer.erase(m_buffer.begin(), m_buffer.begin() + static_cast<std::ptrdiff_t>(m_taken));
        m_taken = 0;
        return std::nullopt;
    }
    std::string message(length, '\0');
    std::memcpy(message.data(), m_buffer.data() + m_taken + kPrefixSize, length);
    m_taken += kPrefixSize + length;
    if (m_taken == m_buffer.size()) {
        m_buffer.clear();
        m_taken = 0;
    }
    return message;
}

std::vector<std::byte> MessageReader::takeRest() {
    m_buffer.erase(m_buffer.begin(), m_buffer.begin() + static_cast<std::ptrdiff_t>(m_taken));
    m_taken = 0;
    std::vector<std::byte> rest;
    rest.swap(m_buffer);
    return rest;
}

std::vector<std::byte> frameMessage(std::string_view message) {
    assert(message.size() <= kMaxMessage);
    std::vector<std::byte> framed(kPrefixSize + message.size());
    for (std::size_t i = 0; i < kPrefixSize; ++i) {
        framed[i] = static_cast<std::byte>((message.size() >> (8 * i)) & 0xff);
    }
    if (!message.empty()) {
        std::memcpy(framed.data() + kPrefixSize, message.data(), message.size());
    }
    return framed;
}

} // namespace bulkhead::protocol

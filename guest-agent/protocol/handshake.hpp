// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

/// The three packets that begin a session, and the search for them in a byte stream. PROTOCOL.md has the layout.
namespace bulkhead::protocol::handshake {

constexpr std::size_t kMagicSize = 16;
constexpr std::size_t kProofSize = 32;
constexpr std::size_t kPacketSize = kMagicSize + kNonceSize + kProofSize;

using Magic = std::array<std::byte, kMagicSize>;
using Proof = std::array<std::byte, kProofSize>;
/// A RESET or an ANSWER: magic, nonce, proof.
using Packet = std::array<std::byte, kPacketSize>;
using PacketView = std::span<const std::byte, kPacketSize>;

/// Neither magic has a zero byte (every frame header begins with one, so no magic reaches over the begin of a frame),
/// and both begin with a byte that never occurs in UTF-8 text.
extern const Magic kHostMagic;
extern const Magic kGuestMagic;

[[nodiscard]] Packet makeReset(const Token& token, const Nonce& host);
[[nodiscard]] Packet makeAnswer(const Token& token, const Nonce& host, const Nonce& guest);
[[nodiscard]] Proof makeConfirm(const Token& token, const Nonce& host, const Nonce& guest);

/// The host's nonce if `packet` has the right proof. Constant time in the proof.
[[nodiscard]] std::optional<Nonce> checkReset(const Token& token, PacketView packet);
/// The guest's nonce if `packet` answers the reset with nonce `host`.
[[nodiscard]] std::optional<Nonce> checkAnswer(const Token& token, const Nonce& host, PacketView packet);
[[nodiscard]] bool checkConfirm(const Token& token, const Nonce& host, const Nonce& guest,
                                std::span<const std::byte, kProofSize> proof);

/// How many more bytes a Scanner for `magic` waits for after it has seen `sent`, before it passes all of `sent` on.
/// The bytes that follow must begin with a zero byte (a frame header does).
[[nodiscard]] std::size_t bytesHeldFor(const Magic& magic, std::span<const std::byte> sent);

/// Finds packets in a byte stream that comes in any pieces. Only bytes that may be the begin of a packet are held
/// back; at most kPacketSize - 1 of them.
class Scanner {
public:
    /// `magic` must outlive the scanner.
    explicit Scanner(const Magic& magic)
        : m_magic(magic) {}

    /// Calls `onPacket(PacketView) -> bool` for each candidate; false makes it ordinary bytes. All other bytes go, in
    /// order, to `onBytes(span)`. Both may call stop(); neither may call feed().
    template <class OnBytes, class OnPacket>
    void feed(std::span<const std::byte> bytes, OnBytes&& onBytes, OnPacket&& onPacket);
    /// From here on everything is ordinary bytes, also the rest of what feed() is working on.
    void stop() { m_stopped = true; }

private:
    const Magic& m_magic;
    std::vector<std::byte> m_held;
    bool m_stopped = false;
};

template <class OnBytes, class OnPacket>
void Scanner::feed(std::span<const std::byte> bytes, OnBytes&& onBytes, OnPacket&& onPacket) {
    std::vector<std::byte> joined;
    if (!m_held.empty()) {
        joined.swap(m_held);
        joined.insert(joined.end(), bytes.begin(), bytes.end());
        bytes = joined;
    }
    std::size_t done = 0;
    std::size_t at = 0;
    const auto passOn = [&](std::size_t end) {
        if (end > done) {
            onBytes(bytes.subspan(done, end - done));
        }
        done = end;
    };
    while (!m_stopped && at < bytes.size()) {
        const void* const found =
            std::memchr(bytes.data() + at, std::to_integer<int>(m_magic.front()), bytes.size() - at);
        if (found == nullptr) {
            break;
        }
        at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
        const std::size_t left = bytes.size() - at;
        if (std::memcmp(bytes.data() + at, m_magic.data(), std::min(left, kMagicSize)) != 0) {
            ++at;
        } else if (left < kPacketSize) {
            passOn(at);
            if (!m_stopped) {
                m_held.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
                return;
            }
        } else {
            passOn(at);
            if (!m_stopped && onPacket(bytes.subspan(at).template first<kPacketSize>())) {
                at += kPacketSize;
                done = at;
            } else {
                ++at;
            }
        }
    }
    passOn(bytes.size());
}

} // namespace bulkhead::protocol::handshake

// SPDX-License-Identifier: Apache-2.0
#include "protocol/handshake.hpp"

#include <sodium/crypto_generichash.h>
#include <sodium/utils.h>

#include <string_view>

namespace bulkhead::protocol::handshake {

namespace {

constexpr Magic bytesOf(const std::array<unsigned char, kMagicSize>& values) noexcept {
    Magic magic{};
    for (std::size_t i = 0; i < kMagicSize; ++i) {
        magic[i] = std::byte{values[i]};
    }
    return magic;
}

const unsigned char* raw(const std::byte* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
}

/// BLAKE2b-256 with the token as key over the label and the nonces. The label says who speaks, so that no proof can
/// be sent back as another one.
Proof prove(const Token& token, std::string_view label, std::initializer_list<Nonce> nonces) {
    crypto_generichash_state state;
    Proof proof{};
    crypto_generichash_init(&state, raw(token.data()), token.size(), proof.size());
    crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(label.data()), label.size());
    for (const Nonce& nonce : nonces) {
        crypto_generichash_update(&state, raw(nonce.data()), nonce.size());
    }
    crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(proof.data()), proof.size());
    return proof;
}

Packet join(const Magic& magic, const Nonce& nonce, const Proof& proof) {
    Packet packet{};
    auto out = std::copy(magic.begin(), magic.end(), packet.begin());
    out = std::copy(nonce.begin(), nonce.end(), out);
    std::copy(proof.begin(), proof.end(), out);
    return packet;
}

Nonce nonceOf(PacketView packet) {
    Nonce nonce{};
    std::memcpy(nonce.data(), packet.data() + kMagicSize, kNonceSize);
    return nonce;
}

bool sameProof(const Proof& expected, const std::byte* got) {
    return sodium_memcmp(expected.data(), got, kProofSize) == 0;
}

} // namespace

constinit const Magic kHostMagic =
    bytesOf({0xf9, 0x5b, 0x8e, 0xc3, 0x17, 0xa4, 0x6d, 0xd2, 0x3f, 0x91, 0xe6, 0x28, 0xbc, 0x74, 0x0d, 0x5a});
constinit const Magic kGuestMagic =
    bytesOf({0xfb, 0x37, 0xc8, 0x12, 0x9e, 0x65, 0xd4, 0xaf, 0x4b, 0x83, 0xf1, 0x2c, 0x76, 0xb9, 0x1e, 0xda});

Packet makeReset(const Token& token, const Nonce& host) {
    return join(kHostMagic, host, prove(token, "bulkhead1 reset", {host}));
}

Packet makeAnswer(const Token& token, const Nonce& host, const Nonce& guest) {
    return join(kGuestMagic, guest, prove(token, "bulkhead1 guest", {host, guest}));
}

Proof makeConfirm(const Token& token, const Nonce& host, const Nonce& guest) {
    return prove(token, "bulkhead1 host", {guest, host});
}

std::optional<Nonce> checkReset(const Token& token, PacketView packet) {
    const Nonce host = nonceOf(packet);
    const bool good = sameProof(prove(token, "bulkhead1 reset", {host}), packet.data() + kMagicSize + kNonceSize);
    return good ? std::optional(host) : std::nullopt;
}

std::optional<Nonce> checkAnswer(const Token& token, const Nonce& host, PacketView packet) {
    const Nonce guest = nonceOf(packet);
    const bool good =
        sameProof(prove(token, "bulkhead1 guest", {host, guest}), packet.data() + kMagicSize + kNonceSize);
    return good ? std::optional(guest) : std::nullopt;
}

bool checkConfirm(const Token& token, const Nonce& host, const Nonce& guest,
                  std::span<const std::byte, kProofSize> proof) {
    return sameProof(makeConfirm(token, host, guest), proof.data());
}

std::size_t bytesHeldFor(const Magic& magic, std::span<const std::byte> sent) {
    const auto tail = sent.last(std::min(sent.size(), kPacketSize - 1));
    std::size_t held = 0;
    for (std::size_t at = 0; at < tail.size(); ++at) {
        const std::size_t left = tail.size() - at;
        if (std::memcmp(tail.data() + at, magic.data(), std::min(left, kMagicSize)) == 0) {
            // A part of the magic is refuted by the next zero byte; a whole one only by its wrong proof.
            held = std::max(held, left < kMagicSize ? 1 : kPacketSize - left);
        }
    }
    return held;
}

} // namespace bulkhead::protocol::handshake

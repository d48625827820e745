// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/frame.hpp"
#include "protocol/session.hpp"

#include <map>
#include <random>
#include <string>
#include <vector>

namespace bulkhead::protocol::test {

using Blob = std::vector<std::byte>;

inline Blob blob(std::string_view text) {
    Blob bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
    return bytes;
}

inline RandomSource seeded(unsigned seed) {
    return [engine = std::mt19937(seed)](std::span<std::byte> out) mutable {
        for (auto& byte : out) {
            byte = static_cast<std::byte>(engine() & 0xff);
        }
    };
}

inline Token someToken(unsigned char fill = 7) {
    Token token{};
    token.fill(std::byte{fill});
    return token;
}

/// Notes everything; consumes at once unless told not to.
class Recorder : public SessionEvents {
public:
    void onReady() override { ++ready; }
    void onSessionReset() override {
        ++resets;
        data.clear();
    }
    void onStreamOpened(StreamId stream) override { opened.push_back(stream); }
    void onData(StreamId stream, std::span<const std::byte> bytes) override {
        for (const std::byte byte : bytes) {
            data[stream].push_back(static_cast<char>(byte));
        }
        if (consumes && session != nullptr) {
            session->consumed(stream, bytes.size());
        }
    }
    void onPeerFinished(StreamId stream) override { finished.push_back(stream); }
    void onStreamReset(StreamId stream) override { resetStreams.push_back(stream); }
    void onWritable(StreamId stream) override { writable.push_back(stream); }

    Session* session = nullptr;
    bool consumes = true;
    int ready = 0;
    int resets = 0;
    std::vector<StreamId> opened;
    std::vector<StreamId> finished;
    std::vector<StreamId> resetStreams;
    std::vector<StreamId> writable;
    std::map<StreamId, std::string> data;
};

struct End {
    End(Role role, unsigned seed, const Token& token)
        : session(role, token, seeded(seed), events) {
        events.session = &session;
    }
    /// Takes up to `limit` bytes of what waits for the transport.
    Blob take(std::size_t limit = static_cast<std::size_t>(-1)) {
        Blob all;
        while (all.size() < limit) {
            const auto piece = session.pendingOutput();
            if (piece.empty()) {
                break;
            }
            const std::size_t count = std::min(piece.size(), limit - all.size());
            all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
            session.outputWritten(count);
        }
        return all;
    }
    Violation feed(const Blob& bytes, std::size_t step) {
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            const auto result = session.feed(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)));
            if (result != Violation::None) {
                return result;
            }
        }
        return Violation::None;
    }
    Recorder events;
    Session session;
};

/// A host and a guest with a perfect wire between them.
struct Pair {
    explicit Pair(std::size_t pieces = 4096, unsigned seed = 1, Token hostToken = someToken(),
                  Token guestToken = someToken())
        : step(pieces)
        , host(Role::Host, seed, hostToken)
        , guest(Role::Guest, seed + 1000, guestToken) {}
    /// Carries bytes both ways until both are quiet.
    void pump() {
        for (;;) {
            const Blob down = host.take();
            const Blob up = guest.take();
            if (down.empty() && up.empty()) {
                return;
            }
            (void)guest.feed(down, step);
            (void)host.feed(up, step);
        }
    }
    void connect() {
        host.session.start();
        pump();
    }
    std::size_t step;
    End host;
    End guest;
};

} // namespace bulkhead::protocol::test

// SPDX-License-Identifier: Apache-2.0
// A session of either role, alone with hostile bytes: before the handshake, or after a good one that the harness does
// with a real peer. The owner does what the input says in between. Promises that are checked: no crash, no more data
// than was granted, bounded output, the guest always recovers.
#include "protocol/handshake.hpp"
#include "protocol/session.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

using namespace bulkhead::protocol;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

class Input {
public:
    explicit Input(std::span<const std::byte> bytes)
        : m_rest(bytes) {}
    [[nodiscard]] bool isEmpty() const { return m_rest.empty(); }
    std::uint8_t byte() {
        if (m_rest.empty()) {
            return 0;
        }
        const auto value = std::to_integer<std::uint8_t>(m_rest.front());
        m_rest = m_rest.subspan(1);
        return value;
    }
    std::span<const std::byte> take(std::size_t count) {
        const auto piece = m_rest.first(std::min(count, m_rest.size()));
        m_rest = m_rest.subspan(piece.size());
        return piece;
    }

private:
    std::span<const std::byte> m_rest;
};

class Owner : public SessionEvents {
public:
    void onReady() override { ++ready; }
    void onSessionReset() override {
        ++resets;
        held.clear();
    }
    void onStreamOpened(StreamId stream) override {
        require(!held.contains(stream));
        held[stream] = 0;
        if (resetsNewStreams) {
            session->resetStream(stream);
            held.erase(stream);
        }
    }
    void onData(StreamId stream, std::span<const std::byte> bytes) override {
        require(held.contains(stream) && !bytes.empty());
        held[stream] += bytes.size();
        // Never more than the window beyond what was consumed.
        require(held[stream] <= kInitialWindow);
    }
    void onPeerFinished(StreamId stream) override { require(held.contains(stream)); }
    void onStreamReset(StreamId stream) override {
        require(held.contains(stream));
        held.erase(stream);
    }
    void onWritable(StreamId stream) override { require(session->writable(stream) > 0); }

    Session* session = nullptr;
    std::map<StreamId, std::size_t> held; ///< bytes given and not consumed
    bool resetsNewStreams = false;
    int ready = 0;
    int resets = 0;
};

RandomSource counting() {
    return [next = std::uint8_t{1}](std::span<std::byte> out) mutable {
        for (auto& byte : out) {
            byte = static_cast<std::byte>(next++);
        }
    };
}

std::vector<std::byte> takeOutput(Session& session) {
    std::vector<std::byte> all;
    for (auto piece = session.pendingOutput(); !piece.empty(); piece = session.pendingOutput()) {
        all.insert(all.end(), piece.begin(), piece.end());
        session.outputWritten(piece.size());
    }
    return all;
}

struct Side {
    Side(Role role, const Token& token)
        : session(role, token, counting(), owner) {
        owner.session = &session;
    }
    Owner owner;
    Session session;
};

void connect(Side& host, Side& guest) {
    host.session.start();
    for (int i = 0; i < 4; ++i) {
        require(guest.session.feed(takeOutput(host.session)) == Violation::None);
        require(host.session.feed(takeOutput(guest.session)) == Violation::None);
    }
    require(host.session.isReady() && guest.session.isReady());
}

void act(Side& side, Input& input) {
    const std::uint8_t what = input.byte();
    const StreamId stream = input.byte() % 16;
    Session& session = side.session;
    switch (what % 8) {
    case 0:
        if (const auto opened = session.open()) {
            side.owner.held[*opened] = 0;
        }
        break;
    case 1: {
        const std::vector<std::byte> bytes(std::size_t{input.byte()} * 1024, std::byte{0xf9});
        const std::size_t room = session.writable(stream);
        require(session.write(stream, bytes) == std::min(room, bytes.size()));
        break;
    }
    case 2:
        session.finish(stream);
        break;
    case 3:
        session.resetStream(stream);
        side.owner.held.erase(stream);
        break;
    case 4:
        if (const auto held = side.owner.held.find(stream); held != side.owner.held.end()) {
            session.consumed(stream, held->second);
            held->second = 0;
        }
        break;
    case 5:
        (void)takeOutput(session);
        break;
    case 6:
        session.outputWritten(std::min<std::size_t>(session.pendingOutput().size(), 1000));
        break;
    default:
        side.owner.resetsNewStreams = !side.owner.resetsNewStreams;
        break;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(std::as_bytes(std::span(data, size)));
    Token token{};
    token.fill(std::byte{7});
    // The first byte: bit 0 the role under test, bit 1 whether there is a session already.
    const std::uint8_t mode = input.byte();
    const bool isGuest = (mode & 1) != 0;
    Side host(Role::Host, token);
    Side guest(Role::Guest, token);
    Side& tested = isGuest ? guest : host;
    if ((mode & 2) != 0) {
        connect(host, guest);
    } else {
        host.session.start();
    }
    // Then, again and again: an action of the owner, a length, and as many bytes from the wire.
    while (!input.isEmpty()) {
        act(tested, input);
        const Violation result = tested.session.feed(input.take(std::size_t{input.byte()} * 4));
        require(!isGuest || result == Violation::None);
        require(result == Violation::None || !tested.session.isReady());
        require(tested.session.pendingOutput().size() <= 256 * 1024);
    }
    if (isGuest) {
        // Whatever went on: another host gets a session.
        (void)takeOutput(tested.session);
        Side next(Role::Host, token);
        const int before = guest.owner.ready;
        next.session.start();
        // Bytes of the input may be held back as the begin of a reset; this one is found behind them all the same.
        connect(next, guest);
        require(guest.owner.ready == before + 1);
    }
    return 0;
}

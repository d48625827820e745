// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The session: reset, challenge and yamux streams over one byte stream, without any input or output of its own, so
/// that agent, bulkhead-channel, tests and fuzzers run the very same code. Not thread-safe: one thread, one session.
namespace bulkhead::protocol {

using StreamId = std::uint32_t;
using Token = std::array<std::byte, kTokenSize>;
using Nonce = std::array<std::byte, kNonceSize>;

enum class Role { Host, Guest };

/// Why a session or stream broke: a closed list, safe to log and to send over the bus.
enum class Violation {
    None,
    BadVersion, ///< a frame's version byte is not 0
    BadType,    ///< unknown frame type
    BadFlags,   ///< flags that do not fit the type or the stream's state
    FrameTooLarge,
    WindowExceeded, ///< the peer sent more than we allowed
    WindowOverflow, ///< a window update beyond 2^32-1
    UnknownStream,  ///< data for a stream that was never opened
    BadStreamId,    ///< wrong parity, reused, or 0 where it may not be
    TooManyStreams,
    TooManyControlFrames,
    BadProof, ///< the peer does not know the token
    GoAway,   ///< the peer ended the session
    MessageTooLarge,
    BadMessage, ///< not a valid message of the expected type
};
std::string_view nameOf(Violation violation);

/// What a session tells its owner. Called from within feed() and outputWritten(); an implementation may call open(),
/// write(), finish(), resetStream() and consumed() from inside, but must not destroy the session or call feed().
class SessionEvents {
public:
    virtual ~SessionEvents() = default;
    /// Both sides have proved the token; streams can be opened now. On the guest it is called again for each new
    /// session on the same transport, after onSessionReset().
    virtual void onReady() = 0;
    /// Guest only: the session has ended, because the host began a new one in-band or broke the protocol (violation()
    /// tells). All streams are gone without further events; drop all work that belongs to them.
    virtual void onSessionReset() = 0;
    /// The peer opened a stream. Never called on the host in this version (a guest that opens one is a violation).
    virtual void onStreamOpened(StreamId stream) = 0;
    /// Bytes arrived. They count against the window until consumed() is called for them.
    virtual void onData(StreamId stream, std::span<const std::byte> bytes) = 0;
    /// The peer sends no more on this stream (FIN). Our direction may still be open.
    virtual void onPeerFinished(StreamId stream) = 0;
    /// The stream is gone: reset by the peer. No further events for it.
    virtual void onStreamReset(StreamId stream) = 0;
    /// write() would take bytes again, after it took fewer than offered.
    virtual void onWritable(StreamId stream) = 0;
};

/// Fills a buffer with random bytes. A parameter so that tests and fuzzers are repeatable.
using RandomSource = std::function<void(std::span<std::byte>)>;

class Session {
public:
    /// `events` must outlive the session.
    Session(Role role, const Token& token, RandomSource random, SessionEvents& events);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Guest only: where the host has put this machine's token, asked at each reset; from then on the one that it gives
    /// is the only one that is good. A machine that was begun from a memory image holds the token of the machine that
    /// the image was taken of, which whoever began from the same image may know. None: the one we have.
    using TokenSource = std::function<std::optional<Token>()>;
    void setTokenSource(TokenSource source);

    /// Host only: sends the in-band reset and begins the challenge. Called before any feed(), and again from time to
    /// time until isReady(): the guest may have no reader yet. Each further call sends the same reset once more, unless
    /// the last one still waits in pendingOutput().
    void start();

    /// Takes bytes from the transport, in any pieces. None: fine. A violation: the session is over; close the
    /// transport (host) or wait for the next reset (guest: the session recovers by itself, feed() keeps scanning for a
    /// reset and says None; violation() tells).
    [[nodiscard]] Violation feed(std::span<const std::byte> bytes);
    /// The violation that ended the session, None while it lives.
    [[nodiscard]] Violation violation() const;
    [[nodiscard]] bool isReady() const;
    /// Guest: a reset with the right proof has come, and its answer is out or confirmed. (It may be a replayed one.)
    [[nodiscard]] bool isChallenged() const;
    /// Host: answers that came and had a wrong proof: left over from an earlier session, or of somebody who only claims
    /// to be the guest.
    [[nodiscard]] std::size_t wrongAnswers() const;

    /// The next bytes for the transport: valid until the next call of anything else. Empty: nothing to send.
    [[nodiscard]] std::span<const std::byte> pendingOutput() const;
    /// `count` bytes of pendingOutput() have been written.
    void outputWritten(std::size_t count);

    /// Opens a stream (host only, when ready). None when there are too many.
    [[nodiscard]] std::optional<StreamId> open();
    /// Queues bytes; returns how many were taken (window and queue permitting, possibly 0). When fewer than offered,
    /// onWritable() follows. A stream that is unknown or finished takes 0.
    [[nodiscard]] std::size_t write(StreamId stream, std::span<const std::byte> bytes);
    /// How many bytes write() would take now.
    [[nodiscard]] std::size_t writable(StreamId stream) const;
    /// Half-close: we send no more (FIN), after what was written before.
    void finish(StreamId stream);
    /// Abandons the stream both ways (RST). No further events for it.
    void resetStream(StreamId stream);
    /// The owner has dealt with `count` bytes of onData(): the peer may send as many more.
    void consumed(StreamId stream, std::size_t count);

private:
    class Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace bulkhead::protocol

// SPDX-License-Identifier: Apache-2.0
#include "protocol/session.hpp"

#include "protocol/frame.hpp"
#include "protocol/handshake.hpp"
#include "protocol/output_queue.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace bulkhead::protocol {

namespace {

/// A data frame carries no more than this, so that control frames do not wait long behind it.
constexpr std::size_t kDataPayload = std::size_t{32} * 1024;
/// What the host throws away while it looks for the answer to its reset.
constexpr std::size_t kMaxDiscarded = std::size_t{16} * 1024 * 1024;
/// Streams that are gone for us, but of which the peer may not know yet.
constexpr std::size_t kMaxLingering = 4096;
constexpr StreamId kLastStreamId = std::numeric_limits<StreamId>::max() - 1;

struct Stream {
    std::uint32_t sendWindow = kInitialWindow;
    std::uint32_t receiveWindow = kInitialWindow;
    std::uint32_t unconsumed = 0; ///< given to the owner, who has not dealt with it yet
    std::uint32_t ungranted = 0;  ///< dealt with, not yet told to the peer
    bool isAcknowledged = false;
    bool isFinished = false; ///< by us
    bool isPeerFinished = false;
    bool wantsToWrite = false;
};

enum class Phase { Idle, AwaitAnswer, AwaitConfirm, Ready, Dead };

} // namespace

class Session::Impl {
public:
    Impl(Role role, const Token& token, RandomSource random, SessionEvents& events)
        : m_role(role)
        , m_token(token)
        , m_random(std::move(random))
        , m_events(events)
        , m_scanner(role == Role::Host ? handshake::kGuestMagic : handshake::kHostMagic) {}

    void setTokenSource(TokenSource source) { m_tokenSource = std::move(source); }
    void start();
    Violation feed(std::span<const std::byte> bytes);
    [[nodiscard]] Violation violation() const { return m_violation; }
    [[nodiscard]] bool isReady() const { return m_phase == Phase::Ready; }
    [[nodiscard]] bool isChallenged() const { return m_phase == Phase::AwaitConfirm || m_phase == Phase::Ready; }
    [[nodiscard]] std::size_t wrongAnswers() const { return m_wrongAnswers; }
    std::span<const std::byte> pendingOutput() { return m_output.pending(); }
    void outputWritten(std::size_t count);

    std::optional<StreamId> open();
    std::size_t write(StreamId id, std::span<const std::byte> bytes);
    [[nodiscard]] std::size_t writable(StreamId id) const;
    void finish(StreamId id);
    void resetStream(StreamId id);
    void consumed(StreamId id, std::size_t count);

private:
    // Handshake
    bool takeReset(handshake::PacketView packet);
    std::optional<Nonce> checkReset(handshake::PacketView packet);
    bool takeAnswer(handshake::PacketView packet);
    void takeConfirm(std::span<const std::byte> bytes);
    std::size_t takeRepeatedAnswer(std::span<const std::byte> bytes);
    // Frames
    void takeBytes(std::span<const std::byte> bytes);
    void takeFrames(std::span<const std::byte> bytes);
    void takeHeader(const FrameHeader& header);
    void takeStreamFrame(const FrameHeader& header);
    void takeFrameOfLostStream(const FrameHeader& header);
    bool openByPeer(const FrameHeader& header);
    void endFrame();
    // Streams
    Stream* find(StreamId id);
    void forget(StreamId id, std::uint32_t stillAllowed);
    void closeIfDone(StreamId id);
    [[nodiscard]] bool wasOpened(StreamId id) const;
    void offerWrite(StreamId id);

    void sendControl(const FrameHeader& header) { m_output.pushControl(encodeFrame(header)); }
    void dropStreams();
    void violate(Violation violation);

    const Role m_role;
    Token m_token;
    TokenSource m_tokenSource;
    const RandomSource m_random;
    SessionEvents& m_events;
    Phase m_phase = Phase::Idle;
    Violation m_violation = Violation::None;
    handshake::Scanner m_scanner;
    OutputQueue m_output;

    Nonce m_hostNonce{};
    Nonce m_guestNonce{};
    handshake::Packet m_packet{}; ///< host: the reset, then the accepted answer; guest: the answer
    std::size_t m_discarded = 0;
    std::size_t m_wrongAnswers = 0;
    std::size_t m_resetsSent = 0;
    std::size_t m_repeatedAnswers = 0; ///< how many more copies of the answer may come
    std::size_t m_repeatedBytes = 0;   ///< bytes of such a copy seen so far
    handshake::Proof m_confirm{};
    std::size_t m_confirmBytes = 0;

    HeaderBytes m_header{};
    std::size_t m_headerBytes = 0;
    FrameHeader m_frame; ///< the data frame whose payload is under way
    std::size_t m_payloadLeft = 0;
    std::size_t m_pingsUnanswered = 0;

    std::map<StreamId, Stream> m_streams;
    /// Streams that ended here while frames for them may still be under way, with the bytes that may still come.
    std::map<StreamId, std::uint32_t> m_lingering;
    std::deque<StreamId> m_lingeringOrder;
    StreamId m_nextId = 1; ///< host: the next to open; guest: the lowest that the host may open
    StreamId m_lastOffered = 0;
};

// ---- life of the session -------------------------------------------------------------------------------------------

void Session::Impl::start() {
    if (m_role != Role::Host || (m_phase != Phase::Idle && m_phase != Phase::AwaitAnswer) || !m_output.isEmpty()) {
        return;
    }
    if (m_phase == Phase::Idle) {
        m_random(m_hostNonce);
        m_packet = handshake::makeReset(m_token, m_hostNonce);
        m_phase = Phase::AwaitAnswer;
    }
    ++m_resetsSent;
    m_output.pushControl({m_packet.begin(), m_packet.end()});
}

Violation Session::Impl::feed(std::span<const std::byte> bytes) {
    const auto onBytes = [this](std::span<const std::byte> plain) { takeBytes(plain); };
    if (m_role == Role::Guest) {
        m_scanner.feed(bytes, onBytes, [this](handshake::PacketView packet) { return takeReset(packet); });
        return Violation::None;
    }
    m_scanner.feed(bytes, onBytes, [this](handshake::PacketView packet) { return takeAnswer(packet); });
    return m_violation;
}

void Session::Impl::violate(Violation violation) {
    const bool wasReady = m_phase == Phase::Ready;
    m_phase = Phase::Dead;
    m_violation = violation;
    m_output.clear();
    dropStreams();
    if (m_role == Role::Guest && wasReady) {
        m_events.onSessionReset();
    }
}

void Session::Impl::dropStreams() {
    m_streams.clear();
    m_lingering.clear();
    m_lingeringOrder.clear();
    m_nextId = 1;
    m_headerBytes = 0;
    m_payloadLeft = 0;
    m_pingsUnanswered = 0;
}

std::optional<Nonce> Session::Impl::checkReset(handshake::PacketView packet) {
    if (const auto now = m_tokenSource ? m_tokenSource() : std::nullopt) {
        m_token = *now;
    }
    return handshake::checkReset(m_token, packet);
}

bool Session::Impl::takeReset(handshake::PacketView packet) {
    const auto host = checkReset(packet);
    if (!host) {
        return false;
    }
    // The same host asks again, since it has seen no answer yet. It gets the very same answer: it may accept any copy.
    const bool isRepeated = m_phase == Phase::AwaitConfirm && *host == m_hostNonce;
    m_confirmBytes = 0;
    if (isRepeated && !m_output.isEmpty()) {
        return true;
    }
    const bool wasReady = m_phase == Phase::Ready;
    m_output.clear();
    dropStreams();
    m_violation = Violation::None;
    m_phase = Phase::AwaitConfirm;
    if (!isRepeated) {
        m_hostNonce = *host;
        m_random(m_guestNonce);
        m_packet = handshake::makeAnswer(m_token, m_hostNonce, m_guestNonce);
    }
    m_output.pushControl({m_packet.begin(), m_packet.end()});
    if (wasReady) {
        m_events.onSessionReset();
    }
    return true;
}

bool Session::Impl::takeAnswer(handshake::PacketView packet) {
    const auto guest = handshake::checkAnswer(m_token, m_hostNonce, packet);
    if (m_phase == Phase::AwaitAnswer && !guest) {
        ++m_wrongAnswers;
    }
    if (m_phase != Phase::AwaitAnswer || !guest) {
        return false;
    }
    m_scanner.stop();
    std::copy(packet.begin(), packet.end(), m_packet.begin());
    m_repeatedAnswers = m_resetsSent - 1;
    // A copy of the reset that still waits goes out before this; its answer is skipped as a repeated one.
    const handshake::Proof confirm = handshake::makeConfirm(m_token, m_hostNonce, *guest);
    m_output.pushControl({confirm.begin(), confirm.end()});
    // The end of the proof may look like the begin of a reset; what follows refutes that.
    sendControl({.type = FrameType::Ping, .flags = flag::kSyn, .stream = 0, .length = 0});
    m_pingsUnanswered = 1;
    m_phase = Phase::Ready;
    m_events.onReady();
    return true;
}

void Session::Impl::takeConfirm(std::span<const std::byte> bytes) {
    const std::size_t count = std::min(bytes.size(), m_confirm.size() - m_confirmBytes);
    std::copy_n(bytes.begin(), count, m_confirm.begin() + static_cast<std::ptrdiff_t>(m_confirmBytes));
    m_confirmBytes += count;
    if (m_confirmBytes < m_confirm.size()) {
        return;
    }
    if (!handshake::checkConfirm(m_token, m_hostNonce, m_guestNonce, m_confirm)) {
        violate(Violation::BadProof);
        return;
    }
    m_phase = Phase::Ready;
    m_events.onReady();
    takeFrames(bytes.subspan(count));
}

void Session::Impl::takeBytes(std::span<const std::byte> bytes) {
    switch (m_phase) {
    case Phase::AwaitAnswer:
        m_discarded += bytes.size();
        if (m_discarded > kMaxDiscarded) {
            violate(Violation::BadProof);
        }
        break;
    case Phase::AwaitConfirm:
        takeConfirm(bytes);
        break;
    case Phase::Ready:
        takeFrames(bytes);
        break;
    case Phase::Idle:
    case Phase::Dead:
        break;
    }
}

/// Skips copies of the accepted answer: the guest answers each reset, and all its answers come before its first frame.
std::size_t Session::Impl::takeRepeatedAnswer(std::span<const std::byte> bytes) {
    const bool begins = m_repeatedAnswers > 0 && m_headerBytes == 0 && bytes.front() == m_packet.front();
    if (m_repeatedBytes == 0 && !begins) {
        return 0;
    }
    const std::size_t count = std::min(bytes.size(), m_packet.size() - m_repeatedBytes);
    if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count),
                    m_packet.begin() + static_cast<std::ptrdiff_t>(m_repeatedBytes))) {
        violate(Violation::BadVersion);
        return count;
    }
    m_repeatedBytes += count;
    if (m_repeatedBytes == m_packet.size()) {
        m_repeatedBytes = 0;
        --m_repeatedAnswers;
    }
    return count;
}

// ---- frames from the peer ------------------------------------------------------------------------------------------

void Session::Impl::takeFrames(std::span<const std::byte> bytes) {
    while (!bytes.empty() && m_phase == Phase::Ready) {
        if (m_payloadLeft > 0) {
            const auto piece = bytes.first(std::min(bytes.size(), m_payloadLeft));
            bytes = bytes.subspan(piece.size());
            m_payloadLeft -= piece.size();
            if (Stream* const stream = find(m_frame.stream)) {
                stream->unconsumed += static_cast<std::uint32_t>(piece.size());
                m_events.onData(m_frame.stream, piece);
            }
            if (m_payloadLeft == 0) {
                endFrame();
            }
            continue;
        }
        if (const std::size_t skipped = takeRepeatedAnswer(bytes); skipped > 0) {
            bytes = bytes.subspan(skipped);
            continue;
        }
        const std::size_t count = std::min(bytes.size(), m_header.size() - m_headerBytes);
        std::copy_n(bytes.begin(), count, m_header.begin() + static_cast<std::ptrdiff_t>(m_headerBytes));
        m_headerBytes += count;
        bytes = bytes.subspan(count);
        if (m_headerBytes == m_header.size()) {
            m_headerBytes = 0;
            m_repeatedAnswers = 0;
            const auto decoded = decodeHeader(m_header);
            if (const auto* const violation = std::get_if<Violation>(&decoded)) {
                violate(*violation);
            } else {
                takeHeader(*std::get_if<FrameHeader>(&decoded));
            }
            if (m_phase == Phase::Ready && m_output.controlFrames() > kMaxQueuedControlFrames) {
                violate(Violation::TooManyControlFrames);
            }
        }
    }
}

void Session::Impl::takeHeader(const FrameHeader& header) {
    if (header.type == FrameType::GoAway) {
        violate(Violation::GoAway);
    } else if (header.type != FrameType::Ping) {
        takeStreamFrame(header);
    } else if (header.has(flag::kSyn)) {
        sendControl({.type = FrameType::Ping, .flags = flag::kAck, .stream = 0, .length = header.length});
    } else if (m_pingsUnanswered == 0 || header.length != 0) {
        violate(Violation::BadFlags); // an answer to nothing; our pings carry 0
    } else {
        --m_pingsUnanswered;
    }
}

/// False: the frame broke the protocol.
bool Session::Impl::openByPeer(const FrameHeader& header) {
    if (m_role == Role::Host) {
        violate(Violation::BadFlags);
    } else if (header.stream % 2 == 0 || header.stream < m_nextId || header.stream > kLastStreamId) {
        violate(Violation::BadStreamId);
    } else if (m_streams.size() >= kMaxStreams) {
        violate(Violation::TooManyStreams);
    } else {
        m_nextId = header.stream + 2;
        m_streams[header.stream].isAcknowledged = true;
        sendControl({.type = FrameType::WindowUpdate, .flags = flag::kAck, .stream = header.stream, .length = 0});
        m_events.onStreamOpened(header.stream);
        return true;
    }
    return false;
}

void Session::Impl::takeStreamFrame(const FrameHeader& header) {
    if (header.has(flag::kSyn) && !openByPeer(header)) {
        return;
    }
    Stream* const stream = find(header.stream);
    if (stream == nullptr) {
        takeFrameOfLostStream(header);
        return;
    }
    if (header.has(flag::kRst)) {
        m_output.dropData(header.stream);
        m_streams.erase(header.stream);
        m_events.onStreamReset(header.stream);
        return;
    }
    // The first frame of an answer carries ACK, no other does.
    if (header.has(flag::kAck) == stream->isAcknowledged && !header.has(flag::kSyn)) {
        violate(Violation::BadFlags);
        return;
    }
    stream->isAcknowledged = true;
    m_frame = header;
    if (header.type == FrameType::WindowUpdate) {
        if (header.length > std::numeric_limits<std::uint32_t>::max() - stream->sendWindow) {
            violate(Violation::WindowOverflow);
            return;
        }
        stream->sendWindow += header.length;
        offerWrite(header.stream);
        endFrame();
        return;
    }
    if (stream->isPeerFinished) {
        violate(Violation::BadFlags);
    } else if (header.length > stream->receiveWindow) {
        violate(Violation::WindowExceeded);
    } else {
        stream->receiveWindow -= header.length;
        m_payloadLeft = header.length;
        if (m_payloadLeft == 0) {
            endFrame();
        }
    }
}

void Session::Impl::takeFrameOfLostStream(const FrameHeader& header) {
    const auto lingering = m_lingering.find(header.stream);
    if (lingering == m_lingering.end()) {
        violate(Violation::UnknownStream);
        return;
    }
    m_frame = header;
    if (header.has(flag::kRst)) {
        m_output.dropData(header.stream);
        m_lingering.erase(lingering);
    } else if (header.type == FrameType::Data) {
        if (header.length > lingering->second) {
            violate(Violation::WindowExceeded);
            return;
        }
        lingering->second -= header.length;
        m_payloadLeft = header.length;
    }
}

/// The frame in m_frame has been taken whole.
void Session::Impl::endFrame() {
    Stream* const stream = find(m_frame.stream);
    if (stream == nullptr || !m_frame.has(flag::kFin)) {
        return;
    }
    if (stream->isPeerFinished) {
        violate(Violation::BadFlags);
        return;
    }
    stream->isPeerFinished = true;
    const StreamId id = m_frame.stream;
    m_events.onPeerFinished(id);
    closeIfDone(id);
}

// ---- streams -------------------------------------------------------------------------------------------------------

Stream* Session::Impl::find(StreamId id) {
    const auto found = m_streams.find(id);
    return found == m_streams.end() ? nullptr : &found->second;
}

void Session::Impl::forget(StreamId id, std::uint32_t stillAllowed) {
    m_streams.erase(id);
    m_lingering[id] = stillAllowed;
    m_lingeringOrder.push_back(id);
    if (m_lingeringOrder.size() > kMaxLingering) {
        m_lingering.erase(m_lingeringOrder.front());
        m_lingeringOrder.pop_front();
    }
}

void Session::Impl::closeIfDone(StreamId id) {
    const Stream* const stream = find(id);
    if (stream != nullptr && stream->isFinished && stream->isPeerFinished) {
        forget(id, 0);
    }
}

void Session::Impl::offerWrite(StreamId id) {
    Stream* const stream = find(id);
    if (stream != nullptr && stream->wantsToWrite && writable(id) > 0) {
        stream->wantsToWrite = false;
        m_events.onWritable(id);
    }
}

void Session::Impl::outputWritten(std::size_t count) {
    m_output.written(count);
    // Not at the first free byte: that would cut the output into tiny frames.
    if (m_phase != Phase::Ready || m_output.dataBytes() > kMaxOutputQueue / 2) {
        return;
    }
    std::vector<StreamId> waiting;
    for (const auto& [id, stream] : m_streams) {
        if (stream.wantsToWrite && stream.sendWindow > 0) {
            waiting.push_back(id);
        }
    }
    // Begin behind the one that was served last, so that none starves.
    std::rotate(waiting.begin(), std::upper_bound(waiting.begin(), waiting.end(), m_lastOffered), waiting.end());
    for (const StreamId id : waiting) {
        if (m_output.dataBytes() >= kMaxOutputQueue) {
            break;
        }
        m_lastOffered = id;
        offerWrite(id);
    }
}

std::optional<StreamId> Session::Impl::open() {
    if (m_role != Role::Host || m_phase != Phase::Ready || m_streams.size() >= kMaxStreams ||
        m_nextId > kLastStreamId || m_output.controlFrames() >= kMaxQueuedControlFrames) {
        return std::nullopt;
    }
    const StreamId id = m_nextId;
    m_nextId += 2;
    m_streams.emplace(id, Stream{});
    sendControl({.type = FrameType::WindowUpdate, .flags = flag::kSyn, .stream = id, .length = 0});
    return id;
}

std::size_t Session::Impl::writable(StreamId id) const {
    const auto found = m_streams.find(id);
    if (m_phase != Phase::Ready || found == m_streams.end() || found->second.isFinished) {
        return 0;
    }
    const std::size_t queued = m_output.dataBytes();
    return queued >= kMaxOutputQueue ? 0 : std::min<std::size_t>(found->second.sendWindow, kMaxOutputQueue - queued);
}

std::size_t Session::Impl::write(StreamId id, std::span<const std::byte> bytes) {
    Stream* const stream = find(id);
    if (stream == nullptr || stream->isFinished) {
        return 0;
    }
    const std::size_t taken = std::min(bytes.size(), writable(id));
    stream->wantsToWrite = taken < bytes.size();
    stream->sendWindow -= static_cast<std::uint32_t>(taken);
    for (auto rest = bytes.first(taken); !rest.empty();) {
        const auto payload = rest.first(std::min(rest.size(), kDataPayload));
        rest = rest.subspan(payload.size());
        auto frame = encodeFrame(
            {.type = FrameType::Data, .flags = 0, .stream = id, .length = static_cast<std::uint32_t>(payload.size())},
            payload);
        // The guest holds back what may begin a reset. Empty grants behind it make it go on at once.
        const std::size_t held = m_role == Role::Host ? handshake::bytesHeldFor(handshake::kHostMagic, frame) : 0;
        const HeaderBytes filler =
            encodeHeader({.type = FrameType::WindowUpdate, .flags = 0, .stream = id, .length = 0});
        for (std::size_t filled = 0; filled < held; filled += filler.size()) {
            frame.insert(frame.end(), filler.begin(), filler.end());
        }
        m_output.pushData(id, std::move(frame));
    }
    return taken;
}

void Session::Impl::finish(StreamId id) {
    Stream* const stream = find(id);
    if (stream == nullptr || stream->isFinished) {
        return;
    }
    stream->isFinished = true;
    stream->wantsToWrite = false;
    // Queued as data: it must not overtake what was written before.
    m_output.pushData(id, encodeFrame({.type = FrameType::Data, .flags = flag::kFin, .stream = id, .length = 0}));
    closeIfDone(id);
}

void Session::Impl::resetStream(StreamId id) {
    Stream* const stream = find(id);
    if (stream == nullptr) {
        return;
    }
    m_output.dropData(id);
    sendControl({.type = FrameType::WindowUpdate, .flags = flag::kRst, .stream = id, .length = 0});
    forget(id, stream->isPeerFinished ? 0 : stream->receiveWindow);
}

void Session::Impl::consumed(StreamId id, std::size_t count) {
    Stream* const stream = find(id);
    if (stream == nullptr) {
        return;
    }
    const auto done = static_cast<std::uint32_t>(std::min<std::size_t>(count, stream->unconsumed));
    stream->unconsumed -= done;
    stream->ungranted += done;
    if (stream->ungranted < kInitialWindow / 2 || stream->isPeerFinished) {
        return;
    }
    // A multiple of 256 ends the frame in a zero byte, so that it can never look like the begin of a reset.
    const std::uint32_t grant = stream->ungranted & ~std::uint32_t{0xff};
    stream->ungranted -= grant;
    stream->receiveWindow += grant;
    sendControl({.type = FrameType::WindowUpdate, .flags = 0, .stream = id, .length = grant});
}

// ---- the public face -----------------------------------------------------------------------------------------------

Session::Session(Role role, const Token& token, RandomSource random, SessionEvents& events)
    : m_impl(std::make_unique<Impl>(role, token, std::move(random), events)) {}
Session::~Session() = default;

void Session::setTokenSource(TokenSource source) {
    m_impl->setTokenSource(std::move(source));
}
void Session::start() {
    m_impl->start();
}
Violation Session::feed(std::span<const std::byte> bytes) {
    return m_impl->feed(bytes);
}
Violation Session::violation() const {
    return m_impl->violation();
}
bool Session::isReady() const {
    return m_impl->isReady();
}
bool Session::isChallenged() const {
    return m_impl->isChallenged();
}
std::size_t Session::wrongAnswers() const {
    return m_impl->wrongAnswers();
}
std::span<const std::byte> Session::pendingOutput() const {
    return m_impl->pendingOutput();
}
void Session::outputWritten(std::size_t count) {
    m_impl->outputWritten(count);
}
std::optional<StreamId> Session::open() {
    return m_impl->open();
}
std::size_t Session::write(StreamId stream, std::span<const std::byte> bytes) {
    return m_impl->write(stream, bytes);
}
std::size_t Session::writable(StreamId stream) const {
    return m_impl->writable(stream);
}
void Session::finish(StreamId stream) {
    m_impl->finish(stream);
}
void Session::resetStream(StreamId stream) {
    m_impl->resetStream(stream);
}
void Session::consumed(StreamId stream, std::size_t count) {
    m_impl->consumed(stream, count);
}

} // namespace bulkhead::protocol

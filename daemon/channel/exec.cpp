// SPDX-License-Identifier: Apache-2.0
#include "channel/exec.hpp"

#include "protocol/agent.pb.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace bulkhead::channel {

using exec_stream::ClientEvent;
using exec_stream::ClientEventKind;
using exec_stream::ClientRequest;
using exec_stream::ClientRequestKind;
using protocol::StreamId;
using protocol::Violation;

namespace {

constexpr std::chrono::seconds kHangUpGrace{5};
constexpr std::chrono::seconds kKillGrace{5};
constexpr std::uint32_t kMaxSignal = 64;
constexpr std::uint32_t kMaxWindowSide = 65535;

struct SocketPair {
    UniqueFd ours;
    UniqueFd clients;
};

std::optional<SocketPair> makePair(int type) {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds.data()) != 0) {
        return std::nullopt;
    }
    return SocketPair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

/// Nothing, when the message would be too long.
std::optional<std::string> serialise(const agent::StreamHeader& header) {
    auto bytes = header.SerializeAsString();
    return bytes.size() <= protocol::kMaxMessage ? std::optional(std::move(bytes)) : std::nullopt;
}

Outbox boxWith(protocol::Session& session, StreamId stream, const agent::StreamHeader& header) {
    Outbox box(session, stream);
    box.push(header.SerializeAsString());
    return box;
}

Outbox stdioBox(protocol::Session& session, StreamId stream, std::uint64_t id) {
    agent::StreamHeader header;
    header.mutable_stdio()->set_exec_id(id);
    return boxWith(session, stream, header);
}

} // namespace

std::optional<Exec::Streams> Exec::openStreams(protocol::Session& session, bool hasErr) {
    const auto stdio = session.open();
    const auto err = hasErr ? session.open() : std::nullopt;
    const auto exec = session.open();
    if (stdio && exec && hasErr == err.has_value()) {
        return Streams{*stdio, err, *exec};
    }
    for (const auto& stream : {stdio, err, exec}) {
        if (stream) {
            session.resetStream(*stream);
        }
    }
    return std::nullopt;
}

tl::expected<Exec::Started, RefusedReason> Exec::start(protocol::Session& session, Poller& poller,
                                                       const agent::ExecRequest& request, const Options& options) {
    agent::StreamHeader header;
    *header.mutable_exec() = request;
    const auto message = serialise(header);
    if (!message) {
        return tl::unexpected(RefusedReason::BadRequest);
    }
    auto control = makePair(SOCK_SEQPACKET);
    auto input = makePair(SOCK_STREAM);
    auto output = makePair(SOCK_STREAM);
    auto error = makePair(SOCK_STREAM);
    const auto streams = control && input && output && error ? openStreams(session, !request.terminal()) : std::nullopt;
    if (!streams) {
        return tl::unexpected(RefusedReason::TooMany);
    }
    // One direction each: what the other one would carry has no meaning.
    ::shutdown(input->ours.get(), SHUT_WR);
    const std::uint64_t id = request.exec_id();
    Sockets ours{std::move(control->ours), std::move(input->ours), std::move(output->ours), std::move(error->ours)};
    std::unique_ptr<Exec> exec(new Exec(session, poller, id, *streams, std::move(ours), options));
    exec->m_commands.push(*message);
    return Started{std::move(exec), ClientEnds{std::move(control->clients), std::move(input->clients),
                                               std::move(output->clients), std::move(error->clients)}};
}

Exec::Exec(protocol::Session& session, Poller& poller, std::uint64_t id, const Streams& streams, Sockets sockets,
           const Options& options)
    : m_session(session)
    , m_id(id)
    , m_commands(session, streams.exec)
    , m_input(session, poller, stdioBox(session, streams.stdio, id), std::move(sockets.input))
    // Nobody reads the output any more: the guest is told, so that the program gets SIGPIPE as it would here.
    , m_output(session, poller, streams.stdio, std::move(sockets.output), [this] { m_outputReader = Reader::Gone; })
    , m_control(poller, std::move(sockets.control), EPOLLIN, [this](std::uint32_t events) { onControl(events); })
    // A terminal (which has no err stream) is hung up as a whole.
    , m_guestClosesOutput(options.guestClosesOutput && streams.err) {
    if (streams.err) {
        m_error.emplace(session, poller, *streams.err, std::move(sockets.error),
                        [this] { m_errorReader = Reader::Gone; });
        agent::StreamHeader header;
        header.mutable_err()->set_exec_id(id);
        m_errHeader.emplace(boxWith(session, *streams.err, header));
    }
    if (options.limit.count() > 0) {
        m_limit = Clock::now() + options.limit;
    }
}

Exec::~Exec() {
    abandonStreams();
}

void Exec::abandonStreams() {
    m_session.resetStream(m_output.stream());
    if (m_error) {
        m_session.resetStream(m_error->stream());
    }
    m_session.resetStream(m_commands.stream());
}

/// A reset overtakes everything, even the stream's own header; so it waits until the guest is known to have the
/// program.
void Exec::tellOfLostReaders() {
    if (m_outputReader == Reader::Gone && m_guestClosesOutput) {
        // Behind the request, in the same queue.
        m_outputReader = Reader::GoneAndTold;
        if (!m_end) {
            agent::ExecInput input;
            input.mutable_close_output();
            m_commands.push(input.SerializeAsString());
        }
    } else if (m_outputReader == Reader::Gone && m_isStarted) {
        m_outputReader = Reader::GoneAndTold;
        m_session.resetStream(m_output.stream());
        m_input.abandon();
    }
    if (m_errorReader == Reader::Gone && m_isStarted) {
        m_errorReader = Reader::GoneAndTold;
        m_session.resetStream(m_error->stream());
    }
}

bool Exec::owns(StreamId stream) const {
    return stream == m_commands.stream() || stream == m_output.stream() || (m_error && stream == m_error->stream());
}

// ---- from the guest ------------------------------------------------------------------------------------------------

Violation Exec::onData(StreamId stream, std::span<const std::byte> bytes) {
    if (stream == m_output.stream()) {
        m_output.take(bytes);
        return Violation::None;
    }
    if (stream != m_commands.stream()) {
        m_error->take(bytes);
        return Violation::None;
    }
    m_session.consumed(stream, bytes.size());
    if (!m_reader.feed(bytes)) {
        return Violation::MessageTooLarge;
    }
    while (auto message = m_reader.next()) {
        const auto news = checkExecEvent(GuestMessage(std::move(*message)));
        const Violation violation = news ? onNews(*news) : news.error();
        if (violation != Violation::None) {
            return violation;
        }
    }
    return m_reader.isBroken() ? Violation::MessageTooLarge : Violation::None;
}

Violation Exec::onNews(const ExecNews& news) {
    if (m_end) {
        return Violation::BadMessage;
    }
    if (const auto* const started = std::get_if<ProgramStarted>(&news)) {
        if (m_isStarted) {
            return Violation::BadMessage;
        }
        m_isStarted = true;
        tell({ClientEventKind::Started, started->pid, 0});
        return Violation::None;
    }
    const auto& end = std::get<ProgramEnded>(news);
    if (m_isStarted != (end.kind != ClientEventKind::Failed)) {
        return Violation::BadMessage;
    }
    m_end = Outcome{end.kind, end.a, end.b};
    m_output.finish();
    if (m_error) {
        m_error->finish();
    }
    return Violation::None;
}

Violation Exec::onPeerFinished(StreamId stream) {
    if (stream == m_output.stream()) {
        m_output.finish();
    } else if (stream != m_commands.stream()) {
        m_error->finish();
    } else if (!m_end) {
        return Violation::BadMessage;
    }
    return Violation::None;
}

Violation Exec::onStreamReset(StreamId stream) {
    if (stream == m_output.stream()) {
        m_input.abandon();
    } else if (stream == m_commands.stream()) {
        m_commands.drop();
    } else {
        m_errHeader->drop();
    }
    return onPeerFinished(stream);
}

// ---- from the client -----------------------------------------------------------------------------------------------

void Exec::onControl(std::uint32_t events) {
    if ((events & EPOLLIN) == 0) {
        hangUp(Clock::now());
        return;
    }
    ClientRequest request;
    const ssize_t size = ::recv(m_control.get(), &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    const bool isWhole = size == static_cast<ssize_t>(sizeof request);
    agent::ExecInput input;
    if (isWhole && request.kind == ClientRequestKind::Signal && request.a >= 1 && request.a <= kMaxSignal) {
        input.set_signal(request.a);
    } else if (isWhole && request.kind == ClientRequestKind::WindowSize && request.a <= kMaxWindowSide &&
               request.b <= kMaxWindowSide) {
        input.mutable_window()->set_rows(request.a);
        input.mutable_window()->set_columns(request.b);
    } else {
        // Closed, or not a client that keeps to the contract.
        hangUp(Clock::now());
        return;
    }
    if (!m_end) {
        m_commands.push(input.SerializeAsString());
    }
}

void Exec::sendSignal(std::uint32_t number) {
    agent::ExecInput input;
    input.set_signal(number);
    m_commands.push(input.SerializeAsString());
}

void Exec::tell(const Outcome& event) {
    if (m_control.isOpen()) {
        const ClientEvent record{event.kind, event.a, event.b};
        // A client gets a handful of records in all; one that has no room for them has gone astray.
        (void)::send(m_control.get(), &record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

void Exec::hangUp(TimePoint now) {
    m_control.close();
    m_output.discard();
    if (m_error) {
        m_error->discard();
    }
    m_input.close();
    if (!m_end && !m_isTimedOut) {
        sendSignal(SIGHUP);
        m_kill = now + kHangUpGrace;
    }
}

// ---- time ----------------------------------------------------------------------------------------------------------

bool Exec::isFlushed() const {
    return m_output.isFlushed() && (!m_error || m_error->isFlushed());
}

void Exec::checkClock(TimePoint now) {
    if (now >= std::min(m_limit, m_kill) && !m_end) {
        m_isTimedOut = m_isTimedOut || now >= m_limit;
        m_limit = TimePoint::max();
        m_kill = TimePoint::max();
        m_giveUp = now + kKillGrace;
        sendSignal(SIGKILL);
    }
}

std::optional<Exec::Outcome> Exec::turn(TimePoint now) {
    tellOfLostReaders();
    m_input.turn();
    const bool isErrAnnounced = !m_errHeader || m_errHeader->flush();
    // The guest must know the other streams before it starts the program.
    if (m_input.isAnnounced() && isErrAnnounced) {
        m_commands.flush();
    }
    // A client that sends commands faster than the guest takes them has to wait; its end is seen all the same.
    m_control.setEvents(m_commands.isEmpty() ? EPOLLIN : EPOLLERR);
    checkClock(now);
    // Once the end is known there is nothing to give up: a slow reader gets all that the program has written.
    if (m_end ? !isFlushed() : now < m_giveUp) {
        return std::nullopt;
    }
    Outcome outcome = m_end.value_or(Outcome{ClientEventKind::Signalled, SIGKILL, 0});
    if (m_isTimedOut) {
        outcome = {ClientEventKind::TimedOut, 0, 0};
    }
    tell(outcome);
    return outcome;
}

TimePoint Exec::nextDeadline() const {
    return m_end ? TimePoint::max() : std::min({m_limit, m_kill, m_giveUp});
}

void Exec::lose(LostReason reason, Violation violation) {
    // What could be written has been; the client learns that there may have been more.
    tell({ClientEventKind::Lost, static_cast<std::uint32_t>(reason), static_cast<std::int32_t>(violation)});
}

} // namespace bulkhead::channel

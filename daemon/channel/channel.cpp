// SPDX-License-Identifier: Apache-2.0
#include "channel/channel.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <cstring>
#include <sys/random.h>
#include <system_error>

namespace bulkhead::channel {

using protocol::StreamId;
using protocol::Violation;

namespace {

/// A booting guest reads nothing yet; the reset is sent again until it does.
constexpr std::chrono::seconds kResetInterval{1};
constexpr std::chrono::milliseconds kLastWords{500};

void fillRandom(std::span<std::byte> out) {
    // Never short for so few bytes, once the kernel's generator is up.
    if (::getrandom(out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
}

} // namespace

Channel::Channel(std::string instance, Descriptors descriptors, const protocol::Token& token)
    : m_instance(std::move(instance))
    , m_session(protocol::Role::Host, token, fillRandom, *this)
    , m_execs(m_session, m_poller,
              [this](std::uint64_t id, const Exec::Outcome& outcome) { onExecFinished(id, outcome); })
    , m_sessions(m_session, m_poller)
    , m_daemon(m_poller, std::move(descriptors.listener), *this)
    , m_transport(m_poller, std::move(descriptors.guest), m_session, [this](Transport::Ended ended) {
        lose(ended.violation == Violation::None ? LostReason::EndOfFile : LostReason::Violation, ended.violation,
             ended.errorNumber);
    }) {}

void Channel::run() {
    while (!m_isOver) {
        turn(Clock::now());
        if (!m_isOver) {
            m_poller.wait(nextDeadline());
        }
        if (m_violation != Violation::None) {
            lose(LostReason::Violation, m_violation, 0);
        }
    }
    m_daemon.sendRemaining(kLastWords);
}

void Channel::turn(TimePoint now) {
    if (!m_session.isReady() && now >= m_nextReset) {
        m_session.start();
        m_nextReset = now + kResetInterval;
    }
    // Once: whoever sends them can send many.
    if (!m_hasToldOfWrongAnswer && m_session.wrongAnswers() > 0) {
        m_hasToldOfWrongAnswer = true;
        log::warning("the guest's end answered with a wrong proof: an old answer, or not the guest",
                     {{"INSTANCE", m_instance}});
    }
    if (m_control) {
        watchGuest(now);
        m_control->turn(now);
    }
    m_execs.turn(now);
    watchWindows(now); // the daemon before the clients: one that leaves at the first window must find it told
    m_sessions.turn(now);
    m_transport.flush();
    // What has been written made room: clients that waited for it are read on.
    m_execs.turn(now);
    m_transport.flush();
}

void Channel::watchWindows(TimePoint now) {
    const WindowsState before = m_windows.state();
    const WindowsState state = m_windows.turn(m_sessions.isUp(), m_sessions.windows(), now);
    if (state != before) {
        FromChannel record;
        record.kind = FromChannelKind::Windows;
        record.a = static_cast<std::uint32_t>(state);
        m_daemon.send(record);
    }
    if (const WindowsOpen open = windowsOpen(); open != m_windowsOpen) {
        m_windowsOpen = open;
        FromChannel record;
        record.kind = FromChannelKind::WindowsOpen;
        record.a = static_cast<std::uint32_t>(open);
        m_daemon.send(record);
    }
}

WindowsOpen Channel::windowsOpen() const {
    return m_sessions.windows() > 0 ? WindowsOpen::Some : WindowsOpen::None;
}

/// Only noted: a paused guest is silent too, and what to do about it is for others to decide.
void Channel::watchGuest(TimePoint now) {
    if (m_transport.lastHeard() != m_lastHeard) {
        m_lastHeard = m_transport.lastHeard();
        m_liveness.heard(m_lastHeard);
    }
    for (;;) {
        switch (m_liveness.turn(now)) {
        case Liveness::Act::Nothing:
            return;
        case Liveness::Act::Ping:
            m_control->ping();
            break;
        case Liveness::Act::Silent:
            log::warning("the guest does not answer", {{"INSTANCE", m_instance}});
            break;
        case Liveness::Act::Back:
            log::notice("the guest answers again", {{"INSTANCE", m_instance}});
            break;
        }
    }
}

TimePoint Channel::nextDeadline() const {
    TimePoint next = std::min(
        {m_execs.nextDeadline(), m_sessions.nextDeadline(), m_windows.nextDeadline(), m_liveness.nextDeadline()});
    if (!m_session.isReady()) {
        next = std::min(next, m_nextReset);
    }
    return m_control ? std::min(next, m_control->nextDeadline()) : next;
}

void Channel::note(Violation violation) {
    if (m_violation == Violation::None) {
        m_violation = violation;
    }
}

void Channel::lose(LostReason reason, Violation violation, int errorNumber) {
    if (m_isOver) {
        return;
    }
    m_isOver = true;
    if (violation != Violation::None) {
        log::error("the guest broke the protocol; its channel ends",
                   {{"INSTANCE", m_instance}, {"VIOLATION", nameOf(violation)}});
    } else {
        log::notice("the guest is gone", {{"INSTANCE", m_instance}, {"ERRNO", std::to_string(errorNumber)}});
    }
    m_execs.lose(reason, violation);
    FromChannel record;
    record.kind = FromChannelKind::Lost;
    record.a = static_cast<std::uint32_t>(reason);
    record.b = static_cast<std::int64_t>(violation);
    m_daemon.send(record);
}

// ---- the session ---------------------------------------------------------------------------------------------------

void Channel::onReady() {
    const auto stream = m_session.open();
    if (stream) {
        m_control.emplace(m_session, *stream, static_cast<GuestControlEvents&>(*this));
    }
}

void Channel::onSessionReset() {}                    // a guest's event
void Channel::onStreamOpened(StreamId /*stream*/) {} // a guest's event
void Channel::onWritable(StreamId /*stream*/) {}     // turn() asks writable() instead, once for all

void Channel::onData(StreamId stream, std::span<const std::byte> bytes) {
    if (m_violation != Violation::None) {
        return;
    }
    if (m_sessions.owns(stream)) {
        note(m_sessions.onData(bytes));
    } else {
        note(m_control && m_control->stream() == stream ? m_control->onData(bytes) : m_execs.onData(stream, bytes));
    }
}

void Channel::onPeerFinished(StreamId stream) {
    if (m_sessions.owns(stream)) {
        m_sessions.onStreamEnded(Clock::now());
        return;
    }
    // The control stream lives as long as the session.
    note(m_control && m_control->stream() == stream ? Violation::BadMessage : m_execs.onPeerFinished(stream));
}

void Channel::onStreamReset(StreamId stream) {
    if (m_sessions.owns(stream)) {
        m_sessions.onStreamEnded(Clock::now());
        return;
    }
    note(m_control && m_control->stream() == stream ? Violation::BadMessage : m_execs.onStreamReset(stream));
}

// ---- the daemon ----------------------------------------------------------------------------------------------------

void Channel::onDaemonConnected() {
    FromChannel record;
    record.kind = FromChannelKind::Hello;
    record.a = isReady() ? 1 : 0;
    record.b = static_cast<std::int64_t>(m_execs.size());
    record.value[0] = static_cast<std::uint64_t>(m_windows.state());
    record.value[1] = static_cast<std::uint64_t>(windowsOpen());
    m_daemon.send(record);
    if (isReady()) {
        sendReady();
    }
}

void Channel::sendReady() {
    FromChannel record;
    record.kind = FromChannelKind::Ready;
    record.a = protocol::kProtocolVersion;
    m_daemon.send(record);
}

void Channel::onDaemonRecord(const ToChannel& record, std::string_view rest) {
    switch (record.kind) {
    case ToChannelKind::Exec:
        startExec(record, rest);
        return;
    case ToChannelKind::Status:
    case ToChannelKind::Shutdown:
    case ToChannelKind::SetClock:
    case ToChannelKind::Quiesce:
    case ToChannelKind::Rejuvenate:
    case ToChannelKind::Freeze:
    case ToChannelKind::Thaw:
    case ToChannelKind::SetHostname: {
        const auto refused = m_control ? m_control->request({.kind = record.kind,
                                                             .connection = m_daemon.connection(),
                                                             .request = record.request,
                                                             .argument = record.argument,
                                                             .payload = std::string(rest)})
                                       : std::optional(RefusedReason::NotReady);
        if (refused) {
            refuse(record.request, *refused);
        }
        return;
    }
    case ToChannelKind::OpenSession:
        openSession(record);
        return;
    case ToChannelKind::Close:
        log::info("the daemon ends the channel", {{"INSTANCE", m_instance}});
        m_isOver = true;
        return;
    }
    refuse(record.request, RefusedReason::BadRequest);
}

void Channel::refuse(std::uint64_t request, RefusedReason reason) {
    FromChannel record;
    record.kind = FromChannelKind::Refused;
    record.a = static_cast<std::uint32_t>(reason);
    record.request = request;
    m_daemon.send(record);
}

void Channel::openSession(const ToChannel& record) {
    auto client = isReady() ? m_sessions.connect() : tl::unexpected(RefusedReason::NotReady);
    if (!client) {
        refuse(record.request, client.error());
        return;
    }
    FromChannel opened;
    opened.kind = FromChannelKind::SessionOpened;
    opened.request = record.request;
    std::vector<UniqueFd> fds;
    fds.push_back(std::move(*client));
    m_daemon.send(opened, std::move(fds));
}

void Channel::startExec(const ToChannel& record, std::string_view request) {
    if (!isReady()) {
        refuse(record.request, RefusedReason::NotReady);
        return;
    }
    auto started = m_execs.start(request, record.argument);
    if (!started) {
        refuse(record.request, started.error());
        return;
    }
    m_windows.programStarted();
    FromChannel accepted;
    accepted.kind = FromChannelKind::ExecAccepted;
    accepted.request = record.request;
    accepted.value[0] = started->id;
    std::vector<UniqueFd> fds;
    std::ranges::move(started->ends, std::back_inserter(fds));
    m_daemon.send(accepted, std::move(fds));
}

void Channel::onExecFinished(std::uint64_t id, const Exec::Outcome& outcome) {
    FromChannel record;
    record.kind = FromChannelKind::ExecFinished;
    record.a = static_cast<std::uint32_t>(outcome.kind);
    record.b = outcome.a;
    record.value[0] = id;
    record.value[1] = m_execs.size();
    m_daemon.send(record);
}

// ---- the guest's control stream ------------------------------------------------------------------------------------

void Channel::onGuestHello(const GuestHello& hello) {
    m_execs.setGuestClosesOutput(std::ranges::find(hello.features, protocol::kFeatureCloseOutput) !=
                                 hello.features.end());
    m_sessions.setGuestHasSessions(std::ranges::find(hello.features, protocol::kFeatureSession) !=
                                   hello.features.end());
    log::info("the guest is ready", {{"INSTANCE", m_instance}, {"AGENT", hello.agentVersion}});
    sendReady();
}

/// A daemon that has connected anew did not ask.
void Channel::answer(const DaemonRequest& request, FromChannel record) {
    if (request.connection == m_daemon.connection()) {
        record.request = request.request;
        m_daemon.send(record);
    }
}

void Channel::onGuestStatus(const DaemonRequest& request, const GuestStatus& status) {
    FromChannel record;
    record.kind = FromChannelKind::Status;
    record.value = {status.uptimeMs,    status.memoryTotal,     status.memoryAvailable, status.processes,
                    status.systemTotal, status.systemAvailable, status.homeTotal,       status.homeAvailable};
    answer(request, record);
}

void Channel::onGuestDone(const DaemonRequest& request) {
    FromChannel record;
    record.kind = FromChannelKind::Done;
    answer(request, record);
}

void Channel::onGuestRefused(const DaemonRequest& request, RefusedReason reason, int errorNumber) {
    FromChannel record;
    record.kind = FromChannelKind::Refused;
    record.a = static_cast<std::uint32_t>(reason);
    record.b = errorNumber;
    answer(request, record);
}

} // namespace bulkhead::channel

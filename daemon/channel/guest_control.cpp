// SPDX-License-Identifier: Apache-2.0
#include "channel/guest_control.hpp"

#include "protocol/agent.pb.h"
#include "protocol/hostname.hpp"
#include "protocol/limits.hpp"
#include "protocol/time_zone.hpp"

#include <algorithm>

namespace bulkhead::channel {

using protocol::Violation;

namespace {
constexpr std::size_t kMaxUnanswered = 16;
constexpr std::chrono::seconds kAnswerTime{10};
/// Where the guest writes to its disks, or makes a file system larger, before it answers.
constexpr std::chrono::seconds kLongAnswerTime{60};

bool isLong(ToChannelKind kind) {
    return kind == ToChannelKind::Quiesce || kind == ToChannelKind::Rejuvenate || kind == ToChannelKind::Freeze ||
           kind == ToChannelKind::Thaw;
}

bool isOfSnapshots(ToChannelKind kind) {
    return kind == ToChannelKind::Freeze || kind == ToChannelKind::Thaw || kind == ToChannelKind::SetHostname;
}
} // namespace

GuestControl::GuestControl(protocol::Session& session, protocol::StreamId stream, GuestControlEvents& events)
    : m_session(session)
    , m_events(events)
    , m_outbox(session, stream) {
    agent::StreamHeader header;
    header.mutable_control()->set_version(protocol::kProtocolVersion);
    header.mutable_control()->add_features(protocol::kFeatureCloseOutput);
    m_outbox.push(header.SerializeAsString());
}

std::optional<RefusedReason> GuestControl::request(const DaemonRequest& request) {
    if (!m_isReady) {
        return RefusedReason::NotReady;
    }
    if (m_waiting.size() + (m_ping ? 1 : 0) >= kMaxUnanswered) {
        return RefusedReason::TooMany;
    }
    if (isOfSnapshots(request.kind) && !m_knowsSnapshots) {
        return RefusedReason::Unsupported;
    }
    agent::Request message;
    message.set_id(m_nextId);
    switch (request.kind) {
    case ToChannelKind::Status:
        message.mutable_status();
        break;
    case ToChannelKind::Shutdown:
        if (request.argument < 0 || request.argument > std::int64_t{UINT32_MAX}) {
            return RefusedReason::BadRequest;
        }
        message.mutable_shutdown()->set_grace_ms(static_cast<std::uint32_t>(request.argument));
        break;
    case ToChannelKind::SetClock:
        if (!request.payload.empty() && !protocol::isTimeZoneName(request.payload)) {
            return RefusedReason::BadRequest;
        }
        message.mutable_set_clock()->set_realtime_ns(request.argument);
        message.mutable_set_clock()->set_time_zone(request.payload);
        break;
    case ToChannelKind::Quiesce:
        message.mutable_quiesce();
        break;
    case ToChannelKind::Rejuvenate:
        if (!message.mutable_rejuvenate()->ParseFromString(request.payload)) {
            return RefusedReason::BadRequest;
        }
        break;
    case ToChannelKind::Freeze:
        if (request.argument != 0 && request.argument != 1) {
            return RefusedReason::BadRequest;
        }
        message.mutable_freeze()->set_of_memory(request.argument == 1);
        break;
    case ToChannelKind::Thaw:
        message.mutable_thaw()->set_realtime_ns(request.argument);
        break;
    case ToChannelKind::SetHostname:
        if (!protocol::isHostname(request.payload)) {
            return RefusedReason::BadRequest;
        }
        message.mutable_set_hostname()->set_name(request.payload);
        break;
    case ToChannelKind::Exec:
    case ToChannelKind::OpenSession:
    case ToChannelKind::Close:
        return RefusedReason::BadRequest;
    }
    Waiting waiting{request, Clock::now() + (isLong(request.kind) ? kLongAnswerTime : kAnswerTime)};
    waiting.request.payload.clear(); // random numbers that nobody needs again
    m_waiting.emplace(m_nextId++, std::move(waiting));
    m_outbox.push(message.SerializeAsString());
    return std::nullopt;
}

void GuestControl::ping() {
    if (!m_isReady || m_ping || m_waiting.size() >= kMaxUnanswered) {
        return;
    }
    m_ping = m_nextId++;
    agent::Request message;
    message.set_id(*m_ping);
    message.mutable_ping();
    m_outbox.push(message.SerializeAsString());
}

Violation GuestControl::onData(std::span<const std::byte> bytes) {
    m_session.consumed(stream(), bytes.size());
    if (!m_reader.feed(bytes)) {
        return Violation::MessageTooLarge;
    }
    while (auto message = m_reader.next()) {
        const auto reply = checkReply(GuestMessage(std::move(*message)));
        const Violation violation = reply ? onReply(*reply) : reply.error();
        if (violation != Violation::None) {
            return violation;
        }
    }
    return m_reader.isBroken() ? Violation::MessageTooLarge : Violation::None;
}

Violation GuestControl::onReply(const GuestReply& reply) {
    const auto* const hello = std::get_if<GuestHello>(&reply.body);
    if (!m_isReady || hello != nullptr) {
        if (m_isReady || hello == nullptr) {
            return Violation::BadMessage;
        }
        m_isReady = true;
        m_knowsSnapshots = std::ranges::find(hello->features, protocol::kFeatureSnapshot) != hello->features.end();
        m_events.onGuestHello(*hello);
        return Violation::None;
    }
    if (m_ping == reply.id) {
        m_ping.reset();
        return std::holds_alternative<GuestStatus>(reply.body) ? Violation::BadMessage : Violation::None;
    }
    const auto found = m_waiting.find(reply.id);
    if (found == m_waiting.end()) {
        return Violation::BadMessage;
    }
    const Waiting waiting = found->second;
    m_waiting.erase(found);
    const auto* const status = std::get_if<GuestStatus>(&reply.body);
    if (reply.errorNumber == 0 && (status != nullptr) != (waiting.request.kind == ToChannelKind::Status)) {
        return Violation::BadMessage;
    }
    if (waiting.isTimedOut) {
        return Violation::None;
    }
    if (reply.errorNumber != 0) {
        m_events.onGuestRefused(waiting.request, RefusedReason::GuestError, reply.errorNumber);
    } else if (status != nullptr) {
        m_events.onGuestStatus(waiting.request, *status);
    } else {
        m_events.onGuestDone(waiting.request);
    }
    return Violation::None;
}

void GuestControl::turn(TimePoint now) {
    m_outbox.flush();
    for (auto& [id, waiting] : m_waiting) {
        if (!waiting.isTimedOut && waiting.deadline <= now) {
            waiting.isTimedOut = true;
            m_events.onGuestRefused(waiting.request, RefusedReason::TimedOut, 0);
        }
    }
}

TimePoint GuestControl::nextDeadline() const {
    auto next = TimePoint::max();
    for (const auto& [id, waiting] : m_waiting) {
        if (!waiting.isTimedOut) {
            next = std::min(next, waiting.deadline);
        }
    }
    return next;
}

} // namespace bulkhead::channel

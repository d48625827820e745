// SPDX-License-Identifier: Apache-2.0
#include "agent/control.hpp"

#include "protocol/hostname.hpp"
#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace bulkhead::agent {
namespace {

constexpr std::array kFeatures{"exec",
                               "pty",
                               "status",
                               "shutdown",
                               "set-clock",
                               protocol::kFeatureCloseOutput,
                               protocol::kFeatureSession,
                               protocol::kFeatureImage,
                               protocol::kFeatureSnapshot};
constexpr std::size_t kMaxUnanswered = 16;
constexpr std::chrono::milliseconds kMaxGrace{60'000};

} // namespace

ControlStream::ControlStream(protocol::Session& session, protocol::StreamId stream, System& system, Picture& picture,
                             std::function<void(std::chrono::milliseconds)> onShutdown)
    : m_session(session)
    , m_system(system)
    , m_picture(picture)
    , m_writer(session, stream)
    , m_onShutdown(std::move(onShutdown)) {}

ControlStream::~ControlStream() {
    m_picture.forgetAnswer(m_session);
}

void ControlStream::greet() {
    Reply reply;
    Hello& hello = *reply.mutable_hello();
    hello.set_version(protocol::kProtocolVersion);
    hello.set_agent_version(BULKHEAD_VERSION);
    for (const char* const feature : kFeatures) {
        hello.add_features(feature);
    }
    m_writer.send(reply);
}

bool ControlStream::handle(const std::string& message) {
    Request request;
    if (!request.ParseFromString(message) || m_writer.unsent() >= kMaxUnanswered) {
        return false;
    }
    Reply reply;
    reply.set_id(request.id());
    reply.mutable_done();
    int why = 0;
    switch (request.kind_case()) {
    case Request::kStatus:
        *reply.mutable_status() = readStatus();
        break;
    case Request::kSetClock:
        why = setClock(request.set_clock());
        break;
    case Request::kQuiesce:
        why = m_picture.mayWrite() ? m_system.quiesce() : EAGAIN;
        break;
    case Request::kRejuvenate:
        why = m_picture.mayWrite() ? m_system.rejuvenate(request.rejuvenate()) : EAGAIN;
        break;
    case Request::kFreeze:
        freeze(request);
        return true;
    case Request::kThaw:
        why = thaw(request.thaw());
        break;
    case Request::kSetHostname:
        why = setHostname(request.set_hostname().name());
        break;
    case Request::kShutdown:
        m_picture.end(); // nothing ends that cannot write
        break;
    case Request::kPing:
        break;
    case Request::KIND_NOT_SET:
        return false;
    }
    answer(std::move(reply), why);
    if (request.has_shutdown()) {
        m_onShutdown(std::min(std::chrono::milliseconds(request.shutdown().grace_ms()), kMaxGrace));
    }
    return true;
}

void ControlStream::answer(Reply reply, int errorNumber) {
    if (errorNumber != 0) {
        reply.clear_kind(); // one or the other; the host takes both for a broken message
        reply.set_error_number(errorNumber);
    }
    m_writer.send(reply);
}

int ControlStream::setClock(const SetClockRequest& request) {
    const int why = m_system.setClock(request.realtime_ns());
    if (why != 0 || request.time_zone().empty()) {
        return why;
    }
    return m_picture.mayWrite() ? m_system.setTimeZone(request.time_zone()) : EAGAIN;
}

int ControlStream::setHostname(const std::string& name) {
    if (!protocol::isHostname(name)) {
        return EINVAL;
    }
    return m_picture.mayWrite() ? m_system.setHostname(name) : EAGAIN;
}

void ControlStream::freeze(const Request& request) {
    Reply reply;
    reply.set_id(request.id());
    reply.mutable_done();
    m_picture.begin(m_session, request.freeze().of_memory(),
                    [this, reply = std::move(reply)](int why) { answer(reply, why); });
}

int ControlStream::thaw(const ThawRequest& request) {
    // First the clock: what has waited to be written gets the right time.
    const bool isTime = request.realtime_ns() >= 0;
    if (isTime) {
        static_cast<void>(m_system.setClock(request.realtime_ns()));
    }
    m_picture.end();
    return isTime ? 0 : EINVAL;
}

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/control.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <array>
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
                               protocol::kFeatureImage};
constexpr std::size_t kMaxUnanswered = 16;
constexpr std::chrono::milliseconds kMaxGrace{60'000};

} // namespace

ControlStream::ControlStream(protocol::Session& session, protocol::StreamId stream, System& system,
                             std::function<void(std::chrono::milliseconds)> onShutdown)
    : m_system(system)
    , m_writer(session, stream)
    , m_onShutdown(std::move(onShutdown)) {}

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
    switch (request.kind_case()) {
    case Request::kStatus:
        *reply.mutable_status() = readStatus();
        break;
    case Request::kSetClock:
        reply.set_error_number(m_system.setClock(request.set_clock().realtime_ns()));
        if (const std::string& zone = request.set_clock().time_zone(); reply.error_number() == 0 && !zone.empty()) {
            reply.set_error_number(m_system.setTimeZone(zone));
        }
        break;
    case Request::kQuiesce:
        reply.set_error_number(m_system.quiesce());
        break;
    case Request::kRejuvenate:
        reply.set_error_number(m_system.rejuvenate(request.rejuvenate()));
        break;
    case Request::kPing:
    case Request::kShutdown:
        break;
    case Request::KIND_NOT_SET:
        return false;
    }
    if (reply.error_number() != 0) {
        reply.clear_kind(); // one or the other; the host takes both for a broken message
    }
    m_writer.send(reply);
    if (request.has_shutdown()) {
        m_onShutdown(std::min(std::chrono::milliseconds(request.shutdown().grace_ms()), kMaxGrace));
    }
    return true;
}

} // namespace bulkhead::agent

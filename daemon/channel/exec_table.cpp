// SPDX-License-Identifier: Apache-2.0
#include "channel/exec_table.hpp"

#include "protocol/agent.pb.h"

#include <algorithm>

namespace bulkhead::channel {

using protocol::StreamId;
using protocol::Violation;

namespace {

bool hasNul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

bool isAssignment(const std::string& text) {
    const auto equals = text.find('=');
    return equals != std::string::npos && equals > 0 && !hasNul(text);
}

bool isGood(const agent::ExecRequest& request) {
    const auto& argv = request.argv();
    const auto& environment = request.environment();
    return !argv.empty() && static_cast<std::size_t>(argv.size()) <= protocol::kMaxArguments && !argv.Get(0).empty() &&
           std::ranges::none_of(argv, hasNul) &&
           static_cast<std::size_t>(environment.size()) <= protocol::kMaxEnvironment &&
           std::ranges::all_of(environment, isAssignment) && !hasNul(request.cwd()) && !hasNul(request.user()) &&
           !hasNul(request.term());
}

} // namespace

ExecTable::ExecTable(protocol::Session& session, Poller& poller, OnFinished onFinished)
    : m_session(session)
    , m_poller(poller)
    , m_onFinished(std::move(onFinished)) {}

tl::expected<ExecTable::Accepted, RefusedReason> ExecTable::start(std::string_view request, std::int64_t limitMs) {
    agent::ExecRequest message;
    if (!message.ParseFromArray(request.data(), static_cast<int>(request.size())) || !isGood(message) || limitMs < 0 ||
        limitMs > exec_stream::kLongestTimeoutMs) {
        return tl::unexpected(RefusedReason::BadRequest);
    }
    if (m_execs.size() >= protocol::kMaxConcurrentExecs) {
        return tl::unexpected(RefusedReason::TooMany);
    }
    const std::uint64_t id = m_nextId++;
    message.set_exec_id(id);
    auto started = Exec::start(m_session, m_poller, message,
                               {.limit = std::chrono::milliseconds(limitMs), .guestClosesOutput = m_guestClosesOutput});
    if (!started) {
        return tl::unexpected(started.error());
    }
    m_execs.emplace(id, std::move(started->exec));
    return Accepted{id, std::move(started->ends)};
}

Exec* ExecTable::ownerOf(StreamId stream) {
    const auto found = std::ranges::find_if(m_execs, [&](const auto& entry) { return entry.second->owns(stream); });
    return found == m_execs.end() ? nullptr : found->second.get();
}

Violation ExecTable::onData(StreamId stream, std::span<const std::byte> bytes) {
    if (Exec* const exec = ownerOf(stream)) {
        return exec->onData(stream, bytes);
    }
    return Violation::None;
}

Violation ExecTable::onPeerFinished(StreamId stream) {
    if (Exec* const exec = ownerOf(stream)) {
        return exec->onPeerFinished(stream);
    }
    return Violation::None;
}

Violation ExecTable::onStreamReset(StreamId stream) {
    if (Exec* const exec = ownerOf(stream)) {
        return exec->onStreamReset(stream);
    }
    return Violation::None;
}

void ExecTable::turn(TimePoint now) {
    for (auto at = m_execs.begin(); at != m_execs.end();) {
        const auto outcome = at->second->turn(now);
        if (!outcome) {
            ++at;
            continue;
        }
        const std::uint64_t id = at->first;
        at = m_execs.erase(at);
        m_onFinished(id, *outcome);
    }
}

TimePoint ExecTable::nextDeadline() const {
    auto next = TimePoint::max();
    for (const auto& [id, exec] : m_execs) {
        next = std::min(next, exec->nextDeadline());
    }
    return next;
}

void ExecTable::lose(LostReason reason, Violation violation) {
    for (const auto& [id, exec] : m_execs) {
        exec->lose(reason, violation);
    }
    m_execs.clear();
}

} // namespace bulkhead::channel

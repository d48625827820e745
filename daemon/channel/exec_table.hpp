// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/exec.hpp"

#include <functional>
#include <map>
#include <string_view>

namespace bulkhead::channel {

/// The commands that run.
class ExecTable {
public:
    /// Called for each command that has ended; the table no longer holds it.
    using OnFinished = std::function<void(std::uint64_t id, const Exec::Outcome&)>;
    ExecTable(protocol::Session& session, Poller& poller, OnFinished onFinished);

    /// What the guest's hello says of ExecInput.close_output; for the commands that start from here on.
    void setGuestClosesOutput(bool can) { m_guestClosesOutput = can; }

    struct Accepted {
        std::uint64_t id;
        Exec::ClientEnds ends;
    };
    /// `request`: a serialised bulkhead.agent.ExecRequest of the daemon; its exec_id is replaced.
    tl::expected<Accepted, RefusedReason> start(std::string_view request, std::int64_t limitMs);

    [[nodiscard]] protocol::Violation onData(protocol::StreamId stream, std::span<const std::byte> bytes);
    [[nodiscard]] protocol::Violation onPeerFinished(protocol::StreamId stream);
    [[nodiscard]] protocol::Violation onStreamReset(protocol::StreamId stream);

    void turn(TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const;
    /// Tells all clients that the guest is gone, and forgets them.
    void lose(LostReason reason, protocol::Violation violation);
    [[nodiscard]] std::size_t size() const { return m_execs.size(); }

private:
    [[nodiscard]] Exec* ownerOf(protocol::StreamId stream);

    protocol::Session& m_session;
    Poller& m_poller;
    OnFinished m_onFinished;
    std::map<std::uint64_t, std::unique_ptr<Exec>> m_execs;
    std::uint64_t m_nextId = 1;
    bool m_guestClosesOutput = false;
};

} // namespace bulkhead::channel

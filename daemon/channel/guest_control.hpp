// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/outbox.hpp"
#include "channel/poller.hpp"
#include "channel/records.hpp"
#include "channel/validator.hpp"
#include "protocol/message_stream.hpp"

#include <map>
#include <optional>
#include <string>

namespace bulkhead::channel {

/// A request of the daemon, to be answered on the connection that asked.
struct DaemonRequest {
    ToChannelKind kind{};
    std::uint64_t connection = 0;
    std::uint64_t request = 0;
    std::int64_t argument = 0;
    /// Rejuvenate: the serialised message. SetClock: empty, or the name of a time zone. SetHostname: the name.
    std::string payload = {};
};

class GuestControlEvents {
public:
    virtual ~GuestControlEvents() = default;
    virtual void onGuestHello(const GuestHello& hello) = 0;
    virtual void onGuestStatus(const DaemonRequest& request, const GuestStatus& status) = 0;
    virtual void onGuestDone(const DaemonRequest& request) = 0;
    virtual void onGuestRefused(const DaemonRequest& request, RefusedReason reason, int errorNumber) = 0;
};

/// The control stream: hello, then requests and replies.
class GuestControl {
public:
    /// Says hello on `stream`, which has just been opened.
    GuestControl(protocol::Session& session, protocol::StreamId stream, GuestControlEvents& events);

    /// Sends a request to the guest. At most 16 are unanswered; none before the guest's hello, or when it does not
    /// take what was sent: TooMany or NotReady. Unsupported: the guest's agent does not know such a request. An answer
    /// that takes over ten seconds (a minute with those that write to the guest's disks) is told as TimedOut.
    std::optional<RefusedReason> request(const DaemonRequest& request);
    /// Asks for any answer at all; nothing is told of it but that the guest was heard. One at a time.
    void ping();
    [[nodiscard]] bool isReady() const { return m_isReady; }
    [[nodiscard]] protocol::StreamId stream() const { return m_outbox.stream(); }

    /// Bytes of the guest. Anything but None: the guest broke the protocol.
    [[nodiscard]] protocol::Violation onData(std::span<const std::byte> bytes);
    /// Sends what waits and times requests out.
    void turn(TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const;

private:
    [[nodiscard]] protocol::Violation onReply(const GuestReply& reply);

    struct Waiting {
        DaemonRequest request;
        TimePoint deadline;
        bool isTimedOut = false; ///< told; the guest may still answer
    };
    protocol::Session& m_session;
    GuestControlEvents& m_events;
    Outbox m_outbox;
    protocol::MessageReader m_reader;
    std::map<std::uint64_t, Waiting> m_waiting;
    std::optional<std::uint64_t> m_ping;
    std::uint64_t m_nextId = 1;
    bool m_isReady = false;
    bool m_knowsSnapshots = false; ///< the guest named that feature
};

} // namespace bulkhead::channel

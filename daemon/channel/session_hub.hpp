// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/outbox.hpp"
#include "channel/records.hpp"
#include "channel/session_client.hpp"
#include "channel/session_validator.hpp"
#include "protocol/message_stream.hpp"

#include <list>
#include <optional>

namespace bulkhead::channel {

/// The guest's graphical session: one stream on the guest's side, any number of clients (viewer, tray, command line) on
/// ours. Keeps the list of windows within the bounds of session_stream.hpp, whatever the guest sends and however fast.
class SessionHub {
public:
    static constexpr std::size_t kMostClients = 16;

    SessionHub(protocol::Session& session, Poller& poller);

    /// Whether the guest's session is there, as far as is known: it is asked for when the first client comes, and kept
    /// from then on, so that what its windows do is known while nobody looks.
    [[nodiscard]] bool isUp() const { return m_model.heads > 0; }
    [[nodiscard]] std::size_t windows() const { return m_model.windows.size(); }
    /// What the guest's hello says.
    void setGuestHasSessions(bool has) { m_guestHasSessions = has; }
    /// A new client's end. BadRequest: the guest's agent knows no sessions. TooMany.
    tl::expected<UniqueFd, RefusedReason> connect();

    [[nodiscard]] bool owns(protocol::StreamId stream) const { return m_stream && m_stream->id == stream; }
    /// Events of the stream. Anything but None: the guest broke the protocol.
    [[nodiscard]] protocol::Violation onData(std::span<const std::byte> bytes);
    /// The guest ended it: its session is down, and the stream is opened anew after a while.
    void onStreamEnded(TimePoint now);

    void turn(TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const;

private:
    struct Stream {
        Stream(protocol::Session& session, protocol::StreamId stream)
            : id(stream)
            , outbox(session, stream) {}
        protocol::StreamId id;
        Outbox outbox;
        protocol::MessageReader reader;
    };
    void openStream(TimePoint now);
    void setHeads(std::uint32_t heads);
    void onNews(const SessionNews& news);
    void onWindow(const session_stream::Event& event);
    void onCommand(SessionClient& client, const session_stream::Command& command);

    protocol::Session& m_session;
    Poller& m_poller;
    bool m_guestHasSessions = false;
    std::optional<Stream> m_stream;
    TimePoint m_reopen = TimePoint::max(); ///< when the stream is opened (again); max: not
    SessionModel m_model;
    std::uint64_t m_nextVersion = 1;
    std::vector<session_stream::Event> m_apps; ///< those of a list that is not complete yet
    std::list<SessionClient> m_clients;
};

} // namespace bulkhead::channel

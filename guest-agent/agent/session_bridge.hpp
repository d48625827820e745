// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/event_loop.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "protocol/message_stream.hpp"
#include "protocol/session.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::agent {

/// A socket that bulkhead-session connects to, for `owner` and root.
struct SessionSocket {
    UniqueFd listener;
    uid_t owner = 0;
};
/// Makes it at `path`, in place of what was there; the folder is made, too. `group` may connect as far as the file
/// system is concerned (0660); who it is, is asked at each connection.
Result<SessionSocket> listenForSession(const std::string& path, uid_t owner, gid_t group);

/// Passes whole messages between the host's stream of kind session and the program bulkhead-session, and reads none.
/// A program is taken from the socket only while the host has a stream: so it begins to speak when somebody listens,
/// and until then waits. With a new stream it has to connect anew, and says all again. Bounded: it takes from each side
/// only what the other takes. Lives as long as the loop, longer than any session.
class SessionBridge {
public:
    SessionBridge(EventLoop& loop, SessionSocket socket);
    ~SessionBridge();
    SessionBridge(const SessionBridge&) = delete;
    SessionBridge& operator=(const SessionBridge&) = delete;

    /// The host opened a stream. False: this session has one already. One of another session gives way: the host has
    /// begun anew.
    [[nodiscard]] bool attach(protocol::Session& session, protocol::StreamId stream);
    /// That stream, or all of that session, is gone.
    void detach(const protocol::Session& session);
    [[nodiscard]] bool isAttachedTo(const protocol::Session& session, protocol::StreamId stream) const {
        return m_session == &session && m_stream == stream;
    }
    /// Bytes of the host; consumed() is called here. False: they are no messages, and the stream is to be reset.
    [[nodiscard]] bool fromHost(std::span<const std::byte> bytes);
    /// The stream takes more again.
    void onWritable();

private:
    void acceptWaiting();
    void dropProgram();
    void onProgram(std::uint32_t events);
    void readProgram();
    void writeProgram();
    void tellHost(std::string_view message);
    void flushToHost();
    void giveCredit();
    void watchProgram();

    EventLoop& m_loop;
    SessionSocket m_socket;
    EventLoop::WatchId m_listenerWatch = 0;

    protocol::Session* m_session = nullptr; ///< none: the host has no stream
    protocol::StreamId m_stream = 0;
    protocol::MessageReader m_fromHost;
    std::vector<std::byte> m_toHost;
    std::size_t m_owed = 0; ///< bytes of the host that are not consumed yet

    UniqueFd m_program;
    EventLoop::WatchId m_programWatch = 0;
    protocol::MessageReader m_fromProgram;
    std::vector<std::byte> m_toProgram;
    bool m_hasSpoken = false; ///< the host has heard of this program
};

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "protocol/message_stream.hpp"
#include "protocol/session.pb.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::session {

/// The connection to the agent, which passes messages on to the host. It is made again when it was lost. Never blocks;
/// what waits to be sent is bounded, because callers ask hasRoom() first.
class AgentLink {
public:
    using Clock = std::chrono::steady_clock;

    /// `path`: the agent's Unix socket.
    explicit AgentLink(std::string path);

    [[nodiscard]] bool isConnected() const { return m_socket.isOpen(); }
    /// Connects when it is time to try. True: a new connection was made just now.
    bool connectIfDue(Clock::time_point now);
    /// When connectIfDue() should be called next; none while connected.
    [[nodiscard]] std::optional<Clock::time_point> nextTry() const;

    /// For poll(2): -1 without a connection.
    [[nodiscard]] int fd() const { return m_socket.get(); }
    [[nodiscard]] bool wantsToWrite() const { return !m_waiting.empty(); }
    /// Reads what is there; `onCommand` gets each whole message. Ends the connection when that was lost or broken.
    void receive(const std::function<void(const Command&)>& onCommand);
    /// Writes what the socket takes.
    void flush();

    /// True: another message may be sent.
    [[nodiscard]] bool hasRoom() const;
    void send(const Event& event);

private:
    void drop(const char* why);

    std::string m_path;
    UniqueFd m_socket;
    protocol::MessageReader m_reader;
    std::vector<std::byte> m_waiting;
    Clock::time_point m_nextTry{};
    std::chrono::milliseconds m_delay;
};

} // namespace bulkhead::session

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/agent.hpp"
#include "agent/detached.hpp"
#include "agent/event_loop.hpp"
#include "agent/link.hpp"
#include "agent/listener.hpp"
#include "agent/picture.hpp"
#include "agent/rate_limit.hpp"
#include "agent/session_bridge.hpp"
#include "agent/system.hpp"
#include "agent/transport.hpp"
#include "protocol/session.hpp"

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

namespace bulkhead::agent {

/// The host's connections. With a line that is there for good (virtio-serial) there is one session, for ever. With a
/// listener (vsock) anybody on the host can connect, so each connection has a session of its own, and only the one
/// that has proved the token last is live: it alone runs programs. Others wait, few and not for long, and touch the
/// live one in no way; the one that proves itself takes over, and the programs of the one before are hung up. (But see
/// Picture: in a machine that was begun from a picture they are detached.)
class Connections {
public:
    struct Services {
        EventLoop& loop;
        System& system;
        protocol::RandomSource random;
        std::function<void()> onReady;                       ///< each time that the host has proved itself
        std::function<void(const std::string& text)> report; ///< a line for the guest's log; already rate-limited
        protocol::Session::TokenSource tokenSource;          ///< may be none
        SessionBridge* bridge = nullptr;                     ///< none: there can be no graphical session
    };

    /// Connections that may wait to prove themselves at once.
    static constexpr std::size_t kMaxPending = 4;
    /// How long one may take.
    static constexpr std::chrono::seconds kHandshakeTime{5};
    /// What one may send until then (bytes). The host sends one reset each second and one proof: far less.
    static constexpr std::size_t kMaxUnproved = 1024;

    Connections(Services services, const protocol::Token& token);
    /// Hangs up every program.
    ~Connections();
    Connections(const Connections&) = delete;
    Connections& operator=(const Connections&) = delete;

    /// Not together with listen().
    void useLine(std::unique_ptr<Transport> line);
    void listen(Listener listener);

    /// One turn of reading and writing. True: there is more to do at once. To be called at the end of each round.
    bool pump();
    /// After SIGCHLD: tells the programs that have ended, and reaps what else has (orphans of the guest).
    void reap();
    /// The line has ended: nothing will ever come again.
    [[nodiscard]] bool isOver() const { return m_isOver; }
    /// All that the live session has to say has been handed to its transport.
    [[nodiscard]] bool isFlushed() const;
    /// The grace of a shutdown that the host asked for and that was answered.
    [[nodiscard]] std::optional<std::chrono::milliseconds> shutdownWanted() const { return m_shutdown; }
    /// Hangs up every program, detached ones too; file systems that stand still go on.
    void dropAll();

private:
    struct Peer;
    using PeerList = std::list<std::unique_ptr<Peer>>;

    std::unique_ptr<Peer> makePeer(std::unique_ptr<Transport> transport);
    void acceptWaiting();
    void admit(UniqueFd socket);
    bool makeRoom();
    bool pumpPending();
    bool pumpLive();
    void takeOver(std::unique_ptr<Peer> peer);
    void refuse(const std::string& why);

    Services m_services;
    protocol::Token m_token;
    std::optional<Listener> m_listener;
    EventLoop::WatchId m_listenerWatch = 0;
    EventLoop::TimerId m_acceptAgain = 0;
    RateLimit m_accepts;
    RateLimit m_reports;
    unsigned m_unreported = 0;
    Picture m_picture;
    DetachedPrograms m_detached;
    PeerList m_pending; ///< oldest first
    std::unique_ptr<Peer> m_live;
    std::optional<std::chrono::milliseconds> m_shutdown;
    bool m_isLine = false;
    bool m_isOver = false;
};

} // namespace bulkhead::agent

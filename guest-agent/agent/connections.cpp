// SPDX-License-Identifier: Apache-2.0
#include "agent/connections.hpp"

#include "agent/reaper.hpp"
#include "protocol/handshake.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace bulkhead::agent {
namespace {

using namespace std::chrono_literals;

/// The host makes one connection, and another when that was lost. Who makes more waits in the kernel's short queue.
constexpr unsigned kAcceptBurst = 8;
constexpr auto kAcceptInterval = 50ms;
constexpr unsigned kReportBurst = 8;
constexpr auto kReportInterval = 10s;

} // namespace

/// One connection with a session of its own. Until it has proved itself it has no streams, and so costs little.
struct Connections::Peer {
    Peer(Connections& owner, std::unique_ptr<Transport> transport)
        : loop(owner.m_services.loop)
        , agent({.loop = loop,
                 .system = owner.m_services.system,
                 .picture = owner.m_picture,
                 .detached = owner.m_detached,
                 .bridge = owner.m_services.bridge},
                owner.m_token, owner.m_services.random, owner.m_services.onReady)
        , link(loop, std::move(transport), agent.session(), [this] { hasEnded = true; }) {
        agent.session().setTokenSource(owner.m_services.tokenSource);
    }
    ~Peer() {
        loop.cancel(deadline);
        agent.dropAll();
        agent.tidy();
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    /// Why a connection that has not proved itself has to go; none: it may still do so.
    [[nodiscard]] std::optional<std::string> objection() {
        const auto& session = agent.session();
        if (session.violation() == protocol::Violation::BadProof) {
            return "wrong or replayed proof";
        }
        // A connection is fresh: the host's first bytes are its reset, and nothing of an earlier session is before it.
        if (!session.isChallenged() && link.received() >= protocol::handshake::kPacketSize) {
            return "wrong challenge";
        }
        if (link.received() > kMaxUnproved) {
            return "too many bytes before its proof";
        }
        if (isLate) {
            return "no proof in time";
        }
        if (hasEnded) {
            return "closed before its proof";
        }
        return std::nullopt;
    }

    EventLoop& loop;
    Agent agent;
    bool hasEnded = false;
    bool isLate = false;
    EventLoop::TimerId deadline = 0;
    Link link; // before the agent goes: it moves bytes into its session
};

Connections::Connections(Services services, const protocol::Token& token)
    : m_services(std::move(services))
    , m_token(token)
    , m_accepts(kAcceptBurst, kAcceptInterval)
    , m_reports(kReportBurst, kReportInterval)
    , m_picture(m_services.loop, m_services.system) {}

Connections::~Connections() {
    m_services.loop.cancel(m_acceptAgain);
    m_services.loop.unwatch(m_listenerWatch);
    ::explicit_bzero(m_token.data(), m_token.size());
}

std::unique_ptr<Connections::Peer> Connections::makePeer(std::unique_ptr<Transport> transport) {
    return std::make_unique<Peer>(*this, std::move(transport));
}

void Connections::useLine(std::unique_ptr<Transport> line) {
    m_isLine = true;
    m_live = makePeer(std::move(line));
    ::explicit_bzero(m_token.data(), m_token.size()); // no other session will need it
}

void Connections::listen(Listener listener) {
    m_listener = std::move(listener);
    m_listenerWatch =
        m_services.loop.watch(m_listener->socket.get(), EPOLLIN, [this](std::uint32_t) { acceptWaiting(); });
}

// ---- connections that have proved nothing --------------------------------------------------------------------------

void Connections::acceptWaiting() {
    // One too many is accepted only when it may be looked at: what waits in the kernel costs nothing.
    while (m_accepts.take()) {
        UniqueFd socket(::accept4(m_listener->socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket) {
            admit(std::move(socket));
        } else if (errno != ECONNABORTED && errno != EINTR) {
            if (errno == EAGAIN) {
                return;
            }
            refuse(std::string("cannot accept: ") + std::strerror(errno));
            break;
        }
    }
    m_services.loop.change(m_listenerWatch, 0);
    m_services.loop.cancel(m_acceptAgain);
    m_acceptAgain = m_services.loop.after(kAcceptInterval, [this] {
        m_acceptAgain = 0;
        m_services.loop.change(m_listenerWatch, EPOLLIN);
    });
}

void Connections::admit(UniqueFd socket) {
    if (!m_listener->isHost(socket.get())) {
        refuse("not from the host");
        return;
    }
    if (!makeRoom()) {
        refuse("too many at once");
        return;
    }
    auto& peer = *m_pending.emplace_back(makePeer(makeSocketTransport(std::move(socket))));
    peer.deadline = m_services.loop.after(kHandshakeTime, [&peer] { peer.isLate = true; });
}

/// The host's first bytes come at once and tell that it knows the token; so whoever has not sent such bytes yet has to
/// give way, and a crowd of strangers cannot shut the host out.
bool Connections::makeRoom() {
    if (m_pending.size() < kMaxPending) {
        return true;
    }
    const auto stranger = std::find_if(m_pending.begin(), m_pending.end(),
                                       [](const auto& peer) { return !peer->agent.session().isChallenged(); });
    if (stranger == m_pending.end()) {
        return false;
    }
    m_pending.erase(stranger);
    refuse("pushed out by a later one");
    return true;
}

void Connections::refuse(const std::string& why) {
    if (!m_reports.take()) {
        ++m_unreported;
        return;
    }
    std::string text = "refused a connection that did not prove itself: " + why;
    if (m_unreported > 0) {
        text += " (and " + std::to_string(std::exchange(m_unreported, 0)) + " more before it)";
    }
    m_services.report(text);
}

bool Connections::pumpPending() {
    bool more = false;
    for (auto at = m_pending.begin(); at != m_pending.end();) {
        Peer& peer = **at;
        more = peer.link.pump() || more;
        if (peer.agent.session().isReady()) {
            auto proved = std::move(*at);
            at = m_pending.erase(at);
            takeOver(std::move(proved));
            more = true;
        } else if (const auto why = peer.objection()) {
            refuse(*why);
            at = m_pending.erase(at);
        } else {
            ++at;
        }
    }
    return more;
}

// ---- the one that has ----------------------------------------------------------------------------------------------

void Connections::takeOver(std::unique_ptr<Peer> peer) {
    m_services.loop.cancel(std::exchange(peer->deadline, 0));
    m_live = std::move(peer); // the one before goes, with its programs
}

bool Connections::pumpLive() {
    if (!m_live) {
        return false;
    }
    m_live->agent.tidy();
    const bool more = m_live->link.pump();
    if (const auto grace = m_live->agent.shutdownWanted()) {
        m_shutdown = grace;
    }
    if (m_live->hasEnded) {
        m_isOver = m_isLine;
        m_live.reset();
        return false;
    }
    return more;
}

bool Connections::pump() {
    m_detached.tidy();
    const bool pendingHasMore = pumpPending();
    return pumpLive() || pendingHasMore;
}

void Connections::reap() {
    std::set<pid_t> leaders;
    if (m_live) {
        m_live->agent.lookForEnds(leaders);
    }
    m_detached.lookForEnds(leaders);
    reapAllBut(leaders);
}

bool Connections::isFlushed() const {
    return !m_live || m_live->link.isFlushed();
}

void Connections::dropAll() {
    m_picture.end();
    m_detached.hangUp();
    m_pending.clear();
    if (m_live) {
        m_live->agent.dropAll();
    }
}

} // namespace bulkhead::agent

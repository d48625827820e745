// SPDX-License-Identifier: Apache-2.0
#include "agent/session_bridge.hpp"

#include "protocol/session.pb.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {
namespace {

/// A session program that was ended and started again leaves connections behind that wait here.
constexpr int kBacklog = 8;
/// When so much waits for one side, nothing more is taken from the other (bytes).
constexpr std::size_t kMostWaiting = protocol::kMaxMessage;
constexpr std::size_t kBlock = std::size_t{16} * 1024;
constexpr int kBlocksPerTurn = 8;

bool mayConnect(int fd, uid_t owner) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == owner || peer.uid == 0);
}

} // namespace

Result<SessionSocket> listenForSession(const std::string& path, uid_t owner, gid_t group) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return fail(ErrorCode::InvalidArgument, "The path of the session's socket is too long");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    ::mkdir(path.substr(0, path.rfind('/')).c_str(), 0755);
    ::unlink(path.c_str()); // of an agent before this one
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {
        return failErrno("listen for the session at " + path, errno);
    }
    // An ordinary process cannot give it away, and need not.
    if ((::geteuid() == 0 && ::chown(path.c_str(), owner, group) != 0) || ::chmod(path.c_str(), 0660) != 0) {
        return failErrno("hand the session's socket " + path + " to its user", errno);
    }
    return SessionSocket{std::move(socket), owner};
}

SessionBridge::SessionBridge(EventLoop& loop, SessionSocket socket)
    : m_loop(loop)
    , m_socket(std::move(socket)) {}

SessionBridge::~SessionBridge() {
    m_loop.unwatch(m_programWatch);
    m_loop.unwatch(m_listenerWatch);
}

// ---- the host's stream ---------------------------------------------------------------------------------------------

bool SessionBridge::attach(protocol::Session& session, protocol::StreamId stream) {
    if (m_session == &session) {
        return false;
    }
    if (m_session != nullptr) {
        detach(*m_session);
    }
    m_session = &session;
    m_stream = stream;
    m_listenerWatch = m_loop.watch(m_socket.listener.get(), EPOLLIN, [this](std::uint32_t) { acceptWaiting(); });
    return true;
}

void SessionBridge::detach(const protocol::Session& session) {
    if (m_session != &session) {
        return;
    }
    m_session = nullptr; // nobody is told of the program's end, nor gets credit
    dropProgram();
    m_loop.unwatch(std::exchange(m_listenerWatch, 0));
    m_fromHost = {};
    m_toHost.clear();
    m_owed = 0;
}

bool SessionBridge::fromHost(std::span<const std::byte> bytes) {
    if (!m_fromHost.feed(bytes)) {
        return false;
    }
    m_owed += bytes.size();
    while (const auto message = m_fromHost.next()) {
        if (m_program) { // else nobody is there to obey
            const auto framed = protocol::frameMessage(*message);
            m_toProgram.insert(m_toProgram.end(), framed.begin(), framed.end());
        }
    }
    if (m_fromHost.isBroken()) {
        return false;
    }
    writeProgram();
    giveCredit();
    return true;
}

/// The host may send as much more as we took, but only when the program keeps up.
void SessionBridge::giveCredit() {
    if (m_session != nullptr && m_owed > 0 && m_toProgram.size() < kMostWaiting) {
        m_session->consumed(m_stream, std::exchange(m_owed, 0));
    }
}

void SessionBridge::tellHost(std::string_view message) {
    const auto framed = protocol::frameMessage(message);
    m_toHost.insert(m_toHost.end(), framed.begin(), framed.end());
}

void SessionBridge::flushToHost() {
    if (m_session != nullptr && !m_toHost.empty()) {
        const std::size_t taken = m_session->write(m_stream, m_toHost);
        m_toHost.erase(m_toHost.begin(), m_toHost.begin() + static_cast<std::ptrdiff_t>(taken));
    }
}

void SessionBridge::onWritable() {
    flushToHost();
    watchProgram();
}

// ---- the program ---------------------------------------------------------------------------------------------------

void SessionBridge::acceptWaiting() {
    for (;;) {
        UniqueFd program(::accept4(m_socket.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!program) {
            if (errno == EINTR || errno == ECONNABORTED) {
                continue;
            }
            return;
        }
        if (mayConnect(program.get(), m_socket.owner)) {
            dropProgram(); // a new one means that the old one is of no use any more
            m_program = std::move(program);
            watchProgram();
        }
    }
}

void SessionBridge::dropProgram() {
    m_loop.unwatch(std::exchange(m_programWatch, 0));
    m_program.reset();
    m_fromProgram = {};
    m_toProgram.clear();
    giveCredit();
    if (std::exchange(m_hasSpoken, false) && m_session != nullptr) {
        session::Event down;
        down.mutable_down();
        tellHost(down.SerializeAsString());
        flushToHost();
    }
}

void SessionBridge::watchProgram() {
    if (!m_program) {
        return;
    }
    std::uint32_t events = 0;
    if (m_toHost.size() < kMostWaiting) {
        events |= EPOLLIN;
    }
    if (!m_toProgram.empty()) {
        events |= EPOLLOUT;
    }
    if (events == 0) {
        // Not only masked: a hang-up is always told of, and would keep the loop spinning.
        m_loop.unwatch(std::exchange(m_programWatch, 0));
    } else if (m_programWatch != 0) {
        m_loop.change(m_programWatch, events);
    } else {
        m_programWatch = m_loop.watch(m_program.get(), events, [this](std::uint32_t happened) { onProgram(happened); });
    }
}

void SessionBridge::onProgram(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        writeProgram();
    }
    if (m_program && (events & ~std::uint32_t{EPOLLOUT}) != 0) {
        readProgram();
    }
    giveCredit();
    watchProgram();
}

void SessionBridge::readProgram() {
    std::array<std::byte, kBlock> block{};
    for (int i = 0; i < kBlocksPerTurn && m_program && m_toHost.size() < kMostWaiting; ++i) {
        const ssize_t count = ::read(m_program.get(), block.data(), block.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        bool isGood = count > 0 && m_fromProgram.feed(std::span(block).first(static_cast<std::size_t>(count)));
        while (isGood) {
            const auto message = m_fromProgram.next();
            if (!message) {
                break;
            }
            m_hasSpoken = true;
            tellHost(*message);
        }
        isGood = isGood && !m_fromProgram.isBroken();
        flushToHost();
        if (!isGood) {
            dropProgram(); // it ended, or speaks another language
        }
    }
}

void SessionBridge::writeProgram() {
    while (m_program && !m_toProgram.empty()) {
        const ssize_t count = ::send(m_program.get(), m_toProgram.data(), m_toProgram.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            break;
        }
        if (count < 0) {
            dropProgram();
            return;
        }
        m_toProgram.erase(m_toProgram.begin(), m_toProgram.begin() + count);
    }
    watchProgram();
}

} // namespace bulkhead::agent

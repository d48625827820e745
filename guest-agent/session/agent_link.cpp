// SPDX-License-Identifier: Apache-2.0
#include "session/agent_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::session {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstDelay = 100ms;
constexpr auto kLongestDelay = 2000ms;
/// Far more than a window's message; together with what the socket holds it bounds how far the host can be behind.
constexpr std::size_t kMostWaiting = std::size_t{32} * 1024;
/// Reads in a row before X gets its turn.
constexpr int kReadsPerTurn = 4;

} // namespace

AgentLink::AgentLink(std::string path)
    : m_path(std::move(path))
    , m_delay(kFirstDelay) {}

bool AgentLink::connectIfDue(Clock::time_point now) {
    if (m_socket || now < m_nextTry) {
        return false;
    }
    m_nextTry = now + m_delay;
    m_delay = std::min<std::chrono::milliseconds>(m_delay * 2, kLongestDelay);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (m_path.size() >= sizeof address.sun_path) {
        return false;
    }
    std::memcpy(address.sun_path, m_path.c_str(), m_path.size() + 1);
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return false;
    }
    m_socket = std::move(socket);
    m_delay = kFirstDelay;
    m_reader = {};
    m_waiting.clear();
    return true;
}

std::optional<AgentLink::Clock::time_point> AgentLink::nextTry() const {
    return m_socket ? std::nullopt : std::optional(m_nextTry);
}

void AgentLink::drop(const char* why) {
    if (why != nullptr) {
        static_cast<void>(std::fprintf(stderr, "bulkhead-session: lost the agent: %s\n", why));
    }
    m_socket.reset();
    m_waiting.clear();
    m_nextTry = Clock::now() + kFirstDelay; // the agent ends it when the host has no stream: it is there
}

void AgentLink::receive(const std::function<void(const Command&)>& onCommand) {
    std::array<std::byte, 16384> buffer{};
    for (int i = 0; i < kReadsPerTurn && m_socket; ++i) {
        const ssize_t count = ::read(m_socket.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        if (count <= 0) {
            drop(count < 0 ? std::strerror(errno) : nullptr);
            return;
        }
        if (!m_reader.feed(std::span(buffer).first(static_cast<std::size_t>(count)))) {
            drop("a message is too long");
            return;
        }
        while (const auto message = m_reader.next()) {
            Command command;
            if (!command.ParseFromString(*message)) {
                drop("a message makes no sense");
                return;
            }
            onCommand(command);
        }
        if (m_reader.isBroken()) {
            drop("a message is too long");
            return;
        }
    }
}

void AgentLink::flush() {
    while (m_socket && !m_waiting.empty()) {
        const ssize_t count = ::send(m_socket.get(), m_waiting.data(), m_waiting.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            return;
        }
        if (count < 0) {
            drop(std::strerror(errno));
            return;
        }
        m_waiting.erase(m_waiting.begin(), m_waiting.begin() + count);
    }
}

bool AgentLink::hasRoom() const {
    return m_socket && m_waiting.size() < kMostWaiting;
}

void AgentLink::send(const Event& event) {
    if (!m_socket) {
        return;
    }
    const auto framed = protocol::frameMessage(event.SerializeAsString());
    m_waiting.insert(m_waiting.end(), framed.begin(), framed.end());
}

} // namespace bulkhead::session

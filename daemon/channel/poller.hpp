// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

namespace bulkhead::channel {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// epoll with handlers. One thread. Level-triggered.
class Poller {
public:
    using WatchId = std::uint64_t;
    using Handler = std::function<void(std::uint32_t events)>;

    /// Throws std::system_error if the kernel gives no epoll descriptor.
    Poller();

    /// Watches `fd`, which stays the caller's and must be forgotten before it is closed. `events` 0 pauses the watch
    /// completely (a hang-up is not reported either); EPOLLERR alone waits for hang-ups and errors only.
    WatchId watch(int fd, std::uint32_t events, Handler handler);
    void setEvents(WatchId id, std::uint32_t events);
    /// Safe at any time, from within handlers too. Unknown ids are ignored.
    void forget(WatchId id) noexcept;

    /// Waits for events until `deadline` at most and runs their handlers.
    void wait(TimePoint deadline);

private:
    struct Watch {
        int fd;
        std::uint32_t events;
        std::shared_ptr<Handler> handler; ///< shared: a handler may forget itself
    };
    UniqueFd m_epoll;
    WatchId m_nextId = 1;
    std::unordered_map<WatchId, Watch> m_watches;
};

/// A descriptor with its watch: both end together.
class WatchedFd {
public:
    WatchedFd() = default;
    WatchedFd(Poller& poller, UniqueFd fd, std::uint32_t events, Poller::Handler handler)
        : m_poller(&poller)
        , m_fd(std::move(fd))
        , m_id(poller.watch(m_fd.get(), events, std::move(handler))) {}
    WatchedFd(WatchedFd&& other) noexcept
        : m_poller(other.m_poller)
        , m_fd(std::move(other.m_fd))
        , m_id(std::exchange(other.m_id, 0)) {}
    WatchedFd& operator=(WatchedFd&& other) noexcept {
        if (this != &other) {
            close();
            m_poller = other.m_poller;
            m_fd = std::move(other.m_fd);
            m_id = std::exchange(other.m_id, 0);
        }
        return *this;
    }
    WatchedFd(const WatchedFd&) = delete;
    WatchedFd& operator=(const WatchedFd&) = delete;
    ~WatchedFd() { close(); }

    [[nodiscard]] int get() const { return m_fd.get(); }
    [[nodiscard]] bool isOpen() const { return m_fd.isOpen(); }
    void setEvents(std::uint32_t events) {
        if (m_id != 0) {
            m_poller->setEvents(m_id, events);
        }
    }
    void close() noexcept {
        if (m_id != 0) {
            m_poller->forget(std::exchange(m_id, 0));
        }
        m_fd.reset();
    }

private:
    Poller* m_poller = nullptr;
    UniqueFd m_fd;
    Poller::WatchId m_id = 0;
};

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

namespace bulkhead::agent {

/// A single-threaded epoll loop. Handlers may watch, unwatch and add timers from inside; a handler that was removed
/// during a round is not called any more in that round.
class EventLoop {
public:
    using Clock = std::chrono::steady_clock;
    using Handler = std::function<void(std::uint32_t events)>;
    using WatchId = std::uint64_t;
    using TimerId = std::uint64_t;

    /// Throws std::system_error when the kernel gives no epoll descriptor.
    EventLoop();

    /// Calls `handler` with EPOLL* bits. `fd` stays the caller's and must be open until unwatch().
    WatchId watch(int fd, std::uint32_t events, Handler handler);
    /// Changes the bits that are waited for (EPOLLERR and EPOLLHUP always come).
    void change(WatchId id, std::uint32_t events);
    /// Unknown or 0: nothing happens.
    void unwatch(WatchId id);

    /// Calls `handler` once, after `delay`.
    TimerId after(Clock::duration delay, std::function<void()> handler);
    void cancel(TimerId id);

    /// Called at the end of each round, when all events of the round have been dealt with. True: the next round does
    /// not wait.
    void atEndOfRound(std::function<bool()> hook) { m_endOfRound = std::move(hook); }

    /// Runs until quit().
    void run();
    void quit() { m_running = false; }

private:
    struct Watch {
        int fd;
        Handler handler;
    };
    struct Timer {
        Clock::time_point due;
        std::function<void()> handler;
    };
    void runTimers();
    [[nodiscard]] int timeoutMs() const;

    UniqueFd m_epoll;
    std::map<WatchId, Watch> m_watches;
    std::map<TimerId, Timer> m_timers;
    std::function<bool()> m_endOfRound;
    std::uint64_t m_nextId = 1;
    bool m_running = false;
};

} // namespace bulkhead::agent

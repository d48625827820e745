// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace bulkhead::process {

/// One thread that waits for descriptors (epoll) and for one-shot timers, and calls back. All methods may be called
/// from any thread and from inside callbacks.
///
/// remove() and cancelTimer() from another thread return only when the callback neither runs nor will run again, so
/// that what it uses may be destroyed; so never call them while holding a lock that the callback takes. From inside a
/// callback (also from the very one) they return at once. Callbacks must not throw and should be short: they share the
/// thread.
class Poller {
public:
    /// `events`: EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR as they came.
    using Callback = std::function<void(std::uint32_t events)>;
    using TimerId = std::uint64_t;

    /// Starts the thread. Throws std::system_error when the kernel has no descriptors left.
    Poller();
    /// Ends the thread; pending timers and descriptors are forgotten. Not from a callback.
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    /// Watches `fd` (level-triggered; not owned: remove() it before it is closed). AlreadyExists when it is watched.
    Status add(int fd, std::uint32_t events, Callback callback);
    /// Changes what is waited for; 0 still reports EPOLLHUP and EPOLLERR. NotFound when it is not watched.
    Status modify(int fd, std::uint32_t events);
    /// Success when it is not watched.
    void remove(int fd);

    /// Calls once after `delay`. Ids are never used twice and never 0.
    TimerId startTimer(std::chrono::milliseconds delay, std::function<void()> callback);
    /// Success when it has fired already.
    void cancelTimer(TimerId id);
    /// Calls soon, on the thread; in the order of the calls.
    void post(std::function<void()> callback) { startTimer(std::chrono::milliseconds(0), std::move(callback)); }

    [[nodiscard]] bool isOwnThread() const { return std::this_thread::get_id() == m_thread.get_id(); }

private:
    using Clock = std::chrono::steady_clock;
    struct Watched {
        int fd = -1;
        Callback callback;
    };

    void loop();
    void dispatch(std::uint64_t id, std::uint32_t events);
    /// Runs what is due; gives the milliseconds until the next timer, -1 for none.
    int runTimers();
    void wake();
    /// Waits until the callback with this id does not run, unless it is us who runs it.
    void waitUntilIdle(std::unique_lock<std::mutex>& lock, std::uint64_t id);

    UniqueFd m_epoll;
    UniqueFd m_wake;
    std::mutex m_mutex;
    std::condition_variable m_idle;
    std::uint64_t m_nextId = 1; ///< for descriptors and timers; an event of a removed descriptor finds nothing
    std::uint64_t m_running = 0;
    bool m_isStopping = false;
    std::unordered_map<std::uint64_t, std::shared_ptr<Watched>> m_watched;
    std::unordered_map<int, std::uint64_t> m_idOfFd;
    std::map<std::pair<Clock::time_point, TimerId>, std::function<void()>> m_timers;
    std::unordered_map<TimerId, Clock::time_point> m_timerDue;
    std::thread m_thread; ///< last: it uses all of the above
};

} // namespace bulkhead::process

// SPDX-License-Identifier: Apache-2.0
#include "process/poller.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace bulkhead::process {

namespace {
constexpr std::uint64_t kWakeId = 0;
}

Poller::Poller()
    : m_epoll(::epoll_create1(EPOLL_CLOEXEC))
    , m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWakeId;
    if (!m_epoll || !m_wake || ::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, m_wake.get(), &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "cannot make a poller");
    }
    // The daemon's signals are for its main thread.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    // Under the lock, so that m_thread is set before the first callback asks for it.
    const std::lock_guard lock(m_mutex);
    m_thread = std::thread([this] { loop(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Poller::~Poller() {
    {
        const std::lock_guard lock(m_mutex);
        m_isStopping = true;
    }
    wake();
    m_thread.join();
}

Status Poller::add(int fd, std::uint32_t events, Callback callback) {
    const std::lock_guard lock(m_mutex);
    if (m_idOfFd.contains(fd)) {
        return fail(ErrorCode::AlreadyExists, "descriptor " + std::to_string(fd) + " is watched already");
    }
    const std::uint64_t id = m_nextId++;
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    if (::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return failErrno("cannot watch descriptor " + std::to_string(fd), errno);
    }
    m_watched.emplace(id, std::make_shared<Watched>(Watched{fd, std::move(callback)}));
    m_idOfFd.emplace(fd, id);
    return {};
}

Status Poller::modify(int fd, std::uint32_t events) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_idOfFd.find(fd);
    if (found == m_idOfFd.end()) {
        return fail(ErrorCode::NotFound, "descriptor " + std::to_string(fd) + " is not watched");
    }
    epoll_event event{};
    event.events = events;
    event.data.u64 = found->second;
    if (::epoll_ctl(m_epoll.get(), EPOLL_CTL_MOD, fd, &event) != 0) {
        return failErrno("cannot watch descriptor " + std::to_string(fd), errno);
    }
    return {};
}

void Poller::remove(int fd) {
    std::shared_ptr<Watched> ended; // destroyed after the lock is given back: what it captured may call us
    std::unique_lock lock(m_mutex);
    const auto found = m_idOfFd.find(fd);
    if (found == m_idOfFd.end()) {
        return;
    }
    const std::uint64_t id = found->second;
    ::epoll_ctl(m_epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
    m_idOfFd.erase(found);
    const auto entry = m_watched.find(id);
    ended = std::move(entry->second);
    m_watched.erase(entry);
    waitUntilIdle(lock, id);
    lock.unlock();
}

Poller::TimerId Poller::startTimer(std::chrono::milliseconds delay, std::function<void()> callback) {
    TimerId id = 0;
    {
        const std::lock_guard lock(m_mutex);
        id = m_nextId++;
        const auto due = Clock::now() + delay;
        m_timers.emplace(std::pair(due, id), std::move(callback));
        m_timerDue.emplace(id, due);
    }
    wake();
    return id;
}

void Poller::cancelTimer(TimerId id) {
    std::function<void()> ended;
    std::unique_lock lock(m_mutex);
    if (const auto found = m_timerDue.find(id); found != m_timerDue.end()) {
        const auto timer = m_timers.find({found->second, id});
        ended = std::move(timer->second);
        m_timers.erase(timer);
        m_timerDue.erase(found);
    }
    waitUntilIdle(lock, id);
    lock.unlock();
}

void Poller::waitUntilIdle(std::unique_lock<std::mutex>& lock, std::uint64_t id) {
    if (!isOwnThread()) {
        m_idle.wait(lock, [&] { return m_running != id; });
    }
}

void Poller::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(m_wake.get(), &one, sizeof(one));
}

void Poller::dispatch(std::uint64_t id, std::uint32_t events) {
    std::shared_ptr<Watched> watched;
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_watched.find(id);
        if (found == m_watched.end()) {
            return; // removed by an earlier callback of this round
        }
        watched = found->second;
        m_running = id;
    }
    watched->callback(events);
    // The copy goes before the callback counts as idle: its captures must not outlive remove().
    watched.reset();
    const std::lock_guard lock(m_mutex);
    m_running = 0;
    m_idle.notify_all();
}

int Poller::runTimers() {
    std::unique_lock lock(m_mutex);
    const auto now = Clock::now();
    while (!m_isStopping && !m_timers.empty() && m_timers.begin()->first.first <= now) {
        const TimerId id = m_timers.begin()->first.second;
        std::function<void()> callback = std::move(m_timers.begin()->second);
        m_timers.erase(m_timers.begin());
        m_timerDue.erase(id);
        m_running = id;
        lock.unlock();
        callback();
        callback = nullptr;
        lock.lock();
        m_running = 0;
        m_idle.notify_all();
    }
    if (m_timers.empty()) {
        return -1;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(m_timers.begin()->first.first - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void Poller::loop() {
    ::pthread_setname_np(::pthread_self(), "bulkhead-poll");
    std::array<epoll_event, 64> events{};
    while (true) {
        const int timeout = runTimers();
        {
            const std::lock_guard lock(m_mutex);
            if (m_isStopping) {
                return;
            }
        }
        const int count = ::epoll_wait(m_epoll.get(), events.data(), static_cast<int>(events.size()), timeout);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events.at(static_cast<std::size_t>(i));
            if (event.data.u64 == kWakeId) {
                std::uint64_t ignored = 0;
                [[maybe_unused]] const auto got = ::read(m_wake.get(), &ignored, sizeof(ignored));
            } else {
                dispatch(event.data.u64, event.events);
            }
        }
    }
}

} // namespace bulkhead::process

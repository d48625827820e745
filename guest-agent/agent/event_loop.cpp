// SPDX-License-Identifier: Apache-2.0
#include "agent/event_loop.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <system_error>
#include <utility>
#include <vector>

namespace bulkhead::agent {

EventLoop::EventLoop()
    : m_epoll(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!m_epoll) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
}

EventLoop::WatchId EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
    const WatchId id = m_nextId++;
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    if (::epoll_ctl(m_epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
    m_watches.emplace(id, Watch{fd, std::move(handler)});
    return id;
}

void EventLoop::change(WatchId id, std::uint32_t events) {
    const auto found = m_watches.find(id);
    if (found == m_watches.end()) {
        return;
    }
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    ::epoll_ctl(m_epoll.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void EventLoop::unwatch(WatchId id) {
    const auto found = m_watches.find(id);
    if (found == m_watches.end()) {
        return;
    }
    ::epoll_ctl(m_epoll.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    m_watches.erase(found);
}

EventLoop::TimerId EventLoop::after(Clock::duration delay, std::function<void()> handler) {
    const TimerId id = m_nextId++;
    m_timers.emplace(id, Timer{Clock::now() + delay, std::move(handler)});
    return id;
}

void EventLoop::cancel(TimerId id) {
    m_timers.erase(id);
}

int EventLoop::timeoutMs() const {
    if (m_timers.empty()) {
        return -1;
    }
    const auto next = std::min_element(m_timers.begin(), m_timers.end(),
                                       [](const auto& a, const auto& b) { return a.second.due < b.second.due; });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next->second.due - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void EventLoop::runTimers() {
    const auto now = Clock::now();
    std::vector<TimerId> due;
    for (const auto& [id, timer] : m_timers) {
        if (timer.due <= now) {
            due.push_back(id);
        }
    }
    for (const TimerId id : due) {
        // A handler that ran before may have cancelled this one.
        if (const auto node = m_timers.extract(id); !node.empty()) {
            node.mapped().handler();
        }
    }
}

void EventLoop::run() {
    m_running = true;
    bool again = m_endOfRound && m_endOfRound();
    while (m_running) {
        std::array<epoll_event, 64> events{};
        const int count =
            ::epoll_wait(m_epoll.get(), events.data(), static_cast<int>(events.size()), again ? 0 : timeoutMs());
        if (count < 0 && errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "epoll_wait");
        }
        for (int i = 0; i < count && m_running; ++i) {
            const auto& event = events.at(static_cast<std::size_t>(i));
            const auto found = m_watches.find(event.data.u64);
            if (found == m_watches.end()) {
                continue;
            }
            // A copy: the handler may remove its own watch.
            const Handler handler = found->second.handler;
            handler(event.events);
        }
        runTimers();
        again = m_running && m_endOfRound && m_endOfRound();
    }
}

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#include "channel/poller.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <sys/epoll.h>
#include <system_error>

namespace bulkhead::channel {

namespace {
void control(int epoll, int operation, int fd, std::uint32_t events, Poller::WatchId id) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    if (::epoll_ctl(epoll, operation, fd, &event) != 0) {
        throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
}
} // namespace

Poller::Poller()
    : m_epoll(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!m_epoll) {
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
}

Poller::WatchId Poller::watch(int fd, std::uint32_t events, Handler handler) {
    const WatchId id = m_nextId++;
    if (events != 0) {
        control(m_epoll.get(), EPOLL_CTL_ADD, fd, events, id);
    }
    m_watches.emplace(id, Watch{fd, events, std::make_shared<Handler>(std::move(handler))});
    return id;
}

void Poller::setEvents(WatchId id, std::uint32_t events) {
    const auto found = m_watches.find(id);
    if (found == m_watches.end() || found->second.events == events) {
        return;
    }
    Watch& watch = found->second;
    const int operation = watch.events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    control(m_epoll.get(), operation, watch.fd, events, id);
    watch.events = events;
}

void Poller::forget(WatchId id) noexcept {
    const auto found = m_watches.find(id);
    if (found == m_watches.end()) {
        return;
    }
    if (found->second.events != 0) {
        // Fails only for a descriptor that is not watched, and then all is well.
        (void)::epoll_ctl(m_epoll.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    }
    m_watches.erase(found);
}

void Poller::wait(TimePoint deadline) {
    using std::chrono::milliseconds;
    // Rounded up: waking too early would only spin.
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    const auto timeout = std::clamp(left, milliseconds{0}, milliseconds{60'000});
    std::array<epoll_event, 64> events{};
    const int count = ::epoll_wait(m_epoll.get(), events.data(), int{events.size()}, static_cast<int>(timeout.count()));
    if (count < 0) {
        if (errno == EINTR) {
            return;
        }
        throw std::system_error(errno, std::generic_category(), "epoll_wait");
    }
    for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(count))) {
        const auto found = m_watches.find(event.data.u64);
        if (found != m_watches.end()) {
            const auto handler = found->second.handler;
            (*handler)(event.events);
        }
    }
}

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#include "process/host_clock_watch.hpp"

#include "base/log.hpp"
#include "process/poller.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace bulkhead::process {
namespace {

/// Less is the time between two readings, on a busy machine.
constexpr std::chrono::milliseconds kLeastSleep{200};

std::chrono::nanoseconds read(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

SleepMeter::Reading readNow() {
    const auto boot = read(CLOCK_BOOTTIME);
    return {.boot = boot, .monotonic = read(CLOCK_MONOTONIC)};
}

} // namespace

std::chrono::milliseconds SleepMeter::slept(Reading now) {
    const auto difference = now.boot - now.monotonic;
    const auto slept = std::chrono::floor<std::chrono::milliseconds>(difference - m_before);
    if (slept < kLeastSleep) {
        return std::chrono::milliseconds(0); // and small ones add up until they are a sleep
    }
    m_before = difference;
    return slept;
}

HostClockWatch::HostClockWatch(Poller& poller, std::function<void(std::chrono::milliseconds slept)> changed)
    : m_poller(poller)
    , m_changed(std::move(changed))
    , m_timer(::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC))
    , m_meter(readNow()) {
    if (!m_timer || !arm()) {
        log::notice("jumps of the host's clock are not noticed", {{"ERROR", std::strerror(errno)}});
        m_timer.reset();
        return;
    }
    if (auto added = m_poller.add(m_timer.get(), EPOLLIN, [this](std::uint32_t) { onReadable(); }); !added) {
        log::notice("jumps of the host's clock are not noticed", {{"ERROR", added.error().message}});
        m_timer.reset();
    }
}

HostClockWatch::~HostClockWatch() {
    if (m_timer) {
        m_poller.remove(m_timer.get());
    }
}

/// A timer that never comes, and is cancelled by each jump.
bool HostClockWatch::arm() {
    itimerspec never{};
    never.it_value.tv_sec = std::numeric_limits<time_t>::max();
    const int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    // ECANCELED: the clock jumped just before, and the timer is armed all the same.
    return ::timerfd_settime(m_timer.get(), flags, &never, nullptr) == 0 || errno == ECANCELED;
}

void HostClockWatch::onReadable() {
    std::uint64_t expirations = 0;
    if (::read(m_timer.get(), &expirations, sizeof expirations) >= 0 || errno != ECANCELED) {
        return;
    }
    if (!arm()) {
        log::notice("jumps of the host's clock are no longer noticed", {{"ERROR", std::strerror(errno)}});
    }
    m_changed(m_meter.slept(readNow()));
}

} // namespace bulkhead::process

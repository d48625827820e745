// SPDX-License-Identifier: Apache-2.0
#include "dbus/loop.hpp"

#include "base/log.hpp"

#include <sdbus-c++/sdbus-c++.h>

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <systemd/sd-event.h>

namespace bulkhead::dbus {
namespace {

void check(int result, const char* what) {
    if (result < 0) {
        throw std::system_error(-result, std::generic_category(), what);
    }
}

} // namespace

/// The connection as an event source: what it wants is asked anew before each wait.
struct Loop::BusSource {
    sdbus::IConnection* connection = nullptr;
    sd_event_source* io = nullptr;
    sd_event_source* timer = nullptr;

    ~BusSource() {
        sd_event_source_unref(io);
        sd_event_source_unref(timer);
    }
    int prepare() const {
        const auto wanted = connection->getEventLoopPollData();
        std::uint32_t events = 0;
        events |= (wanted.events & POLLIN) != 0 ? std::uint32_t{EPOLLIN} : 0U;
        events |= (wanted.events & POLLOUT) != 0 ? std::uint32_t{EPOLLOUT} : 0U;
        check(sd_event_source_set_io_events(io, events), "bus events");
        const bool hasTimeout = wanted.timeout_usec != UINT64_MAX;
        if (hasTimeout) {
            check(sd_event_source_set_time(timer, wanted.timeout_usec), "bus time-out");
        }
        check(sd_event_source_set_enabled(timer, hasTimeout ? SD_EVENT_ONESHOT : SD_EVENT_OFF), "bus time-out");
        return 0;
    }
    int process() const {
        while (connection->processPendingRequest()) {
        }
        return 0;
    }
};

Loop::Loop()
    : m_event(nullptr, sd_event_unref)
    , m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    check(-::pthread_sigmask(SIG_BLOCK, &signals, nullptr), "signal mask");
    sd_event* event = nullptr;
    check(sd_event_new(&event), "sd_event_new");
    m_event.reset(event);
    // No callback: the default ends the loop.
    check(sd_event_add_signal(event, nullptr, SIGTERM, nullptr, nullptr), "SIGTERM");
    check(sd_event_add_signal(event, nullptr, SIGINT, nullptr, nullptr), "SIGINT");
    check(sd_event_add_io(
              event, nullptr, m_wake.get(), EPOLLIN,
              [](sd_event_source*, int, std::uint32_t, void* self) {
                  static_cast<Loop*>(self)->runPosted();
                  return 0;
              },
              this),
          "wake-up");
    sd_event_set_watchdog(event, 1); // a no-op unless the service manager asks for it
}

Loop::~Loop() = default;

void Loop::attach(sdbus::IConnection& connection) {
    m_bus = std::make_unique<BusSource>();
    m_bus->connection = &connection;
    const auto onTime = [](sd_event_source*, std::uint64_t, void* bus) {
        return static_cast<BusSource*>(bus)->process();
    };
    check(sd_event_add_io(
              m_event.get(), &m_bus->io, connection.getEventLoopPollData().fd, 0,
              [](sd_event_source*, int, std::uint32_t, void* bus) { return static_cast<BusSource*>(bus)->process(); },
              m_bus.get()),
          "bus");
    check(sd_event_add_time(m_event.get(), &m_bus->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, onTime, m_bus.get()),
          "bus timer");
    check(sd_event_source_set_prepare(
              m_bus->io, [](sd_event_source*, void* bus) { return static_cast<BusSource*>(bus)->prepare(); }),
          "bus prepare");
    // What arrived while the objects were registered synchronously is processed first.
    post([this] { m_bus->process(); });
}

void Loop::run() {
    check(sd_event_loop(m_event.get()), "event loop");
}

void Loop::quit() {
    sd_event_exit(m_event.get(), 0);
}

void Loop::post(std::function<void()> task) {
    {
        const std::lock_guard lock(m_mutex);
        m_tasks.push_back(std::move(task));
    }
    const std::uint64_t one = 1;
    // A full counter (2^64-2 pending wake-ups) cannot happen; any other failure means a closed descriptor, a fault.
    if (::write(m_wake.get(), &one, sizeof one) != sizeof one) {
        log::error("cannot wake the main loop");
    }
}

void Loop::runPosted() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = ::read(m_wake.get(), &count, sizeof count);
    std::deque<std::function<void()>> tasks;
    {
        const std::lock_guard lock(m_mutex);
        tasks.swap(m_tasks);
    }
    for (const auto& task : tasks) {
        task();
    }
}

} // namespace bulkhead::dbus

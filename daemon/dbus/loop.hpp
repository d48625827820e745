// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

struct sd_event;
namespace sdbus {
class IConnection;
}

namespace bulkhead::dbus {

/// The main thread's loop (sd-event): the bus, termination signals, and what other threads post. The sdbus-c++ 1.2
/// connection is touched from here only, since it cannot wake its loop for calls from elsewhere.
class Loop {
public:
    /// Blocks SIGTERM and SIGINT for the process, so construct it before any thread. Throws std::system_error.
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// `connection` must live until run() has returned.
    void attach(sdbus::IConnection& connection);
    /// Runs until SIGTERM, SIGINT or quit().
    void run();
    void quit();
    /// From any thread: runs `task` on the loop's thread, in order of posting.
    void post(std::function<void()> task);

private:
    struct BusSource;
    void runPosted();

    std::unique_ptr<sd_event, sd_event* (*)(sd_event*)> m_event;
    UniqueFd m_wake;
    std::mutex m_mutex;
    std::deque<std::function<void()>> m_tasks;
    std::unique_ptr<BusSource> m_bus;
};

} // namespace bulkhead::dbus

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/ports/host.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

namespace bulkhead::core {

/// Knows which emulators are alive: lets operations wait for an end and tells about unexpected ones. Thread-safe.
class EmulatorMonitor {
public:
    /// `onGone` is called from the watch's thread for every emulator that ends while watched: hand over and return.
    EmulatorMonitor(EmulatorWatch& watch, std::function<void(const InstanceId&)> onGone);

    Status begin(const InstanceId& instance, pid_t pid);
    /// True when the emulator ended within `timeout` (or was never watched).
    bool waitGone(const InstanceId& instance, std::chrono::milliseconds timeout);
    [[nodiscard]] bool isAlive(const InstanceId& instance);
    /// None: it has ended, or is not watched.
    [[nodiscard]] std::optional<pid_t> pidOf(const InstanceId& instance);
    void end(const InstanceId& instance);

private:
    void gone(const InstanceId& instance);

    EmulatorWatch& m_watch;
    std::function<void(const InstanceId&)> m_onGone;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::map<InstanceId, pid_t> m_alive;
};

} // namespace bulkhead::core

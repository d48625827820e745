// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"

#include <chrono>
#include <functional>

namespace bulkhead::process {

class Poller;

/// How long the host slept: the clock that counts sleep against the one that does not. Pure.
class SleepMeter {
public:
    /// Readings of CLOCK_BOOTTIME and CLOCK_MONOTONIC, taken together.
    struct Reading {
        std::chrono::nanoseconds boot{0};
        std::chrono::nanoseconds monotonic{0};
    };
    explicit SleepMeter(Reading start)
        : m_before(start.boot - start.monotonic) {}
    /// Since the last call; 0: it was awake. (The two are never read at the very same moment.)
    [[nodiscard]] std::chrono::milliseconds slept(Reading now);

private:
    std::chrono::nanoseconds m_before;
};

/// Tells when the host's clock jumped: the host woke from sleep, or somebody set its clock. The kernel says both, with
/// or without a session manager.
class HostClockWatch {
public:
    /// `changed` is called on the poller's thread with the time slept, 0 when the clock was only set. Where the kernel
    /// gives no watch it is never called, and the log says so. `poller` must outlive this.
    HostClockWatch(Poller& poller, std::function<void(std::chrono::milliseconds slept)> changed);
    ~HostClockWatch();
    HostClockWatch(const HostClockWatch&) = delete;
    HostClockWatch& operator=(const HostClockWatch&) = delete;

private:
    [[nodiscard]] bool arm();
    void onReadable();

    Poller& m_poller;
    std::function<void(std::chrono::milliseconds)> m_changed;
    UniqueFd m_timer;
    SleepMeter m_meter; ///< poller's thread only
};

} // namespace bulkhead::process

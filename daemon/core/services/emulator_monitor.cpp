// SPDX-License-Identifier: Apache-2.0
#include "core/services/emulator_monitor.hpp"

namespace bulkhead::core {

EmulatorMonitor::EmulatorMonitor(EmulatorWatch& watch, std::function<void(const InstanceId&)> onGone)
    : m_watch(watch)
    , m_onGone(std::move(onGone)) {}

Status EmulatorMonitor::begin(const InstanceId& instance, pid_t pid) {
    {
        const std::lock_guard lock(m_mutex);
        m_alive[instance] = pid;
    }
    auto watched = m_watch.watch(instance, pid, [this, instance] { gone(instance); });
    if (!watched) {
        end(instance);
    }
    return watched;
}

void EmulatorMonitor::gone(const InstanceId& instance) {
    {
        const std::lock_guard lock(m_mutex);
        m_alive.erase(instance);
    }
    m_changed.notify_all();
    m_onGone(instance);
}

bool EmulatorMonitor::waitGone(const InstanceId& instance, std::chrono::milliseconds timeout) {
    std::unique_lock lock(m_mutex);
    return m_changed.wait_for(lock, timeout, [&] { return !m_alive.contains(instance); });
}

bool EmulatorMonitor::isAlive(const InstanceId& instance) {
    const std::lock_guard lock(m_mutex);
    return m_alive.contains(instance);
}

std::optional<pid_t> EmulatorMonitor::pidOf(const InstanceId& instance) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_alive.find(instance);
    return found == m_alive.end() ? std::nullopt : std::optional(found->second);
}

void EmulatorMonitor::end(const InstanceId& instance) {
    m_watch.forget(instance);
    {
        const std::lock_guard lock(m_mutex);
        m_alive.erase(instance);
    }
    m_changed.notify_all();
}

} // namespace bulkhead::core

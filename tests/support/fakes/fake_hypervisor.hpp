// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/hypervisor.hpp"
#include "core/ports/memory_images.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace bulkhead::tests {

/// A hypervisor without emulators, which passes the same contract suite as the real one. Thread-safe.
class FakeHypervisor final : public core::Hypervisor {
public:
    Result<pid_t> start(const core::InstanceSpec& spec) override {
        const std::lock_guard lock(m_mutex);
        if (m_nextStartError) {
            return fail(*std::exchange(m_nextStartError, std::nullopt));
        }
        if (!m_isReachable) {
            return unreachable();
        }
        if (spec.id.isNull() || spec.memory == 0 || spec.vcpus == 0 || spec.system.layers.empty() ||
            spec.emulatorUid == 0) {
            return fail(ErrorCode::InvalidArgument, "cannot start an emulator: the spec is no guest");
        }
        if (m_running.contains(spec.id)) {
            return fail(ErrorCode::AlreadyExists, "the instance runs already");
        }
        const pid_t pid = m_nextPid++;
        // One with a memory image waits for Machines::load().
        m_running[spec.id] = {spec.id, pid, spec.memoryImage.has_value(), false};
        core::Machines::NewLayers& writes = m_active[spec.id];
        writes.system = spec.system.layers.front().path;
        if (spec.home) {
            writes.home = spec.home->layers.front().path;
        }
        m_started.push_back(spec);
        return pid;
    }
    Status destroy(const InstanceId& id) override {
        const std::lock_guard lock(m_mutex);
        if (!m_isReachable) {
            return unreachable();
        }
        if (m_running.erase(id) > 0) {
            m_destroyed.push_back(id);
        }
        return {};
    }
    Result<std::vector<core::ObservedInstance>> list() override {
        const std::lock_guard lock(m_mutex);
        if (!m_isReachable) {
            return unreachable();
        }
        std::vector<core::ObservedInstance> all;
        for (const auto& [id, instance] : m_running) {
            all.push_back(instance);
        }
        return all;
    }
    Status pause(const InstanceId& id) override {
        const std::lock_guard lock(m_mutex);
        if (!m_isReachable) {
            return unreachable();
        }
        const auto found = m_running.find(id);
        if (found == m_running.end()) {
            return fail(ErrorCode::NotFound, "cannot pause: no such instance");
        }
        found->second.isPaused = true;
        return {};
    }
    Status resume(const InstanceId& id) override {
        const std::lock_guard lock(m_mutex);
        if (!m_isReachable) {
            return unreachable();
        }
        const auto found = m_running.find(id);
        if (found == m_running.end()) {
            return fail(ErrorCode::NotFound, "cannot resume: no such instance");
        }
        found->second.isPaused = false;
        found->second.isPausedByFullDisk = false;
        return {};
    }

    // What tests do to it.

    /// libvirtd is gone, or back.
    void setReachable(bool isReachable) {
        const std::lock_guard lock(m_mutex);
        m_isReachable = isReachable;
    }
    void failNextStart(Error error) {
        const std::lock_guard lock(m_mutex);
        m_nextStartError = std::move(error);
    }
    /// The guest powers off or its emulator crashes.
    void endEmulator(const InstanceId& id) {
        const std::lock_guard lock(m_mutex);
        m_running.erase(id);
    }
    /// As a full disk or an admin does.
    void pauseFromOutside(const InstanceId& id, bool isByFullDisk = false) {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_running.find(id); found != m_running.end()) {
            found->second.isPaused = true;
            found->second.isPausedByFullDisk = isByFullDisk;
        }
    }
    /// An emulator that an earlier daemon left behind.
    void addRunning(core::ObservedInstance instance) {
        const std::lock_guard lock(m_mutex);
        m_running[instance.id] = instance;
    }

    /// What FakeMachines does to an emulator; NotFound when it does not run.
    Status setPaused(const InstanceId& id, bool isPaused) {
        const std::lock_guard lock(m_mutex);
        const auto found = m_running.find(id);
        if (found == m_running.end()) {
            return fail(ErrorCode::NotFound, "no such instance");
        }
        found->second.isPaused = isPaused;
        return {};
    }
    Status switchLayers(const InstanceId& id, const core::Machines::NewLayers& layers) {
        const std::lock_guard lock(m_mutex);
        if (!m_running.contains(id)) {
            return fail(ErrorCode::NotFound, "no such instance");
        }
        core::Machines::NewLayers& now = m_active[id];
        now.system = layers.system ? layers.system : now.system;
        now.home = layers.home ? layers.home : now.home;
        return {};
    }

    // What tests ask of it.

    /// What the emulator writes to.
    Result<core::Machines::NewLayers> activeLayers(const InstanceId& id) {
        const std::lock_guard lock(m_mutex);
        if (!m_running.contains(id)) {
            return fail(ErrorCode::NotFound, "no such instance");
        }
        return m_active[id];
    }
    bool isPaused(const InstanceId& id) {
        const std::lock_guard lock(m_mutex);
        const auto found = m_running.find(id);
        return found != m_running.end() && found->second.isPaused;
    }
    std::vector<core::InstanceSpec> started() {
        const std::lock_guard lock(m_mutex);
        return m_started;
    }
    std::vector<InstanceId> destroyed() {
        const std::lock_guard lock(m_mutex);
        return m_destroyed;
    }
    bool isRunning(const InstanceId& id) {
        const std::lock_guard lock(m_mutex);
        return m_running.contains(id);
    }

private:
    static tl::unexpected<Error> unreachable() {
        return fail(ErrorCode::Unavailable, "cannot reach the hypervisor; is libvirtd running?");
    }

    std::mutex m_mutex;
    std::map<InstanceId, core::ObservedInstance> m_running;
    std::map<InstanceId, core::Machines::NewLayers> m_active;
    std::vector<core::InstanceSpec> m_started;
    std::vector<InstanceId> m_destroyed;
    std::optional<Error> m_nextStartError;
    bool m_isReachable = true;
    pid_t m_nextPid = 1'000'000'000; ///< above the kernel's largest, so that no real process is ever meant
};

} // namespace bulkhead::tests

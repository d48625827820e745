// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/hypervisor.hpp"
#include "core/ports/image_store.hpp"
#include "core/services/domain_table.hpp"

#include <chrono>
#include <functional>
#include <utility>

namespace bulkhead::core {

class WorkerPool;

/// What happens to guests when the host's disk is full: QEMU pauses a guest whose write finds no space. This looks
/// every few seconds, says so in the domain's state, and lets the guest go on when there is room again. Thread-safe.
class SpaceGuard {
public:
    /// Free share of the disk, in percent, below which no guest goes on.
    static constexpr unsigned kFreePercent = 5;

    SpaceGuard(Hypervisor& hypervisor, InstanceStore& store, DomainTable& table, WorkerPool& workers,
               std::chrono::milliseconds interval = std::chrono::seconds(5));
    /// Called for each guest that goes on, from the pool's thread. To be set before begin().
    void whenResumed(std::function<void(const InstanceId&)> told) { m_whenResumed = std::move(told); }
    /// Looks now and from now on.
    void begin();
    /// One look.
    void look();

private:
    [[nodiscard]] bool hasRoom();

    Hypervisor& m_hypervisor;
    InstanceStore& m_store;
    DomainTable& m_table;
    WorkerPool& m_workers;
    std::chrono::milliseconds m_interval;
    std::function<void(const InstanceId&)> m_whenResumed;
};

} // namespace bulkhead::core

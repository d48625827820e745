// SPDX-License-Identifier: Apache-2.0
#include "core/services/space_guard.hpp"

#include "base/log.hpp"
#include "core/services/worker_pool.hpp"

#include <algorithm>

namespace bulkhead::core {

SpaceGuard::SpaceGuard(Hypervisor& hypervisor, InstanceStore& store, DomainTable& table, WorkerPool& workers,
                       std::chrono::milliseconds interval)
    : m_hypervisor(hypervisor)
    , m_store(store)
    , m_table(table)
    , m_workers(workers)
    , m_interval(interval) {}

void SpaceGuard::begin() {
    look();
    m_workers.postAfter(m_interval, [this] { begin(); });
}

bool SpaceGuard::hasRoom() {
    const auto space = m_store.space();
    return space && space->available >= space->total / 100 * kFreePercent;
}

void SpaceGuard::look() {
    const auto domains = m_table.all();
    const bool isAnyUp = std::any_of(domains.begin(), domains.end(), [](const DomainEntry& entry) {
        return entry.state == DomainState::Running || entry.state == DomainState::Paused;
    });
    if (!isAnyUp) {
        return;
    }
    const auto observed = m_hypervisor.list();
    if (!observed) {
        return; // libvirtd is away: the next look, or the reconciler
    }
    for (const auto& instance : *observed) {
        const auto entry = m_table.findByInstance(instance.id);
        if (!entry || !instance.isPausedByFullDisk) {
            continue;
        }
        const DomainId& id = entry->record.id;
        if (entry->state == DomainState::Running) {
            log::warning("a guest is paused: the host's disk is full", {{"DOMAIN", id.text()}});
            [[maybe_unused]] const auto told = m_table.apply(
                id, DomainEvent::PauseRequested, "the host's disk is full; it goes on by itself when there is room");
        }
        if (!hasRoom()) {
            continue;
        }
        // Nobody takes a picture of it meanwhile, and its owner has not paused it since; else the next look.
        const auto operation = m_table.beginOperation(id, "going on");
        const auto now = operation ? m_table.find(id) : std::nullopt;
        if (!now || !now->instance || now->instance->id != instance.id || now->instance->isHeld) {
            continue;
        }
        if (auto resumed = m_hypervisor.resume(instance.id); !resumed) {
            log::error("a guest that a full disk had paused cannot go on",
                       {{"DOMAIN", id.text()}, {"ERROR", resumed.error().message}});
            continue;
        }
        log::notice("a guest goes on: there is room on the disk again", {{"DOMAIN", id.text()}});
        [[maybe_unused]] const auto told = m_table.apply(id, DomainEvent::ResumeRequested);
        if (m_whenResumed) {
            m_whenResumed(instance.id);
        }
    }
}

} // namespace bulkhead::core

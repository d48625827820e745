// SPDX-License-Identifier: Apache-2.0
#include "core/services/idle_suspender.hpp"

#include "base/log.hpp"
#include "core/services/snapshot_service.hpp"
#include "core/services/worker_pool.hpp"

namespace bulkhead::core {

void IdleSuspender::begin(WorkerPool& workers) {
    look();
    workers.postAfter(m_patience.look, [this, &workers] { begin(workers); });
}

void IdleSuspender::look() {
    const TimePoint now = m_now();
    {
        const std::lock_guard lock(m_mutex);
        for (auto& [instance, watched] : m_watched) {
            watched.isSeen = false;
        }
    }
    for (const DomainEntry& entry : m_table.all()) {
        if (entry.record.kind == DomainKind::App && entry.state == DomainState::Running && entry.instance) {
            lookAt(entry, now);
        }
    }
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_watched, [](const auto& one) { return !one.second.isSeen; });
}

void IdleSuspender::lookAt(const DomainEntry& entry, TimePoint now) {
    const GuestUse use = m_uses.useOf(entry.instance->id);
    {
        const std::lock_guard lock(m_mutex);
        const auto [known, isNew] = m_watched.try_emplace(entry.instance->id);
        Watched& watched = known->second;
        watched.isSeen = true;
        if (isNew || use.isInUse || use.count != watched.uses) {
            watched.usedAt = now;
            watched.uses = use.count;
            return;
        }
        const auto& limit = entry.definition.idleSuspend;
        if (!limit || now - watched.usedAt < *limit || now < watched.notBefore) {
            return;
        }
        watched.notBefore = now + m_patience.retry;
    }
    suspend(entry, use.count);
}

void IdleSuspender::suspend(const DomainEntry& entry, std::uint64_t uses) {
    const DomainId& id = entry.record.id;
    const InstanceId& instance = entry.instance->id;
    const auto isUnused = [this, instance, uses](const DomainEntry& now) {
        const GuestUse use = m_uses.useOf(instance);
        return now.instance && now.instance->id == instance && now.definition.idleSuspend && !use.isInUse &&
               use.count == uses;
    };
    log::notice("a domain that nobody uses is being suspended", {{"DOMAIN", id.text()}});
    const auto job = m_snapshots.suspendIdle(
        id, isUnused, [this, id, instance](const Status& suspended) { onEnded(id, instance, suspended); });
    if (!job) {
        onEnded(id, instance, fail(job.error()));
    }
}

/// A failure is told once: it is the same one, most likely, each time that it is tried again.
void IdleSuspender::onEnded(const DomainId& domain, const InstanceId& instance, const Status& suspended) {
    const std::lock_guard lock(m_mutex);
    const auto known = m_watched.find(instance);
    const bool isFirst = known != m_watched.end() && !known->second.hasFailed;
    if (known != m_watched.end()) {
        known->second.hasFailed = !suspended;
    }
    if (!suspended && isFirst) {
        log::warning("a domain that nobody uses could not be suspended; it runs on, and it is tried again",
                     {{"DOMAIN", domain.text()}, {"ERROR", suspended.error().message}});
    }
}

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#include "core/services/guest_clocks.hpp"

#include "base/log.hpp"
#include "core/services/worker_pool.hpp"

namespace bulkhead::core {

void GuestClocks::setAllSoon() {
    for (const auto& entry : m_table.all()) {
        if (entry.state == DomainState::Running && entry.instance) {
            setSoon(entry.instance->id);
        }
    }
}

void GuestClocks::setSoon(const InstanceId& instance) {
    unsigned call = 0;
    {
        const std::lock_guard lock(m_mutex);
        call = ++m_calls;
        m_last[instance] = call;
    }
    m_workers.post([this, instance, call] { set(instance, call, 1); });
}

void GuestClocks::set(const InstanceId& instance, unsigned call, unsigned tries) {
    const auto entry = m_table.findByInstance(instance);
    if (!isLast(instance, call) || !entry || entry->state != DomainState::Running) {
        forget(instance, call); // a later call does it, or whoever lets it go on
        return;
    }
    const auto asked = std::chrono::steady_clock::now();
    const auto done = m_clocks.setToHosts(instance);
    const bool isStale = std::chrono::steady_clock::now() - asked > m_patience.fresh;
    if (done && !isStale) {
        if (tries > 1) {
            log::notice("a guest's clock is set", {{"DOMAIN", entry->record.id.text()}});
        }
        forget(instance, call);
        return;
    }
    const bool mayHelp = done || done.error().code == ErrorCode::TimedOut || done.error().code == ErrorCode::Busy ||
                         done.error().code == ErrorCode::LimitExceeded;
    const bool isOver = !mayHelp || tries >= m_patience.tries;
    if (!done && (tries == 1 || isOver)) {
        log::warning(isOver ? "a guest's clock could not be set" : "a guest's clock could not be set yet",
                     {{"DOMAIN", entry->record.id.text()}, {"ERROR", done.error().message}});
    }
    if (isOver) {
        forget(instance, call);
        return;
    }
    m_workers.postAfter(done ? std::chrono::milliseconds(0) : m_patience.retry,
                        [this, instance, call, tries] { set(instance, call, tries + 1); });
}

bool GuestClocks::isLast(const InstanceId& instance, unsigned call) {
    const std::lock_guard lock(m_mutex);
    const auto last = m_last.find(instance);
    return last != m_last.end() && last->second == call;
}

void GuestClocks::forget(const InstanceId& instance, unsigned call) {
    const std::lock_guard lock(m_mutex);
    if (const auto last = m_last.find(instance); last != m_last.end() && last->second == call) {
        m_last.erase(last);
    }
}

} // namespace bulkhead::core

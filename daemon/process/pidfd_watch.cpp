// SPDX-License-Identifier: Apache-2.0
#include "process/pidfd_watch.hpp"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bulkhead::process {

PidfdWatch::~PidfdWatch() {
    std::map<InstanceId, std::shared_ptr<Entry>> entries;
    {
        const std::lock_guard lock(m_mutex);
        entries.swap(m_entries);
    }
    for (const auto& [instance, entry] : entries) {
        stop(*entry);
    }
}

Status PidfdWatch::watch(const InstanceId& instance, pid_t pid, std::function<void()> gone) {
    if (pid <= 0) {
        return fail(ErrorCode::InvalidArgument, "cannot watch the emulator of " + instance.text() + ": " +
                                                    std::to_string(pid) + " is no process number");
    }
    forget(instance);
    const auto entry = std::make_shared<Entry>();
    entry->gone = std::move(gone);
    entry->pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    if (!entry->pidfd && errno != ESRCH) {
        return failErrno("cannot watch the emulator of " + instance.text(), errno);
    }
    // The entry's address tells this watch from a later one of the same instance.
    const auto tellOnce = [this, instance, which = entry.get()] { tell(instance, which); };
    const std::lock_guard lock(m_mutex);
    if (entry->pidfd) {
        const Status added = m_poller.add(entry->pidfd.get(), EPOLLIN, [tellOnce](std::uint32_t) { tellOnce(); });
        if (!added) {
            return added;
        }
    } else {
        entry->timer = m_poller.startTimer(std::chrono::milliseconds(0), tellOnce);
    }
    m_entries[instance] = entry;
    return {};
}

void PidfdWatch::forget(const InstanceId& instance) {
    std::shared_ptr<Entry> entry;
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_entries.find(instance);
        if (found == m_entries.end()) {
            return;
        }
        entry = std::move(found->second);
        m_entries.erase(found);
    }
    stop(*entry);
}

void PidfdWatch::tell(const InstanceId& instance, const Entry* which) {
    std::shared_ptr<Entry> entry;
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_entries.find(instance);
        if (found == m_entries.end() || found->second.get() != which) {
            return; // forgotten at this very moment
        }
        entry = found->second;
    }
    // The entry stays in its place meanwhile, so that forget() has something to wait for.
    entry->gone();
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_entries.find(instance);
        if (found == m_entries.end() || found->second != entry) {
            return; // forgotten or replaced, and so stopped, meanwhile
        }
        m_entries.erase(found);
    }
    stop(*entry);
}

void PidfdWatch::stop(const Entry& entry) {
    if (entry.pidfd) {
        m_poller.remove(entry.pidfd.get());
    } else {
        m_poller.cancelTimer(entry.timer);
    }
}

} // namespace bulkhead::process

// SPDX-License-Identifier: Apache-2.0
#include "process/child_reaper.hpp"

#include <sys/epoll.h>

namespace bulkhead::process {

ChildReaper::~ChildReaper() {
    std::map<pid_t, std::shared_ptr<Entry>> children;
    {
        const std::lock_guard lock(m_mutex);
        children.swap(m_children);
    }
    for (const auto& [pid, entry] : children) {
        m_poller.remove(entry->child.pidfd.get());
    }
}

Status ChildReaper::keep(Child child, Ended ended) {
    const pid_t pid = child.pid;
    const std::lock_guard lock(m_mutex);
    const auto entry = std::make_shared<Entry>(Entry{std::move(child), std::move(ended)});
    // The callback waits for the lock, so it finds the entry.
    const Status added = m_poller.add(entry->child.pidfd.get(), EPOLLIN, [this, pid](std::uint32_t) { collect(pid); });
    if (added) {
        m_children[pid] = entry;
    }
    return added;
}

void ChildReaper::collect(pid_t pid) {
    std::shared_ptr<Entry> entry;
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_children.find(pid);
        if (found == m_children.end()) {
            return;
        }
        entry = std::move(found->second);
        // Before the process is collected: from then on its number may come back with a new child.
        m_children.erase(found);
    }
    m_poller.remove(entry->child.pidfd.get());
    const auto status = reap(entry->child);
    if (entry->ended) {
        entry->ended(status ? *status : std::nullopt);
    }
}

} // namespace bulkhead::process

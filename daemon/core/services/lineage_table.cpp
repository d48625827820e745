// SPDX-License-Identifier: Apache-2.0
#include "core/services/lineage_table.hpp"

#include "base/log.hpp"

#include <algorithm>

namespace bulkhead::core {

void LineageTable::load(Lineage lineage) {
    const std::lock_guard lock(m_mutex);
    m_lineage = std::move(lineage);
}

Lineage LineageTable::all() const {
    const std::lock_guard lock(m_mutex);
    return m_lineage;
}

std::optional<SnapshotRecord> LineageTable::find(const SnapshotId& id) const {
    const std::lock_guard lock(m_mutex);
    const SnapshotRecord* const found = findPresent(m_lineage, id);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<SnapshotId> LineageTable::parentOf(const SnapshotId& id) const {
    const std::lock_guard lock(m_mutex);
    const auto found = std::find_if(m_lineage.begin(), m_lineage.end(),
                                    [&](const SnapshotRecord& record) { return record.id == id; });
    return found == m_lineage.end() ? std::nullopt : found->parent;
}

Status LineageTable::keep(const SnapshotRecord& record) {
    if (auto saved = m_ports.repository.save(record); !saved) {
        return saved;
    }
    const std::lock_guard lock(m_mutex);
    const auto found = std::find_if(m_lineage.begin(), m_lineage.end(),
                                    [&](const SnapshotRecord& other) { return other.id == record.id; });
    if (found == m_lineage.end()) {
        m_lineage.push_back(record);
    } else {
        *found = record;
    }
    return {};
}

Status LineageTable::save(const SnapshotRecord& record) {
    auto kept = keep(record);
    if (kept) {
        m_ports.events.snapshotsChanged(record.domain);
    }
    return kept;
}

Status LineageTable::update(const SnapshotRecord& record) {
    // The manifest first: a database that was lost is made again from it.
    return m_ports.store.update(record).and_then([&] { return save(record); });
}

Status LineageTable::setHead(const DomainId& domain, const DomainHead& head) {
    if (auto set = m_ports.repository.setHead(domain, head); !set) {
        return set;
    }
    m_domains.setHead(domain, head);
    m_ports.events.snapshotsChanged(domain);
    return {};
}

Status LineageTable::remove(const std::vector<SnapshotId>& nodes) {
    const Lineage before = all();
    for (const DomainEntry& entry : m_domains.all()) {
        const auto head = headAfter(before, entry.head.node, nodes);
        if (head != entry.head.node) {
            if (auto moved = setHead(entry.record.id, {head, false}); !moved) {
                return moved;
            }
        }
    }
    for (const SnapshotRecord& record : before) {
        const bool goes = std::find(nodes.begin(), nodes.end(), record.id) != nodes.end();
        SnapshotRecord changed = record;
        if (goes) {
            changed.phase = SnapshotRecord::Phase::Removed;
        } else {
            changed.parent = headAfter(before, record.parent, nodes);
        }
        if (changed != record) {
            // A manifest that still says otherwise is put right when its node is erased. What is being made, or was
            // given up, has none.
            const auto said = record.phase == SnapshotRecord::Phase::Present ? m_ports.store.update(changed) : Status{};
            if (auto kept = said.and_then([&] { return keep(changed); }); !kept) {
                return kept;
            }
            m_ports.events.snapshotsChanged(record.domain);
        }
    }
    return collect();
}

Status LineageTable::abandon(const SnapshotId& id) {
    Lineage lineage = all();
    const auto found =
        std::find_if(lineage.begin(), lineage.end(), [&](const SnapshotRecord& record) { return record.id == id; });
    if (found == lineage.end()) {
        return {};
    }
    found->phase = SnapshotRecord::Phase::Removed;
    // It has a manifest if it was as good as done.
    if (auto said = m_ports.store.update(*found); !said && said.error().code != ErrorCode::NotFound) {
        log::warning("the manifest of a snapshot that was given up cannot be changed",
                     {{"SNAPSHOT", id.text()}, {"ERROR", said.error().message}});
    }
    return keep(*found).and_then([&] { return collect(); });
}

Result<std::vector<std::filesystem::path>> LineageTable::filesInUse() const {
    return m_ports.store.filesInUse().map([&](std::vector<std::filesystem::path>&& files) {
        const auto needed = filesNeeded(all());
        files.insert(files.end(), needed.begin(), needed.end());
        return files;
    });
}

Status LineageTable::collect() {
    const std::lock_guard lock(m_collecting);
    // Asked before the lineage is: what is begun after that has its record already.
    const auto inUse = m_ports.store.filesInUse();
    if (!inUse) {
        return fail(inUse.error());
    }
    auto waiting = nodesToErase(all(), *inUse, m_folder);
    Status first;
    // What lies above another goes before it; which does is for the store to say.
    for (bool isProgress = true; isProgress && !waiting.empty();) {
        isProgress = false;
        first = {};
        for (auto id = waiting.begin(); id != waiting.end();) {
            const auto erased = m_ports.store.remove(*id).and_then([&] { return m_ports.repository.remove(*id); });
            if (!erased) {
                first = first ? Status(fail(erased.error())) : first;
                ++id;
                continue;
            }
            isProgress = true;
            const std::lock_guard change(m_mutex);
            std::erase_if(m_lineage, [&](const SnapshotRecord& record) { return record.id == *id; });
            id = waiting.erase(id);
        }
    }
    for (const SnapshotId& id : waiting) {
        log::warning("a removed snapshot cannot be erased yet",
                     {{"SNAPSHOT", id.text()}, {"ERROR", first ? std::string() : first.error().message}});
    }
    return first;
}

} // namespace bulkhead::core

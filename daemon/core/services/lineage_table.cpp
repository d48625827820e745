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
    const auto found =
        std::find_if(m_lineage.begin(), m_lineage.end(), [&](const SnapshotRecord& record) { return record.id == id; });
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

Result<SnapshotRecord> LineageTable::edit(const SnapshotId& id, const std::function<void(SnapshotRecord&)>& act) {
    const std::lock_guard lock(m_editing);
    auto record = find(id);
    if (!record) {
        return fail(ErrorCode::NotFound, "no such snapshot");
    }
    act(*record);
    // The manifest first: a database that was lost is made again from it.
    return m_ports.store.update(*record).and_then([&] { return save(*record); }).map([&] { return *record; });
}

Status LineageTable::setHead(const DomainId& domain, const DomainHead& head) {
    if (auto set = m_ports.repository.setHead(domain, head); !set) {
        return set;
    }
    m_domains.setHead(domain, head);
    m_ports.events.snapshotsChanged(domain);
    return {};
}

Status LineageTable::hide(const std::vector<SnapshotId>& nodes) {
    const Lineage before = all();
    std::vector<std::pair<DomainId, DomainHead>> moved;
    for (const DomainEntry& entry : m_domains.withDeleted()) {
        const auto head = headAfter(before, entry.head.node, nodes);
        if (head == entry.head.node) {
            continue;
        }
        if (auto set = setHead(entry.record.id, {head, false}); !set) {
            restoreHeads(moved);
            return set;
        }
        moved.emplace_back(entry.record.id, entry.head);
    }
    if (auto hidden = markRemoved(before, nodes); !hidden) {
        restoreHeads(moved);
        return hidden;
    }
    return {};
}

/// Children first, so that wherever this ends no node has a parent that is gone.
Status LineageTable::markRemoved(const Lineage& before, const std::vector<SnapshotId>& nodes) {
    for (const SnapshotRecord& record : before) {
        const bool goes = std::find(nodes.begin(), nodes.end(), record.id) != nodes.end();
        const auto parent = headAfter(before, record.parent, nodes);
        if (goes || parent == record.parent) {
            continue;
        }
        if (auto changed = change(record.id, [&](SnapshotRecord& child) { child.parent = parent; }); !changed) {
            return changed;
        }
    }
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
        const auto isHidden = change(*id, [](SnapshotRecord& node) { node.phase = SnapshotRecord::Phase::Removed; });
        if (!isHidden) {
            return isHidden;
        }
    }
    return {};
}

/// The database first: a node whose removal was not finished must not be lost with it. A manifest that says otherwise
/// is put right by the reconciler, or goes with its node.
Status LineageTable::change(const SnapshotId& id, const std::function<void(SnapshotRecord&)>& act) {
    const std::lock_guard lock(m_editing);
    Lineage now = all();
    const auto found =
        std::find_if(now.begin(), now.end(), [&](const SnapshotRecord& record) { return record.id == id; });
    if (found == now.end()) {
        return {};
    }
    // What is being made, or was given up, has no manifest.
    const bool hasManifest = found->phase == SnapshotRecord::Phase::Present;
    act(*found);
    if (auto kept = keep(*found); !kept) {
        return kept;
    }
    m_ports.events.snapshotsChanged(found->domain);
    if (auto said = hasManifest ? m_ports.store.update(*found) : Status{}; !said) {
        log::warning("the manifest of a snapshot says something else than the database",
                     {{"SNAPSHOT", id.text()}, {"ERROR", said.error().message}});
    }
    return {};
}

/// Nothing was removed, so domains stand where they stood. What cannot be put back is found out by the reconciler.
void LineageTable::restoreHeads(const std::vector<std::pair<DomainId, DomainHead>>& moved) {
    for (const auto& [domain, head] : moved) {
        if (!head.node || !find(*head.node)) {
            continue;
        }
        if (auto back = setHead(domain, head); !back) {
            log::warning("a domain's place in its lineage cannot be put back",
                         {{"DOMAIN", domain.text()}, {"ERROR", back.error().message}});
        }
    }
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
    const Lineage now = all();
    if (std::none_of(now.begin(), now.end(),
                     [](const SnapshotRecord& record) { return record.phase == SnapshotRecord::Phase::Removed; })) {
        return {};
    }
    // Asked before the lineage is: what is begun after that has its record already.
    const auto inUse = m_ports.store.filesInUse();
    if (!inUse) {
        return fail(inUse.error());
    }
    auto waiting = nodesToErase(all(), *inUse, m_folder);
    for (const SnapshotRecord& record : now) {
        const bool isErased = std::find(waiting.begin(), waiting.end(), record.id) != waiting.end();
        if (record.phase != SnapshotRecord::Phase::Removed || !record.memory || isErased) {
            continue;
        }
        // Others lie above its disks; nobody begins in its memory any more.
        if (auto dropped = m_ports.store.dropMemory(record.id); !dropped) {
            log::warning("the memory of a removed snapshot cannot be erased yet",
                         {{"SNAPSHOT", record.id.text()}, {"ERROR", dropped.error().message}});
        }
    }
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

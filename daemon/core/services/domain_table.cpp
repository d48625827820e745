// SPDX-License-Identifier: Apache-2.0
#include "core/services/domain_table.hpp"

#include <algorithm>

namespace bulkhead::core {

DomainDefinition definitionOfDisposable(const DomainRecord& record) {
    return {.name = record.name,
            .owner = record.owner,
            .kind = record.kind,
            .templateName = record.templateName,
            .size = record.size};
}

DomainTable::Operation::~Operation() {
    if (m_table == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(m_table->m_mutex);
        m_table->m_operations.erase(m_id);
    }
    m_table->m_operationEnded.notify_all();
}

Status DomainTable::insert(DomainEntry entry) {
    {
        const std::lock_guard lock(m_mutex);
        for (const auto& [id, other] : m_entries) {
            if (other.record.owner == entry.record.owner && other.record.name == entry.record.name) {
                return fail(ErrorCode::AlreadyExists, "a domain named \"" + entry.record.name + "\" exists already");
            }
        }
        m_entries.emplace(entry.record.id, std::move(entry));
    }
    m_events.domainsChanged();
    return {};
}

void DomainTable::erase(const DomainId& id) {
    {
        const std::lock_guard lock(m_mutex);
        m_entries.erase(id);
    }
    m_events.domainsChanged();
}

std::optional<DomainEntry> DomainTable::find(const DomainId& id) const {
    const std::lock_guard lock(m_mutex);
    const auto found = m_entries.find(id);
    return found == m_entries.end() ? std::nullopt : std::optional(found->second);
}

std::optional<DomainEntry> DomainTable::findByName(uid_t owner, const std::string& name) const {
    const std::lock_guard lock(m_mutex);
    for (const auto& [id, entry] : m_entries) {
        if (entry.record.owner == owner && entry.record.name == name) {
            return entry;
        }
    }
    return std::nullopt;
}

std::optional<DomainEntry> DomainTable::findByInstance(const InstanceId& instance) const {
    const std::lock_guard lock(m_mutex);
    for (const auto& [id, entry] : m_entries) {
        if (entry.instance && entry.instance->id == instance) {
            return entry;
        }
    }
    return std::nullopt;
}

std::vector<DomainEntry> DomainTable::all() const {
    const std::lock_guard lock(m_mutex);
    std::vector<DomainEntry> entries;
    for (const auto& [id, entry] : m_entries) {
        entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end(), [](const DomainEntry& a, const DomainEntry& b) {
        return std::tie(a.record.owner, a.record.name) < std::tie(b.record.owner, b.record.name);
    });
    return entries;
}

std::vector<DomainEntry> DomainTable::deleted() const {
    const std::lock_guard lock(m_mutex);
    std::vector<DomainEntry> entries;
    for (const auto& [id, entry] : m_deleted) {
        entries.push_back(entry);
    }
    return entries;
}

std::vector<DomainEntry> DomainTable::withDeleted() const {
    const std::lock_guard lock(m_mutex); // one that changes sides meanwhile must not be missed
    std::vector<DomainEntry> entries;
    for (const auto* domains : {&m_entries, &m_deleted}) {
        for (const auto& [id, entry] : *domains) {
            entries.push_back(entry);
        }
    }
    return entries;
}

void DomainTable::setDeleted(DomainEntry entry) {
    {
        const std::lock_guard lock(m_mutex);
        // Snapshots may have been removed since it was looked at.
        if (const auto alive = m_entries.find(entry.record.id); alive != m_entries.end()) {
            entry.head = alive->second.head;
        } else if (const auto known = m_deleted.find(entry.record.id); known != m_deleted.end()) {
            entry.head = known->second.head;
        }
        m_entries.erase(entry.record.id);
        m_deleted.insert_or_assign(entry.record.id, std::move(entry));
    }
    m_events.domainsChanged();
}

Status DomainTable::revive(DomainEntry entry) {
    const DomainId id = entry.record.id;
    auto inserted = insert(std::move(entry));
    if (inserted) {
        {
            const std::lock_guard lock(m_mutex);
            const auto deleted = m_deleted.find(id);
            const auto alive = m_entries.find(id);
            if (deleted != m_deleted.end() && alive != m_entries.end()) {
                alive->second.head = deleted->second.head;
            }
        }
        eraseDeleted(id);
    }
    return inserted;
}

void DomainTable::eraseDeleted(const DomainId& id) {
    {
        const std::lock_guard lock(m_mutex);
        m_deleted.erase(id);
    }
    m_events.domainsChanged();
}

Status DomainTable::apply(const DomainId& id, DomainEvent event, const std::string& reason) {
    DomainState next{};
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_entries.find(id);
        if (found == m_entries.end()) {
            return fail(ErrorCode::NotFound, "no such domain");
        }
        DomainEntry& entry = found->second;
        const auto target = nextState(entry.state, event);
        if (!target) {
            return fail(ErrorCode::WrongState, "domain \"" + entry.record.name + "\" is " +
                                                   std::string(nameOf(entry.state)) + ": " +
                                                   std::string(nameOf(event)) + " is not possible now");
        }
        next = *target;
        entry.state = next;
        entry.reason = next == DomainState::Failed || next == DomainState::Paused ? reason : std::string();
    }
    m_events.domainStateChanged(id, next);
    return {};
}

void DomainTable::restore(const DomainId& id, DomainState state, const std::string& reason) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.state = state;
        found->second.reason = reason;
    }
}

void DomainTable::setHead(const DomainId& id, const DomainHead& head) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.head = head;
    }
    if (const auto found = m_deleted.find(id); found != m_deleted.end()) {
        found->second.head = head;
    }
}

void DomainTable::setRanWith(const DomainId& id, const TemplateVersion& version) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.record.ranWith = version;
    }
}

void DomainTable::setInstance(const DomainId& id, std::optional<InstanceRecord> instance) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.instance = std::move(instance);
    }
}

void DomainTable::setDefinition(const DomainId& id, DomainDefinition definition) {
    {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_entries.find(id); found != m_entries.end()) {
            found->second.definition = std::move(definition);
        }
    }
    m_events.domainsChanged();
}

void DomainTable::markRemoving(const DomainId& id, DomainRecord::Phase phase) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.record.phase = phase;
    }
}

void DomainTable::setHasWindows(const DomainId& id, bool hasWindows) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.hasWindows = hasWindows;
        if (hasWindows) {
            found->second.waitingClient.clear();
        }
    }
}

void DomainTable::setWaitingClient(const DomainId& id, const std::string& busName) {
    const std::lock_guard lock(m_mutex);
    if (const auto found = m_entries.find(id); found != m_entries.end()) {
        found->second.waitingClient = busName;
    }
}

DomainTable::Beginning::~Beginning() {
    if (m_table == nullptr) {
        return;
    }
    const std::lock_guard lock(m_table->m_mutex);
    if (--m_table->m_beginnings[m_id] == 0) {
        m_table->m_beginnings.erase(m_id);
    }
}

DomainTable::Closed::~Closed() {
    if (m_table == nullptr) {
        return;
    }
    const std::lock_guard lock(m_table->m_mutex);
    m_table->m_closed.erase(m_id);
}

Result<DomainTable::Beginning> DomainTable::beginProgram(const DomainId& id) {
    const std::lock_guard lock(m_mutex);
    if (m_closed.contains(id)) {
        const auto entry = m_entries.find(id);
        return fail(ErrorCode::Busy, "domain \"" + (entry == m_entries.end() ? "" : entry->second.record.name) +
                                         "\" is being suspended, since nothing ran in it; start it again in a moment");
    }
    ++m_beginnings[id];
    return Beginning(this, id);
}

std::optional<DomainTable::Closed> DomainTable::closeToPrograms(const DomainId& id) {
    const std::lock_guard lock(m_mutex);
    if (m_beginnings.contains(id) || !m_closed.insert(id).second) {
        return std::nullopt;
    }
    return Closed(this, id);
}

Result<DomainTable::Operation> DomainTable::beginOperation(const DomainId& id, const std::string& what,
                                                           std::chrono::milliseconds patience) {
    std::unique_lock lock(m_mutex);
    const bool isFree = m_operationEnded.wait_for(lock, patience, [&] { return !m_operations.contains(id); });
    const auto entry = m_entries.find(id);
    if (entry == m_entries.end()) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    if (!isFree) {
        return fail(ErrorCode::Busy, "domain \"" + entry->second.record.name + "\" is busy (" + m_operations[id] +
                                         "); try again after it");
    }
    m_operations.emplace(id, what);
    return Operation(this, id);
}

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/deleted_domains.hpp"
#include "core/ports/repositories.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

/// Repositories in memory. They pass the same contract suite as the SQLite ones (tests/support/contract).
namespace bulkhead::tests {

/// What the fakes share, so that they can keep the references between tables.
struct FakeDatabase {
    std::mutex mutex;
    std::map<DomainId, core::DomainRecord> domains;
    std::map<InstanceId, core::InstanceRecord> instances;
    std::map<SnapshotId, core::SnapshotRecord> snapshots;
    std::map<DomainId, core::DomainHead> heads;
    /// When set, each write fails with it and changes nothing: a full disk.
    std::optional<Error> failWrites;
};

class FakeDomainRepository final : public core::DomainRepository {
public:
    explicit FakeDomainRepository(FakeDatabase& database)
        : m_database(database) {}

    Status insert(const core::DomainRecord& record) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        if (m_database.domains.contains(record.id) || isNameTaken(record)) {
            return fail(ErrorCode::AlreadyExists,
                        "there is a domain \"" + record.name + "\" already; choose another name");
        }
        m_database.domains.emplace(record.id, record);
        return {};
    }
    Status update(const core::DomainRecord& record) override {
        if (const std::lock_guard lock(m_database.mutex); isNameTaken(record)) {
            return fail(ErrorCode::AlreadyExists,
                        "there is a domain \"" + record.name + "\" already; choose another name");
        }
        return change(record.id, [&](core::DomainRecord& known) {
            known.name = record.name;
            known.phase = record.phase;
            known.deletedAt = record.deletedAt;
        });
    }
    Status setPhase(const DomainId& id, core::DomainRecord::Phase phase) override {
        return change(id, [&](core::DomainRecord& record) { record.phase = phase; });
    }
    Status setLastFailure(const DomainId& id, const std::string& reason) override {
        return change(id, [&](core::DomainRecord& record) { record.lastFailure = reason; });
    }
    Status setRanWith(const DomainId& id, const core::TemplateVersion& version) override {
        return change(id, [&](core::DomainRecord& record) { record.ranWith = version; });
    }
    Status remove(const DomainId& id) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        const bool isUsed = std::any_of(m_database.instances.begin(), m_database.instances.end(),
                                        [&](const auto& entry) { return entry.second.domain == id; });
        if (isUsed) {
            return fail(ErrorCode::WrongState, "cannot remove domain " + id.text() + ": another record depends on it");
        }
        m_database.domains.erase(id);
        m_database.heads.erase(id);
        return {};
    }
    Result<std::vector<core::DomainRecord>> all() override {
        const std::lock_guard lock(m_database.mutex);
        std::vector<core::DomainRecord> records;
        for (const auto& [id, record] : m_database.domains) {
            records.push_back(record);
        }
        std::stable_sort(records.begin(), records.end(),
                         [](const auto& a, const auto& b) { return a.createdAt < b.createdAt; });
        return records;
    }

private:
    [[nodiscard]] bool isNameTaken(const core::DomainRecord& record) const {
        return !record.isInTrash() &&
               std::any_of(m_database.domains.begin(), m_database.domains.end(), [&](const auto& entry) {
                   const core::DomainRecord& other = entry.second;
                   return other.id != record.id && !other.isInTrash() && other.owner == record.owner &&
                          other.name == record.name;
               });
    }
    template <class Change> Status change(const DomainId& id, Change&& act) {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        const auto found = m_database.domains.find(id);
        if (found == m_database.domains.end()) {
            return fail(ErrorCode::NotFound, "the database has no domain " + id.text());
        }
        act(found->second);
        return {};
    }
    FakeDatabase& m_database;
};

class FakeSnapshotRepository final : public core::SnapshotRepository {
public:
    explicit FakeSnapshotRepository(FakeDatabase& database)
        : m_database(database) {}

    Status save(const core::SnapshotRecord& record) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        m_database.snapshots[record.id] = record;
        return {};
    }
    Status remove(const SnapshotId& id) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        m_database.snapshots.erase(id);
        return {};
    }
    Result<std::vector<core::SnapshotRecord>> all() override {
        const std::lock_guard lock(m_database.mutex);
        std::vector<core::SnapshotRecord> records;
        for (const auto& [id, record] : m_database.snapshots) {
            records.push_back(record);
        }
        std::stable_sort(records.begin(), records.end(),
                         [](const auto& a, const auto& b) { return a.createdAt < b.createdAt; });
        return records;
    }
    Status setHead(const DomainId& domain, const core::DomainHead& head) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        if (!m_database.domains.contains(domain)) {
            return fail(ErrorCode::WrongState,
                        "cannot record where domain " + domain.text() + " stands: no such domain");
        }
        m_database.heads[domain] = head;
        return {};
    }
    Result<std::map<DomainId, core::DomainHead>> heads() override {
        const std::lock_guard lock(m_database.mutex);
        return m_database.heads;
    }

private:
    FakeDatabase& m_database;
};

class FakeInstanceRepository final : public core::InstanceRepository {
public:
    explicit FakeInstanceRepository(FakeDatabase& database)
        : m_database(database) {}

    Status insert(const core::InstanceRecord& record) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        const bool isTaken =
            std::any_of(m_database.instances.begin(), m_database.instances.end(), [&](const auto& entry) {
                return entry.first == record.id || entry.second.uidSlot == record.uidSlot;
            });
        if (isTaken) {
            return fail(ErrorCode::AlreadyExists,
                        "cannot record instance " + record.id.text() + ": id or uid slot in use");
        }
        if (!record.domain.isNull() && !m_database.domains.contains(record.domain)) {
            return fail(ErrorCode::WrongState, "cannot record instance " + record.id.text() + ": no such domain");
        }
        m_database.instances.emplace(record.id, record);
        return {};
    }
    Status setPhase(const InstanceId& id, core::InstancePhase phase) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        const auto found = m_database.instances.find(id);
        if (found == m_database.instances.end()) {
            return fail(ErrorCode::NotFound, "the database has no instance " + id.text());
        }
        found->second.phase = phase;
        return {};
    }
    Status setHeld(const InstanceId& id, bool isHeld) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        const auto found = m_database.instances.find(id);
        if (found == m_database.instances.end()) {
            return fail(ErrorCode::NotFound, "the database has no instance " + id.text());
        }
        found->second.isHeld = isHeld;
        return {};
    }
    Status assign(const InstanceId& id, const DomainId& domain, std::int64_t startedAt) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        const auto found = m_database.instances.find(id);
        if (found == m_database.instances.end() || !found->second.domain.isNull()) {
            return fail(ErrorCode::NotFound, "the database has no instance " + id.text() + " without a domain");
        }
        if (!m_database.domains.contains(domain)) {
            return fail(ErrorCode::WrongState, "cannot give instance " + id.text() + " to a domain: no such domain");
        }
        found->second.domain = domain;
        found->second.startedAt = startedAt;
        return {};
    }
    Status remove(const InstanceId& id) override {
        const std::lock_guard lock(m_database.mutex);
        if (m_database.failWrites) {
            return fail(*m_database.failWrites);
        }
        m_database.instances.erase(id);
        return {};
    }
    Result<std::vector<core::InstanceRecord>> all() override {
        const std::lock_guard lock(m_database.mutex);
        std::vector<core::InstanceRecord> records;
        for (const auto& [id, record] : m_database.instances) {
            records.push_back(record);
        }
        std::stable_sort(records.begin(), records.end(),
                         [](const auto& a, const auto& b) { return a.startedAt < b.startedAt; });
        return records;
    }

private:
    FakeDatabase& m_database;
};

/// Definitions in memory.
class FakeDefinitionStore final : public core::DefinitionStore {
public:
    std::vector<core::DomainDefinition> domains;
    std::vector<core::TemplateDefinition> templates;
    std::vector<core::DefinitionProblem> problems;
    std::optional<Error> failSave;

    Loaded loadDomains() override {
        const std::lock_guard lock(m_mutex);
        return {domains, problems};
    }
    Result<core::DomainDefinition> reload(const core::DomainDefinition& definition) override {
        const std::lock_guard lock(m_mutex);
        for (const auto& known : domains) {
            if (known.owner == definition.owner && known.name == definition.name && !known.isManaged) {
                return known;
            }
        }
        return fail(ErrorCode::NotFound, "its definition is not there any more");
    }
    Result<core::DomainDefinition> save(core::DomainDefinition definition) override {
        const std::lock_guard lock(m_mutex);
        if (failSave) {
            return fail(*failSave);
        }
        if (definition.isManaged) {
            return fail(ErrorCode::NotAuthorized, "domain \"" + definition.name + "\" is defined by the administrator");
        }
        definition.file = "/fake/" + std::to_string(definition.owner) + "/" + definition.name + ".toml";
        erase(definition);
        domains.push_back(definition);
        return definition;
    }
    Status removeDefinition(const core::DomainDefinition& definition) override {
        const std::lock_guard lock(m_mutex);
        if (definition.isManaged) {
            return fail(ErrorCode::NotAuthorized, "domain \"" + definition.name + "\" is defined by the administrator");
        }
        erase(definition);
        return {};
    }
    LoadedTemplates loadTemplates() override {
        const std::lock_guard lock(m_mutex);
        return {templates, {}};
    }
    Status saveAddedPackages(const std::string& templateName, const std::vector<std::string>& packages) override {
        const std::lock_guard lock(m_mutex);
        if (failSave) {
            return fail(*failSave);
        }
        for (auto& definition : templates) {
            if (definition.name == templateName) {
                std::erase_if(definition.packages, [&](const std::string& package) {
                    const auto& old = definition.addedPackages;
                    return std::find(old.begin(), old.end(), package) != old.end();
                });
                definition.packages.insert(definition.packages.end(), packages.begin(), packages.end());
                definition.addedPackages = packages;
            }
        }
        return {};
    }

private:
    friend class FakeDeletedDefinitions; // which moves them
    void erase(const core::DomainDefinition& definition) {
        std::erase_if(domains, [&](const auto& other) {
            return other.owner == definition.owner && other.name == definition.name && !other.isManaged;
        });
    }
    std::mutex m_mutex;
};

/// Definitions in memory that were set aside.
class FakeDeletedDefinitions final : public core::DeletedDefinitions {
public:
    explicit FakeDeletedDefinitions(FakeDefinitionStore& store)
        : m_store(store) {}
    struct Aside {
        core::SetAsideDefinition what;
        core::DomainDefinition definition;
    };
    std::map<DomainId, Aside> aside;

    Status setAside(const core::SetAsideDefinition& what) override {
        const std::lock_guard lock(m_store.m_mutex);
        const auto found = find(what.owner, what.name);
        if (aside.contains(what.id) || found == m_store.domains.end()) {
            return {};
        }
        aside[what.id] = {what, *found};
        m_store.domains.erase(found);
        return {};
    }
    Status bringBack(const DomainId& id, uid_t owner, const std::string& name) override {
        const std::lock_guard lock(m_store.m_mutex);
        const auto found = aside.find(id);
        if (found == aside.end()) {
            return {};
        }
        if (find(owner, name) != m_store.domains.end()) {
            return fail(ErrorCode::AlreadyExists, "there is a definition of that name already");
        }
        core::DomainDefinition definition = found->second.definition;
        definition.name = name;
        definition.file = "/fake/" + std::to_string(owner) + "/" + name + ".toml";
        m_store.domains.push_back(definition);
        aside.erase(found);
        return {};
    }
    Status remove(const DomainId& id, uid_t) override {
        const std::lock_guard lock(m_store.m_mutex);
        aside.erase(id);
        return {};
    }
    Result<std::vector<core::SetAsideDefinition>> all() override {
        const std::lock_guard lock(m_store.m_mutex);
        std::vector<core::SetAsideDefinition> found;
        for (const auto& [id, entry] : aside) {
            found.push_back(entry.what);
        }
        return found;
    }

private:
    std::vector<core::DomainDefinition>::iterator find(uid_t owner, const std::string& name) {
        return std::find_if(m_store.domains.begin(), m_store.domains.end(), [&](const auto& known) {
            return known.owner == owner && known.name == name && !known.isManaged;
        });
    }
    FakeDefinitionStore& m_store;
};

} // namespace bulkhead::tests

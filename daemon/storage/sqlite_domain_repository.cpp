// SPDX-License-Identifier: Apache-2.0
#include "storage/sqlite_domain_repository.hpp"

#include "storage/stored_words.hpp"

namespace bulkhead::storage {

namespace {

Result<core::DomainRecord> domainFrom(const Row& row) {
    const auto id = domainIdFromStored(row.text(0));
    if (!id) {
        return fail(id.error());
    }
    const auto owner = unsignedFromStored(row.integer(1));
    if (!owner) {
        return fail(owner.error().in("domain " + id->text()));
    }
    const auto kind = domainKindFromStored(row.text(3));
    if (!kind) {
        return fail(kind.error().in("domain " + id->text()));
    }
    const auto phase = domainPhaseFromStored(row.text(4));
    if (!phase) {
        return fail(phase.error().in("domain " + id->text()));
    }
    core::DomainRecord record;
    record.id = *id;
    record.owner = *owner;
    record.name = row.text(11).empty() ? row.text(2) : row.text(11);
    record.kind = *kind;
    record.phase = *phase;
    record.createdAt = row.integer(5);
    record.lastFailure = row.text(6);
    record.templateName = row.text(7);
    record.size = row.text(8);
    record.isKept = row.integer(9) != 0;
    record.deletedAt = row.integer(10);
    record.ranWith = {row.text(12), row.text(13)};
    return record;
}

/// The columns name and deleted_name.
std::pair<std::string, std::string> storedNames(const core::DomainRecord& record) {
    return record.isInTrash() ? std::pair(record.id.text(), record.name) : std::pair(record.name, std::string());
}

Status nameTaken(const core::DomainRecord& record) {
    return fail(ErrorCode::AlreadyExists, "there is a domain \"" + record.name + "\" already; choose another name");
}

} // namespace

Status SqliteDomainRepository::insert(const core::DomainRecord& record) {
    const Status done = m_database.write([&](Connection& connection) -> Status {
        const auto [name, deletedName] = storedNames(record);
        const auto changed = connection.change(
            "INSERT INTO domains (id, owner, name, kind, phase, created_at, last_failure, template, size, kept, "
            "deleted_at, deleted_name, ran_template, ran_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            {record.id.text(), std::int64_t{record.owner}, name, std::string(storedWord(record.kind)),
             std::string(storedWord(record.phase)), record.createdAt, record.lastFailure, record.templateName,
             record.size, std::int64_t{record.isKept}, record.deletedAt, deletedName, record.ranWith.name,
             record.ranWith.version});
        return changed ? Status() : Status(fail(changed.error()));
    });
    if (!done && done.error().code == ErrorCode::AlreadyExists) {
        return nameTaken(record);
    }
    return done;
}

Status SqliteDomainRepository::update(const core::DomainRecord& record) {
    const Status done = m_database.write([&](Connection& connection) -> Status {
        const auto [name, deletedName] = storedNames(record);
        const auto changed = connection.change(
            "UPDATE domains SET name = ?, deleted_name = ?, phase = ?, deleted_at = ? WHERE id = ?",
            {name, deletedName, std::string(storedWord(record.phase)), record.deletedAt, record.id.text()});
        if (!changed) {
            return fail(changed.error());
        }
        return *changed > 0 ? Status()
                            : Status(fail(ErrorCode::NotFound, "the database has no domain " + record.id.text()));
    });
    return !done && done.error().code == ErrorCode::AlreadyExists ? nameTaken(record) : done;
}

Status SqliteDomainRepository::changeOne(const DomainId& id, std::string_view sql, const Value& value) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change(sql, {value, id.text()});
        if (!changed) {
            return fail(changed.error());
        }
        if (*changed == 0) {
            return fail(ErrorCode::NotFound, "the database has no domain " + id.text());
        }
        return {};
    });
}

Status SqliteDomainRepository::setPhase(const DomainId& id, core::DomainRecord::Phase phase) {
    return changeOne(id, "UPDATE domains SET phase = ? WHERE id = ?", std::string(storedWord(phase)));
}

Status SqliteDomainRepository::setLastFailure(const DomainId& id, const std::string& reason) {
    return changeOne(id, "UPDATE domains SET last_failure = ? WHERE id = ?", reason);
}

Status SqliteDomainRepository::setRanWith(const DomainId& id, const core::TemplateVersion& version) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change("UPDATE domains SET ran_template = ?, ran_version = ? WHERE id = ?",
                                               {version.name, version.version, id.text()});
        if (!changed) {
            return fail(changed.error());
        }
        return *changed > 0 ? Status() : Status(fail(ErrorCode::NotFound, "the database has no domain " + id.text()));
    });
}

Status SqliteDomainRepository::remove(const DomainId& id) {
    return m_database.write([&](Connection& connection) -> Status {
        const auto changed = connection.change("DELETE FROM domains WHERE id = ?", {id.text()});
        return changed ? Status() : Status(fail(changed.error().in("cannot remove domain " + id.text())));
    });
}

Result<std::vector<core::DomainRecord>> SqliteDomainRepository::all() {
    std::vector<core::DomainRecord> records;
    const Status done = m_database.read([&](Connection& connection) -> Status {
        return connection.query(
            "SELECT id, owner, name, kind, phase, created_at, last_failure, template, size, "
            "kept, deleted_at, deleted_name, ran_template, ran_version FROM domains ORDER BY created_at, id",
            {}, [&](const Row& row) -> Status {
                auto record = domainFrom(row);
                if (!record) {
                    return fail(record.error());
                }
                records.push_back(std::move(*record));
                return {};
            });
    });
    if (!done) {
        return fail(done.error());
    }
    return records;
}

} // namespace bulkhead::storage

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/repositories.hpp"
#include "storage/database.hpp"

namespace bulkhead::storage {

class SqliteInstanceRepository final : public core::InstanceRepository {
public:
    /// `database` must outlive this.
    explicit SqliteInstanceRepository(Database& database)
        : m_database(database) {}

    /// WrongState when the domain has no record; AlreadyExists when the uid slot is in use.
    Status insert(const core::InstanceRecord& record) override;
    Status setPhase(const InstanceId& id, core::InstancePhase phase) override;
    Status setHeld(const InstanceId& id, bool isHeld) override;
    Status assign(const InstanceId& id, const DomainId& domain, std::int64_t startedAt) override;
    /// Success when there is no such record.
    Status remove(const InstanceId& id) override;
    /// In the order of their starts.
    Result<std::vector<core::InstanceRecord>> all() override;

private:
    Database& m_database;
};

} // namespace bulkhead::storage

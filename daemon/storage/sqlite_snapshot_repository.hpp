// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/repositories.hpp"
#include "storage/database.hpp"

namespace bulkhead::storage {

class SqliteSnapshotRepository final : public core::SnapshotRepository {
public:
    explicit SqliteSnapshotRepository(Database& database)
        : m_database(database) {}

    Status save(const core::SnapshotRecord& record) override;
    Status remove(const SnapshotId& id) override;
    Result<std::vector<core::SnapshotRecord>> all() override;
    Status setHead(const DomainId& domain, const core::DomainHead& head) override;
    Result<std::map<DomainId, core::DomainHead>> heads() override;

private:
    Database& m_database;
};

} // namespace bulkhead::storage

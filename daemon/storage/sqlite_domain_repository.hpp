// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/repositories.hpp"
#include "storage/database.hpp"

namespace bulkhead::storage {

class SqliteDomainRepository final : public core::DomainRepository {
public:
    /// `database` must outlive this.
    explicit SqliteDomainRepository(Database& database)
        : m_database(database) {}

    Status insert(const core::DomainRecord& record) override;
    Status update(const core::DomainRecord& record) override;
    Status setPhase(const DomainId& id, core::DomainRecord::Phase phase) override;
    Status setLastFailure(const DomainId& id, const std::string& reason) override;
    /// WrongState while an instance record names the domain; success when there is no such record.
    Status setRanWith(const DomainId& id, const core::TemplateVersion& version) override;
    Status remove(const DomainId& id) override;
    /// In the order in which they were made.
    Result<std::vector<core::DomainRecord>> all() override;

private:
    Status changeOne(const DomainId& id, std::string_view sql, const Value& value);
    Database& m_database;
};

} // namespace bulkhead::storage

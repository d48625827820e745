// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <string_view>
#include <vector>

namespace bulkhead::storage {

class Database;

/// One step of the schema. Once released, a migration never changes; a new one follows it.
struct Migration {
    std::string_view name; ///< the file's name without ".sql", "0001_init"
    std::string_view sql;
};

/// The migrations of daemon/storage/migrations, in order.
const std::vector<Migration>& embeddedMigrations();

/// Brings the schema to the last of `migrations`, each in one transaction and recorded by name. Unavailable when the
/// database is newer than `migrations` or has another history.
Status migrate(Database& database, const std::vector<Migration>& migrations);

} // namespace bulkhead::storage

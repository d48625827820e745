// SPDX-License-Identifier: Apache-2.0
#include "storage/migrations.hpp"

#include "base/escaping.hpp"
#include "storage/database.hpp"

#include <string>

namespace bulkhead::storage {

namespace {

Result<std::vector<std::string>> appliedMigrations(Database& database) {
    std::vector<std::string> names;
    const Status read = database.read([&](Connection& connection) -> Status {
        return connection.query("SELECT name FROM schema_migrations ORDER BY number", {},
                                [&](const Row& row) -> Status {
                                    names.push_back(row.text(0));
                                    return {};
                                });
    });
    if (!read) {
        return fail(read.error());
    }
    return names;
}

} // namespace

Status migrate(Database& database, const std::vector<Migration>& migrations) {
    const Status prepared = database.write([](Connection& connection) {
        return connection.execute("CREATE TABLE IF NOT EXISTS schema_migrations ("
                                  "number INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
                                  "applied_at INTEGER NOT NULL DEFAULT (unixepoch())) STRICT");
    });
    if (!prepared) {
        return prepared;
    }
    const auto applied = appliedMigrations(database);
    if (!applied) {
        return fail(applied.error());
    }
    const std::string file = database.file().string();
    for (std::size_t i = 0; i < applied->size(); ++i) {
        const std::string& name = (*applied)[i];
        if (i >= migrations.size()) {
            return fail(ErrorCode::Unavailable,
                        "the database " + file + " was written by a newer Bulkhead (it has \"" +
                            escapeUntrusted(name, 80) + "\", this one knows \"" +
                            (migrations.empty() ? "nothing" : std::string(migrations.back().name)) +
                            "\"); install that version again, or move the database away");
        }
        if (name != migrations[i].name) {
            return fail(ErrorCode::Unavailable,
                        "the database " + file + " has the schema step \"" + escapeUntrusted(name, 80) + "\" where \"" +
                            std::string(migrations[i].name) + "\" is expected; it was made by another build");
        }
    }
    for (std::size_t i = applied->size(); i < migrations.size(); ++i) {
        const Migration& migration = migrations[i];
        const auto number = static_cast<std::int64_t>(i + 1);
        const Status done = database.write([&](Connection& connection) -> Status {
            if (auto ran = connection.execute(migration.sql); !ran) {
                return ran;
            }
            if (auto recorded = connection.change("INSERT INTO schema_migrations (number, name) VALUES (?, ?)",
                                                  {number, std::string(migration.name)});
                !recorded) {
                return fail(recorded.error());
            }
            return connection.execute("PRAGMA user_version = " + std::to_string(number));
        });
        if (!done) {
            return fail(done.error().in("schema step " + std::string(migration.name)));
        }
    }
    return {};
}

} // namespace bulkhead::storage

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "storage/migrations.hpp"
#include "storage/statement.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace bulkhead::storage {

/// What code inside a transaction may do.
class Connection {
public:
    Connection(sqlite3* database, const std::string& file)
        : m_database(database)
        , m_file(file) {}

    /// Runs statements without parameters and without results.
    Status execute(std::string_view sql);
    /// Runs one statement; gives the number of rows that it changed.
    Result<int> change(std::string_view sql, const std::vector<Value>& values);
    /// Calls `onRow` for each row until it fails.
    Status query(std::string_view sql, const std::vector<Value>& values,
                 const std::function<Status(const Row&)>& onRow);

private:
    sqlite3* m_database;
    const std::string& m_file;
};

/// The daemon's one SQLite database. Thread-safe: one transaction at a time; what write() did is on disk when it
/// returns (WAL, synchronous=FULL).
class Database {
public:
    /// Opens or makes the file (mode 0600), checks that it is ours and sound, and brings its schema up to date.
    /// Errors say what to do: a damaged file, one of another program, one of a newer Bulkhead.
    static Result<std::unique_ptr<Database>> open(const std::filesystem::path& file,
                                                  const std::vector<Migration>& migrations = embeddedMigrations());
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// Runs `act` in a transaction that is committed when it succeeds and otherwise leaves nothing changed.
    Status write(const std::function<Status(Connection&)>& act);
    /// Runs `act` over one consistent state.
    Status read(const std::function<Status(Connection&)>& act);
    /// Outside of any transaction: for PRAGMA.
    Status execute(std::string_view sql);

    [[nodiscard]] const std::filesystem::path& file() const { return m_path; }

private:
    explicit Database(const std::filesystem::path& file)
        : m_path(file)
        , m_file(file.string()) {}
    Status configure();
    Status checkIdentity();
    Status transaction(std::string_view begin, const std::function<Status(Connection&)>& act);
    Result<std::int64_t> pragma(std::string_view name);

    struct Close {
        void operator()(sqlite3* database) const;
    };
    std::filesystem::path m_path;
    std::string m_file;
    std::mutex m_mutex;
    std::unique_ptr<sqlite3, Close> m_database;
};

} // namespace bulkhead::storage

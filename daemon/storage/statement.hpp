// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace bulkhead::storage {

/// A value bound to a `?`. All columns of ours are text or integer.
using Value = std::variant<std::int64_t, std::string>;

/// The present row of a query. Valid inside the callback only.
class Row {
public:
    explicit Row(sqlite3_stmt* statement)
        : m_statement(statement) {}
    [[nodiscard]] std::string text(int column) const;
    [[nodiscard]] std::int64_t integer(int column) const;

private:
    sqlite3_stmt* m_statement;
};

/// A prepared statement.
class Statement {
public:
    Statement(sqlite3* database, const std::string& file)
        : m_database(database)
        , m_file(file) {}

    Status prepare(std::string_view sql);
    Status bind(const std::vector<Value>& values);
    /// True when there is a row.
    Result<bool> step();
    [[nodiscard]] Row row() const { return Row(m_statement.get()); }

private:
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const;
    };
    sqlite3* m_database;
    const std::string& m_file;
    std::unique_ptr<sqlite3_stmt, Finalize> m_statement;
};

/// The Error for the last failure of `database`: NoSpace for a full disk, AlreadyExists for a taken key, WrongState for
/// a broken reference, Busy for a lock of another program; a damaged file is named with what to do.
Error lastError(sqlite3* database, const std::string& file);

} // namespace bulkhead::storage

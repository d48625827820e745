// SPDX-License-Identifier: Apache-2.0
#include "storage/statement.hpp"

#include <cerrno>
#include <sqlite3.h>

namespace bulkhead::storage {

Error lastError(sqlite3* database, const std::string& file) {
    const int extended = sqlite3_extended_errcode(database);
    const std::string why = sqlite3_errmsg(database);
    const int systemError = sqlite3_system_errno(database);
    switch (extended & 0xff) {
    case SQLITE_FULL:
        return {ErrorCode::NoSpace, "the disk of the database " + file + " is full; free some space"};
    case SQLITE_IOERR:
        if (systemError == ENOSPC || systemError == EDQUOT) {
            return {ErrorCode::NoSpace, "the disk of the database " + file + " is full; free some space"};
        }
        return {ErrorCode::HostFailure, "the database " + file + " cannot be read or written: " + why};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return {ErrorCode::HostFailure,
                "the database " + file + " is damaged (" + why +
                    "); restore a copy, or move it away: domains keep their definitions and homes"};
    case SQLITE_BUSY:
        return {ErrorCode::Busy, "the database " + file + " is in use by another program"};
    case SQLITE_CONSTRAINT:
        if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY) {
            return {ErrorCode::AlreadyExists, "there is such a record already: " + why};
        }
        if (extended == SQLITE_CONSTRAINT_FOREIGNKEY || extended == SQLITE_CONSTRAINT_TRIGGER) {
            return {ErrorCode::WrongState, "another record depends on it: " + why};
        }
        return {ErrorCode::InvalidArgument, "the database refuses the record: " + why};
    default:
        return {ErrorCode::HostFailure, "the database " + file + ": " + why};
    }
}

std::string Row::text(int column) const {
    const unsigned char* const bytes = sqlite3_column_text(m_statement, column);
    const int size = sqlite3_column_bytes(m_statement, column);
    return bytes == nullptr ? std::string() : std::string(bytes, bytes + size);
}

std::int64_t Row::integer(int column) const {
    return sqlite3_column_int64(m_statement, column);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
}

Status Statement::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(m_database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK) {
        return fail(lastError(m_database, m_file));
    }
    m_statement.reset(statement);
    return {};
}

Status Statement::bind(const std::vector<Value>& values) {
    int index = 1;
    for (const Value& value : values) {
        int code = SQLITE_OK;
        if (const auto* number = std::get_if<std::int64_t>(&value)) {
            code = sqlite3_bind_int64(m_statement.get(), index, *number);
        } else {
            const auto& text = std::get<std::string>(value);
            // Null as the destructor: the values live until the statement has run.
            code = sqlite3_bind_text64(m_statement.get(), index, text.data(), text.size(), nullptr, SQLITE_UTF8);
        }
        if (code != SQLITE_OK) {
            return fail(lastError(m_database, m_file));
        }
        ++index;
    }
    return {};
}

Result<bool> Statement::step() {
    switch (sqlite3_step(m_statement.get())) {
    case SQLITE_ROW:
        return true;
    case SQLITE_DONE:
        return false;
    default:
        return fail(lastError(m_database, m_file));
    }
}

} // namespace bulkhead::storage

// SPDX-License-Identifier: Apache-2.0
#include "storage/database.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

namespace bulkhead::storage {

namespace {

constexpr std::int64_t kApplicationId = 0x424b4844; // "BKHD", for file(1) and for us

} // namespace

Status Connection::execute(std::string_view sql) {
    const std::string text(sql);
    if (sqlite3_exec(m_database, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
        return fail(lastError(m_database, m_file));
    }
    return {};
}

Result<int> Connection::change(std::string_view sql, const std::vector<Value>& values) {
    const Status done = query(sql, values, [](const Row&) -> Status { return {}; });
    if (!done) {
        return fail(done.error());
    }
    return sqlite3_changes(m_database);
}

Status Connection::query(std::string_view sql, const std::vector<Value>& values,
                         const std::function<Status(const Row&)>& onRow) {
    Statement statement(m_database, m_file);
    if (auto prepared = statement.prepare(sql); !prepared) {
        return prepared;
    }
    if (auto bound = statement.bind(values); !bound) {
        return bound;
    }
    while (true) {
        const auto hasRow = statement.step();
        if (!hasRow) {
            return fail(hasRow.error());
        }
        if (!*hasRow) {
            return {};
        }
        if (auto heard = onRow(statement.row()); !heard) {
            return heard;
        }
    }
}

void Database::Close::operator()(sqlite3* database) const {
    sqlite3_close_v2(database);
}

Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& file,
                                                 const std::vector<Migration>& migrations) {
    const std::string what = "cannot open the database " + file.string();
    {
        // SQLite would make the file with the umask's mode; its -wal and -shm take the mode of the file itself.
        const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        struct stat status {};
        if (!fd || ::fstat(fd.get(), &status) != 0) {
            return failErrno(what, errno);
        }
        if (!S_ISREG(status.st_mode)) {
            return fail(ErrorCode::HostFailure, what + ": it is not a regular file");
        }
        if (::fchmod(fd.get(), 0600) != 0) {
            return failErrno(what, errno);
        }
    }
    std::unique_ptr<Database> database(new Database(file));
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(file.c_str(), &handle,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW, nullptr);
    database->m_database.reset(handle);
    if (code != SQLITE_OK) {
        return fail(handle != nullptr ? lastError(handle, database->m_file) : Error{ErrorCode::HostFailure, what});
    }
    sqlite3_extended_result_codes(handle, 1);
    if (auto configured = database->configure(); !configured) {
        return fail(configured.error());
    }
    if (auto migrated = migrate(*database, migrations); !migrated) {
        return fail(migrated.error());
    }
    return database;
}

Status Database::configure() {
    if (auto timed = execute("PRAGMA busy_timeout = 5000"); !timed) {
        return timed;
    }
    // Before anything that writes to a file which may not be ours.
    if (auto ours = checkIdentity(); !ours) {
        return ours;
    }
    return execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; "
                   "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON");
}

Status Database::checkIdentity() {
    const auto id = pragma("PRAGMA application_id");
    if (!id) {
        return fail(id.error());
    }
    if (*id != kApplicationId) {
        const auto objects = pragma("SELECT count(*) FROM sqlite_schema");
        if (!objects) {
            return fail(objects.error());
        }
        if (*id != 0 || *objects != 0) {
            return fail(ErrorCode::HostFailure,
                        "the file " + m_file + " is a database of another program; move it away");
        }
        return execute("PRAGMA application_id = " + std::to_string(kApplicationId));
    }
    std::string verdict;
    Connection connection(m_database.get(), m_file);
    const Status checked = connection.query("PRAGMA quick_check(1)", {}, [&](const Row& row) -> Status {
        verdict = row.text(0);
        return {};
    });
    if (!checked) {
        return checked;
    }
    if (verdict != "ok") {
        return fail(ErrorCode::HostFailure,
                    "the database " + m_file + " is damaged (" + verdict +
                        "); restore a copy, or move it away: domains keep their definitions and homes");
    }
    return {};
}

Result<std::int64_t> Database::pragma(std::string_view name) {
    std::int64_t value = 0;
    Connection connection(m_database.get(), m_file);
    const Status done = connection.query(name, {}, [&](const Row& row) -> Status {
        value = row.integer(0);
        return {};
    });
    if (!done) {
        return fail(done.error());
    }
    return value;
}

Status Database::execute(std::string_view sql) {
    const std::lock_guard lock(m_mutex);
    return Connection(m_database.get(), m_file).execute(sql);
}

Status Database::write(const std::function<Status(Connection&)>& act) {
    return transaction("BEGIN IMMEDIATE", act);
}

Status Database::read(const std::function<Status(Connection&)>& act) {
    return transaction("BEGIN", act);
}

Status Database::transaction(std::string_view begin, const std::function<Status(Connection&)>& act) {
    const std::lock_guard lock(m_mutex);
    Connection connection(m_database.get(), m_file);
    if (auto begun = connection.execute(begin); !begun) {
        return begun;
    }
    Status done = act(connection);
    if (done) {
        done = connection.execute("COMMIT");
    }
    // Some failures (a full disk) have rolled back already.
    if (!done && sqlite3_get_autocommit(m_database.get()) == 0) {
        [[maybe_unused]] const Status undone = connection.execute("ROLLBACK");
    }
    return done;
}

} // namespace bulkhead::storage

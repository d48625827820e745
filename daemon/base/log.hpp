// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>

namespace bulkhead::log {

enum class Level { Error = 3, Warning = 4, Notice = 5, Info = 6, Debug = 7 };

/// One structured field: an upper-case name (`DOMAIN`, `JOB`, `PHASE`) and its value.
using Field = std::pair<std::string_view, std::string_view>;

/// Writes one line to standard error: `<N>message FIELD=value …`. systemd's journal reads `<N>` as the priority
/// (sd-daemon(3)); a terminal shows it as it is. Thread-safe: one write(2) per line. Values are escaped, so a guest's
/// text cannot forge a line.
void write(Level level, std::string_view message, std::initializer_list<Field> fields = {});

inline void error(std::string_view m, std::initializer_list<Field> f = {}) {
    write(Level::Error, m, f);
}
inline void warning(std::string_view m, std::initializer_list<Field> f = {}) {
    write(Level::Warning, m, f);
}
inline void notice(std::string_view m, std::initializer_list<Field> f = {}) {
    write(Level::Notice, m, f);
}
inline void info(std::string_view m, std::initializer_list<Field> f = {}) {
    write(Level::Info, m, f);
}

} // namespace bulkhead::log

// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include "base/escaping.hpp"

#include <string>
#include <unistd.h>

namespace bulkhead::log {

void write(Level level, std::string_view message, std::initializer_list<Field> fields) {
    std::string line = "<" + std::to_string(static_cast<int>(level)) + ">" + escapeUntrusted(message, 4096);
    for (const auto& [name, value] : fields) {
        line += ' ';
        line += name;
        line += '=';
        line += escapeUntrusted(value, 1024);
    }
    line += '\n';
    // A log line that cannot be written has nowhere to be reported.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

} // namespace bulkhead::log

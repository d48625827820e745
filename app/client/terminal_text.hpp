// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

class QString;

namespace bulkhead::client {

/// Makes foreign text (a reason, a label, a path, anything that a guest or another user may have had a hand in) safe
/// for one line of a terminal: the result is valid UTF-8 without control characters, escape sequences, line breaks,
/// bidirectional overrides or invisible characters. What is taken out shows as `\xNN` or `\u{N}`.
std::string terminalSafe(std::string_view text);
std::string terminalSafe(const QString& text);

/// Columns that safe text takes: its characters, since safe text has no wide tricks that matter for a table.
std::size_t textWidth(std::string_view safeText);

/// Cuts safe text to `columns` characters, the last being "…" when something was cut.
std::string cutToWidth(std::string_view safeText, std::size_t columns);

} // namespace bulkhead::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead {

/// Makes text from a guest (or from a tool that saw guest bytes) safe for a log, a terminal, a dialog or a D-Bus
/// string: the result is valid UTF-8 without control characters, bidirectional overrides, zero-width characters or
/// line breaks. Offending bytes are written as `\xNN` (or `\u{N}`), a backslash as `\\`. At most `maxBytes` bytes of
/// result, cut at a character with "…" at the end.
std::string escapeUntrusted(std::string_view text, std::size_t maxBytes = 512);

/// Makes text from a guest fit for people to read as a title or a name: control characters become spaces, what hides or
/// changes direction and bytes that are not UTF-8 become U+FFFD. Unlike escapeUntrusted() it does not tell what was
/// there. At most `maxBytes` bytes of result, cut at a character with "…" at the end.
std::string cleanUntrusted(std::string_view text, std::size_t maxBytes);

/// True if `text` is well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF).
bool isValidUtf8(std::string_view text);

} // namespace bulkhead

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Text of programs, made fit for a message: valid UTF-8 of a bounded length. (It is still untrusted: the host cleans
/// it again.)
namespace bulkhead::session {

/// Bytes that are no UTF-8 become U+FFFD, control characters become spaces; at most `most` bytes, cut at a character.
[[nodiscard]] std::string cleanText(std::string_view text, std::size_t most);
/// The same for ISO 8859-1, which a property of type STRING holds.
[[nodiscard]] std::string cleanLatin1(std::string_view text, std::size_t most);

} // namespace bulkhead::session

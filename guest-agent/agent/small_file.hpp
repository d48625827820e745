// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace bulkhead::agent {

/// The contents of a regular file of at most `limit` bytes (kernel files, /etc/passwd). None: it cannot be read, is no
/// regular file or is larger. Never blocks: programs of the guest may have put a FIFO in the file's place.
std::optional<std::string> readSmallFile(const std::string& path, std::size_t limit);

/// Writes a kernel file (/proc, /sys). False: refused.
bool writeKernelFile(const std::string& path, const std::string& value);

/// Puts a file with this text (mode 0644) in the place of what was there, at once. 0 or an errno.
int replaceFile(const std::string& path, const std::string& text);

} // namespace bulkhead::agent

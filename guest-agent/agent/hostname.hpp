// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace bulkhead::agent {

/// Writes the name into ROOT/etc/hostname and the line of 127.0.1.1 in ROOT/etc/hosts, where these are files. 0 or an
/// errno: EINVAL for what is no name.
int installHostname(const std::string& root, const std::string& name);

/// The text of a hosts file with `name` as the only one of 127.0.1.1, and all other lines as they were.
std::string hostsWithName(const std::string& text, const std::string& name);

} // namespace bulkhead::agent

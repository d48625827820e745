// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::agent {

/// A line of the initramfs's /modules: `early PATH` (needed to reach the disks and the channel) or `late PATH`.
struct ModuleEntry {
    bool early = false;
    std::string path;
};
/// Reads the list; lines of another form are skipped, a newer builder may write more.
std::vector<ModuleEntry> parseModuleList(std::string_view text);

/// Loads one module. Already there or built in counts as done.
Status loadModule(int fd, const std::string& name);

} // namespace bulkhead::agent

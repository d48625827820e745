// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::imaging::build {

/// What depmod(8) says about a kernel's modules. Names are written with underscores.
class ModuleIndex {
public:
    /// `dep` is the text of modules.dep, `builtin` of modules.builtin.
    ModuleIndex(std::string_view dep, std::string_view builtin);

    [[nodiscard]] bool isBuiltIn(std::string_view name) const { return m_builtIn.contains(std::string(name)); }
    /// The files (relative to the modules folder) to load for `name`, itself last. NotFound when the kernel has it
    /// neither as a module nor built in; empty when it is built in.
    [[nodiscard]] Result<std::vector<std::string>> filesFor(std::string_view name) const;

private:
    std::map<std::string, std::vector<std::string>> m_files; ///< name -> load order
    std::set<std::string> m_builtIn;
};

/// The initramfs of a domain: the agent as /init and the modules that it loads, in order, listed in /modules. Not
/// compressed: unpacking costs an emulated guest more than the host's copy of two more megabytes.
/// `modulesFolder` is …/lib/modules/VERSION. `handsOver`: the agent then makes systemd the first process (file
/// /hand-over).
Result<std::string> makeInitramfs(const std::filesystem::path& agent, const std::filesystem::path& modulesFolder,
                                  bool handsOver);

} // namespace bulkhead::imaging::build

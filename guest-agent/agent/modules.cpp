// SPDX-License-Identifier: Apache-2.0
#include "agent/modules.hpp"

#include <cerrno>
#include <sys/syscall.h>
#include <unistd.h>

namespace bulkhead::agent {

std::vector<ModuleEntry> parseModuleList(std::string_view text) {
    std::vector<ModuleEntry> entries;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        for (const auto& [word, early] : {std::pair{std::string_view("early "), true}, {"late ", false}}) {
            if (line.starts_with(word) && line.size() > word.size()) {
                entries.push_back({early, std::string(line.substr(word.size()))});
            }
        }
    }
    return entries;
}

Status loadModule(int fd, const std::string& name) {
    if (::syscall(SYS_finit_module, fd, "", 0) != 0 && errno != EEXIST) {
        return failErrno("load the module " + name, errno);
    }
    return {};
}

} // namespace bulkhead::agent

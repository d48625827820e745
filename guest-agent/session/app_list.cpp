// SPDX-License-Identifier: Apache-2.0
#include "session/app_list.hpp"

#include "base/unique_fd.hpp"
#include "protocol/session_limits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::session {
namespace {

constexpr std::string_view kSuffix = ".desktop";
/// Entries of one folder that are looked at.
constexpr std::size_t kMostEntries = 4096;

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// None: not a file, too large, or not to be read. A link is followed: distributions ship such.
std::optional<std::string> readFile(const std::string& path) {
    // A named pipe must not make us wait.
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<std::size_t>(status.st_size) > kLargestDesktopFile) {
        return std::nullopt;
    }
    std::string text(static_cast<std::size_t>(status.st_size), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        const ssize_t count = ::read(file.get(), text.data() + have, text.size() - have);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        have += static_cast<std::size_t>(count);
    }
    text.resize(have);
    return text;
}

std::vector<std::string> idsIn(const std::string& folder) {
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), [](DIR* dir) { return ::closedir(dir); });
    std::vector<std::string> ids;
    if (!open) {
        return ids;
    }
    for (std::size_t i = 0; i < kMostEntries; ++i) {
        const dirent* const entry = ::readdir(open.get());
        if (entry == nullptr) {
            break;
        }
        const std::string_view name = static_cast<const char*>(entry->d_name);
        if (name.ends_with(kSuffix) && protocol::isAppId(name.substr(0, name.size() - kSuffix.size()))) {
            ids.emplace_back(name.substr(0, name.size() - kSuffix.size()));
        }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

bool canRun(const std::string& program, const std::vector<std::string>& path) {
    if (program.empty()) {
        return true;
    }
    if (program.front() == '/') {
        return ::access(program.c_str(), X_OK) == 0;
    }
    return std::any_of(path.begin(), path.end(), [&](const std::string& folder) {
        return ::access((folder + "/" + program).c_str(), X_OK) == 0;
    });
}

std::string pathOf(const std::string& folder, std::string_view id) {
    return folder + "/" + std::string(id) + std::string(kSuffix);
}

} // namespace

AppPlaces placesOfEnvironment() {
    AppPlaces places;
    const std::string home = environment("HOME");
    const std::string data = environment("XDG_DATA_HOME");
    if (data.starts_with('/')) {
        places.folders.push_back(data + "/applications");
    } else if (home.starts_with('/')) {
        places.folders.push_back(home + "/.local/share/applications");
    }
    places.folders.emplace_back("/usr/local/share/applications");
    places.folders.emplace_back("/usr/share/applications");
    places.programs = splitList(environment("PATH"), ':');
    places.desktops = splitList(environment("XDG_CURRENT_DESKTOP"), ':');
    return places;
}

std::vector<AppEntry> listApps(const AppPlaces& places) {
    std::vector<AppEntry> apps;
    std::set<std::string> seen;
    for (const std::string& folder : places.folders) {
        for (std::string& id : idsIn(folder)) {
            if (apps.size() >= kMostApps) {
                break;
            }
            const std::string path = pathOf(folder, id);
            const auto text = readFile(path);
            if (!text || !seen.insert(id).second) {
                continue;
            }
            auto entry = parseDesktopFile(*text, places.desktops);
            if (entry && !entry->isHidden && canRun(entry->tryExec, places.programs)) {
                apps.push_back({std::move(id), path, std::move(*entry)});
            }
        }
    }
    std::sort(apps.begin(), apps.end(), [](const AppEntry& a, const AppEntry& b) { return a.id < b.id; });
    return apps;
}

std::optional<std::string> findApp(const AppPlaces& places, std::string_view id) {
    if (!protocol::isAppId(id)) {
        return std::nullopt;
    }
    for (const std::string& folder : places.folders) {
        const std::string path = pathOf(folder, id);
        const auto text = readFile(path);
        if (!text) {
            continue;
        }
        const auto entry = parseDesktopFile(*text, places.desktops);
        // The first file with the name decides, as in the list.
        return entry ? std::optional(path) : std::nullopt;
    }
    return std::nullopt;
}

} // namespace bulkhead::session

// SPDX-License-Identifier: Apache-2.0
#include "viewer/file_access.hpp"

#include "client/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <linux/landlock.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bulkhead::viewer {
namespace {

/// Of the system. /proc: other processes' secrets there need the right to trace them, which goes with the files.
constexpr const char* kSystem[] = {
    "/usr",          "/lib",         "/lib64",     "/bin", "/etc", "/opt", "/proc", "/sys", "/var/cache/fontconfig",
    "/var/lib/dbus", "/dev/urandom", "/dev/random"};
/// Below the user's folder for settings: looks, fonts, input methods.
constexpr const char* kSettings[] = {"fontconfig",     "gtk-3.0",        "gtk-4.0", "kdeglobals",
                                     "kcminputrc",     "qt6ct",          "Kvantum", "dconf",
                                     "QtProject.conf", "Trolltech.conf", "ibus",    "fcitx5"};
/// Below the user's folder for data.
constexpr const char* kData[] = {"fonts", "icons", "themes", "color-schemes"};
/// Below the user's home.
constexpr const char* kHome[] = {".fonts", ".fonts.conf", ".icons", ".themes", ".XCompose"};
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full"};

/// Since 6.2; Debian 12's headers do not know it.
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE;
/// What a rule for a file may speak of; the rest is about folders.
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

std::uint64_t knownTo(long version) {
    std::uint64_t known = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                          LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                          LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                          LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                          LANDLOCK_ACCESS_FS_MAKE_SYM;
    constexpr long kKnowsRefer = 2;
    constexpr long kKnowsTruncate = 3;
    if (version >= kKnowsRefer) {
        known |= LANDLOCK_ACCESS_FS_REFER;
    }
    if (version >= kKnowsTruncate) {
        known |= kTruncate;
    }
    return known;
}

tl::unexpected<client::Failure> failedTo(const std::string& what, int errorNumber) {
    return client::failed(client::code::kHostFailure, "cannot " + what + ": " + std::strerror(errorNumber));
}

client::Outcome<void> allow(int rules, const std::string& path, std::uint64_t access) {
    const client::Descriptor file(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    if (!file.isOpen() || ::fstat(file.get(), &status) != 0) {
        return {}; // what cannot be opened now need not be later
    }
    landlock_path_beneath_attr rule{};
    rule.allowed_access = S_ISDIR(status.st_mode) ? access : access & kOfFiles;
    rule.parent_fd = file.get();
    if (::syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0U) != 0) {
        return failedTo("keep the right to open " + path, errno);
    }
    return {};
}

void appendList(std::vector<std::string>& to, std::string_view list) {
    while (!list.empty()) {
        const auto end = std::min(list.find(':'), list.size());
        if (list.front() == '/') {
            to.emplace_back(list.substr(0, end));
        }
        list.remove_prefix(std::min(end + 1, list.size()));
    }
}

} // namespace

FileAccess filesOfAViewer(const std::function<std::string(const char*)>& environment) {
    FileAccess access;
    access.readable.assign(std::begin(kSystem), std::end(kSystem));
    access.writable.assign(std::begin(kDevices), std::end(kDevices));
    const std::string home = environment("HOME");
    const auto orBelowHome = [&](const char* variable, const char* name) {
        const std::string value = environment(variable);
        return !value.empty() || home.empty() ? value : home + name;
    };
    const auto append = [&](const std::string& folder, const auto& names) {
        for (const char* name : names) {
            if (!folder.empty()) {
                access.readable.push_back(folder + "/" + name);
            }
        }
    };
    append(home, kHome);
    append(orBelowHome("XDG_CONFIG_HOME", "/.config"), kSettings);
    append(orBelowHome("XDG_DATA_HOME", "/.local/share"), kData);
    if (const std::string key = orBelowHome("XAUTHORITY", "/.Xauthority"); !key.empty()) {
        access.readable.push_back(key);
    }
    // Where a distribution or the user has put Qt's plugins and the system's looks.
    for (const char* variable : {"XDG_DATA_DIRS", "XDG_CONFIG_DIRS", "QT_PLUGIN_PATH", "LD_LIBRARY_PATH"}) {
        appendList(access.readable, environment(variable));
    }
    // GNOME's settings say there that they have changed.
    if (const std::string runtime = environment("XDG_RUNTIME_DIR"); !runtime.empty()) {
        access.writable.push_back(runtime + "/dconf");
    }
    return access;
}

client::Outcome<bool> giveUpFiles(const FileAccess& access) {
    const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0UL, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) {
        return false;
    }
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = knownTo(version);
    const client::Descriptor rules(
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0U)));
    if (!rules.isOpen()) {
        return failedTo("make rules for files", errno);
    }
    for (const auto& [paths, rights] :
         {std::pair(&access.readable, kRead), std::pair(&access.writable, kRead | kWrite)}) {
        for (const std::string& path : *paths) {
            if (auto allowed = allow(rules.get(), path, rights); !allowed) {
                return tl::unexpected(allowed.error());
            }
        }
    }
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return failedTo("give up the right to new privileges", errno);
    }
    if (::syscall(SYS_landlock_restrict_self, rules.get(), 0U) != 0) {
        return failedTo("give up the user's files", errno);
    }
    return true;
}

} // namespace bulkhead::viewer

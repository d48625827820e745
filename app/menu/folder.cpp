// SPDX-License-Identifier: Apache-2.0
#include "menu/folder.hpp"

#include "client/descriptor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace bulkhead::menu {
namespace {

using client::Descriptor;
using client::Outcome;

/// An entry of ours has less than 1 KiB; what is larger than this is none.
constexpr std::size_t kLargestFile = 16384;
constexpr std::string_view kSuffix = ".desktop";

tl::unexpected<client::Failure> hostFailure(const std::string& what, int error) {
    return client::failed(client::code::kHostFailure, what + ": " + std::generic_category().message(error));
}

/// Nothing: it is no readable plain file, or too large.
std::optional<std::string> readFile(int folder, const std::string& name) {
    // Without O_NONBLOCK a pipe of that name would hold us up.
    const Descriptor file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat about {};
    if (!file.isOpen() || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return std::nullopt;
    }
    std::string text(kLargestFile + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return std::nullopt;
        }
        if (count == 0) {
            text.resize(size);
            return text;
        }
        size += static_cast<std::size_t>(count);
    }
    return std::nullopt;
}

bool exists(int folder, const std::string& name) {
    struct stat about {};
    return ::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/// Our files of that domain: name and text.
Outcome<std::map<std::string, std::string>> ownFiles(int folder, std::string_view domain) {
    const std::string prefix = fileNamePrefix(domain);
    const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> reader(again < 0 ? nullptr : ::fdopendir(again), &::closedir);
    if (!reader) {
        const int error = errno;
        if (again >= 0) {
            ::close(again);
        }
        return hostFailure("cannot list the menu's folder", error);
    }
    std::map<std::string, std::string> files;
    errno = 0;
    while (const dirent* item = ::readdir(reader.get())) {
        const std::string name = item->d_name;
        if (name.starts_with(prefix) && name.ends_with(kSuffix)) {
            if (auto text = readFile(folder, name); text && ownerOf(*text) == domain) {
                files.emplace(name, std::move(*text));
            }
        }
        errno = 0;
    }
    return errno != 0 ? hostFailure("cannot list the menu's folder", errno)
                      : Outcome<decltype(files)>(std::move(files));
}

bool writeAll(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = ::write(file, text.data(), text.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return false;
        }
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

/// A new file of that text in the folder, under a name that no menu looks at.
int makeDraft(int folder, const std::string& draft, std::string_view text) {
    ::unlinkat(folder, draft.c_str(), 0); // of a process that was killed; the lock is ours
    const Descriptor file(::openat(folder, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    // The mode is set, so that the umask has no say.
    if (!file.isOpen() || !writeAll(file.get(), text) || ::fchmod(file.get(), 0644) != 0) {
        return errno;
    }
    return 0;
}

/// 0, or the error. EEXIST: `isNew`, and meanwhile somebody put a file there.
int writeFile(int folder, const std::string& draft, const std::string& name, std::string_view text, bool isNew) {
    if (const int error = makeDraft(folder, draft, text); error != 0) {
        ::unlinkat(folder, draft.c_str(), 0);
        return error;
    }
    int result = ::renameat2(folder, draft.c_str(), folder, name.c_str(), isNew ? RENAME_NOREPLACE : 0U);
    if (result != 0 && errno == EINVAL) { // the file system does not know the flag
        result = ::renameat(folder, draft.c_str(), folder, name.c_str());
    }
    const int error = result == 0 ? 0 : errno;
    if (error != 0) {
        ::unlinkat(folder, draft.c_str(), 0);
    }
    return error;
}

/// Waits a moment for another process that changes the menu. File systems without locks do without.
bool lock(int folder) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i) {
        if (::flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
            return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

Outcome<Descriptor> openFolder(const std::filesystem::path& path, bool make) {
    if (path.empty()) {
        return client::failed(client::code::kHostFailure,
                              "there is no folder for the menu: neither XDG_DATA_HOME nor HOME is set");
    }
    if (make) {
        std::error_code error;
        std::filesystem::create_directories(path, error);
        if (error) {
            return client::failed(client::code::kHostFailure,
                                  "cannot make the folder " + path.string() + ": " + error.message());
        }
    }
    Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.isOpen() && errno != ENOENT) {
        return hostFailure("cannot open the folder " + path.string(), errno);
    }
    return folder;
}

} // namespace

std::filesystem::path userFolder() {
    const auto folderIn = [](const char* variable) {
        const char* value = std::getenv(variable);
        const std::filesystem::path path = value == nullptr ? "" : value;
        return path.is_absolute() ? path : std::filesystem::path(); // the specification: a relative one is ignored
    };
    if (const auto data = folderIn("XDG_DATA_HOME"); !data.empty()) {
        return data / "applications";
    }
    const auto home = folderIn("HOME");
    return home.empty() ? home : home / ".local/share/applications";
}

Outcome<Changes> Folder::agree(std::string_view domain, const std::vector<App>& apps) {
    if (!isExportableDomain(domain)) {
        return client::failed(client::code::kInvalidArgument,
                              "only domains with a name of their own have entries in the menu");
    }
    std::map<std::string, const App*> wanted; // by file name
    for (const App& app : apps) {
        if (isAppId(app.id)) {
            wanted.emplace(fileName(domain, app.id), &app);
        }
    }
    if (wanted.size() > kMostEntries) {
        return client::failed(client::code::kGuestFailure,
                              "it lists more than " + std::to_string(kMostEntries) + " apps");
    }
    const auto folder = openFolder(m_path, !wanted.empty());
    if (!folder) {
        return tl::unexpected<client::Failure>(folder.error());
    }
    Changes changes;
    if (!folder->isOpen()) {
        return changes; // no folder, no entries
    }
    if (!lock(folder->get())) {
        return client::failed(client::code::kHostFailure, "another program is changing the menu; try it again");
    }
    auto own = ownFiles(folder->get(), domain);
    if (!own) {
        return tl::unexpected<client::Failure>(own.error());
    }
    const std::string draft = "." + fileNamePrefix(domain) + "new";
    for (const auto& [name, app] : wanted) {
        const std::string text = entryText(domain, *app);
        const auto existing = own->find(name);
        const bool isNew = existing == own->end();
        if (isNew && exists(folder->get(), name)) {
            changes.blocked.push_back(name);
            continue;
        }
        if (isNew || existing->second != text) {
            const int error = writeFile(folder->get(), draft, name, text, isNew);
            if (error == EEXIST) {
                changes.blocked.push_back(name);
                continue;
            }
            if (error != 0) {
                return hostFailure("cannot write " + (m_path / name).string(), error);
            }
            ++changes.written;
        }
        changes.present.push_back(app->id);
    }
    for (const auto& [name, text] : *own) {
        if (!wanted.contains(name)) {
            if (::unlinkat(folder->get(), name.c_str(), 0) != 0 && errno != ENOENT) {
                return hostFailure("cannot remove " + (m_path / name).string(), errno);
            }
            ++changes.removed;
        }
    }
    return changes;
}

bool Folder::hasEntries(std::string_view domain) const {
    if (!isExportableDomain(domain)) {
        return false;
    }
    const auto folder = openFolder(m_path, false);
    if (!folder || !folder->isOpen()) {
        return false;
    }
    const auto own = ownFiles(folder->get(), domain);
    return own && !own->empty();
}

} // namespace bulkhead::menu

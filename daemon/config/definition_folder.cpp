// SPDX-License-Identifier: Apache-2.0
#include "config/definition_folder.hpp"

#include "base/scope_guard.hpp"
#include "config/limits.hpp"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::config {

namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

} // namespace

Result<UniqueFd> openFolder(const std::filesystem::path& path) {
    UniqueFd fd(::open(path.c_str(), kFolderFlags));
    if (!fd && errno != ENOENT) {
        return failErrno("cannot open the folder " + path.string(), errno);
    }
    return fd;
}

Result<UniqueFd> openFolderAt(int parent, const std::string& name, const std::filesystem::path& shownAs, bool make,
                              Readers readers) {
    const mode_t mode = readers == Readers::Everybody ? 0755 : 0700;
    if (make && ::mkdirat(parent, name.c_str(), 0700) == 0) {
        if (::fchmodat(parent, name.c_str(), mode, 0) != 0 || ::fsync(parent) != 0) {
            return failErrno("cannot make the folder " + shownAs.string(), errno);
        }
    } else if (make && errno != EEXIST) {
        return failErrno("cannot make the folder " + shownAs.string(), errno);
    }
    UniqueFd fd(::openat(parent, name.c_str(), kFolderFlags));
    if (!fd && (make || errno != ENOENT)) {
        return failErrno("cannot open the folder " + shownAs.string(), errno);
    }
    return fd;
}

Result<std::vector<std::string>> namesIn(int folder, const std::filesystem::path& shownAs) {
    // A descriptor of its own: the position in a folder is shared between copies.
    UniqueFd own(::openat(folder, ".", kFolderFlags));
    DIR* const stream = own ? ::fdopendir(own.get()) : nullptr;
    if (stream == nullptr) {
        return failErrno("cannot list " + shownAs.string(), errno);
    }
    [[maybe_unused]] const int given = own.release();
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
        if (entry->d_name[0] != '.') {
            names.emplace_back(entry->d_name);
        }
        errno = 0;
    }
    if (errno != 0) {
        return failErrno("cannot list " + shownAs.string(), errno);
    }
    std::sort(names.begin(), names.end());
    return names;
}

Result<std::string> readDefinition(int folder, const std::string& name, const std::filesystem::path& shownAs) {
    const auto bad = [&](const std::string& why) {
        return fail(ErrorCode::InvalidArgument, shownAs.string() + ": " + why);
    };
    // NONBLOCK: opening a FIFO must not hang the daemon.
    const UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) {
        if (errno == ELOOP) {
            return bad("is a symbolic link; put the file itself there");
        }
        return failErrno("cannot open " + shownAs.string(), errno);
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return failErrno("cannot read " + shownAs.string(), errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return bad("is not a regular file");
    }
    if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
        return bad("does not belong to root; chown it to root");
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return bad("can be written by others; run: chmod go-w " + shownAs.string());
    }
    std::string text(kMostFileBytes + 1, '\0');
    std::size_t filled = 0;
    while (filled < text.size()) {
        const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failErrno("cannot read " + shownAs.string(), errno);
        }
        if (got == 0) {
            break;
        }
        filled += static_cast<std::size_t>(got);
    }
    if (filled > kMostFileBytes) {
        return bad("is larger than 64 KiB, which no definition needs");
    }
    text.resize(filled);
    return text;
}

Status writeDefinition(int folder, const std::string& name, const std::filesystem::path& shownAs, std::string_view text,
                       Readers readers) {
    const std::string what = "cannot write " + shownAs.string();
    // Begins with a dot, so that a leftover of a crash is never read as a definition; the next save overwrites it.
    const std::string temporary = "." + name + ".new";
    if (::unlinkat(folder, temporary.c_str(), 0) != 0 && errno != ENOENT) {
        return failErrno(what, errno);
    }
    UniqueFd fd(::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) {
        return failErrno(what, errno);
    }
    ScopeGuard undo([&] { ::unlinkat(folder, temporary.c_str(), 0); });
    while (!text.empty()) {
        const ssize_t written = ::write(fd.get(), text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            return failErrno(what, errno);
        }
        text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
    }
    if (::fchmod(fd.get(), readers == Readers::Everybody ? 0644 : 0600) != 0 || ::fsync(fd.get()) != 0) {
        return failErrno(what, errno);
    }
    if (::renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
        return failErrno(what, errno);
    }
    undo.dismiss();
    if (::fsync(folder) != 0) {
        return failErrno(what, errno);
    }
    return {};
}

Status removeDefinitionFile(int folder, const std::string& name, const std::filesystem::path& shownAs) {
    if (::unlinkat(folder, name.c_str(), 0) != 0) {
        return errno == ENOENT ? Status() : Status(failErrno("cannot remove " + shownAs.string(), errno));
    }
    if (::fsync(folder) != 0) {
        return failErrno("cannot remove " + shownAs.string(), errno);
    }
    return {};
}

} // namespace bulkhead::config

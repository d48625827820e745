// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_tree.hpp"

#include "base/ids.hpp"
#include "base/scope_guard.hpp"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::imaging {

namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
/// Each level holds a descriptor; real systems stay far below.
constexpr int kDeepest = 200;

Result<std::vector<std::string>> namesOf(int folder, const std::string& what) {
    UniqueFd own(::openat(folder, ".", kFolderFlags));
    DIR* const stream = own ? ::fdopendir(own.get()) : nullptr;
    if (stream == nullptr) {
        return failErrno(what, errno);
    }
    [[maybe_unused]] const int given = own.release();
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream, ::closedir);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
        errno = 0;
    }
    if (errno != 0) {
        return failErrno(what, errno);
    }
    std::sort(names.begin(), names.end());
    return names;
}

Status removeAt(int parent, const std::string& name, const std::string& what, int depth) {
    if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) {
        return {};
    }
    if (errno != EISDIR && errno != EPERM) {
        return failErrno(what, errno);
    }
    if (depth > kDeepest) {
        return fail(ErrorCode::HostFailure, what + ": folders are nested too deep; remove it by hand");
    }
    {
        const UniqueFd folder(::openat(parent, name.c_str(), kFolderFlags));
        if (!folder) {
            return failErrno(what, errno);
        }
        const auto names = namesOf(folder.get(), what);
        if (!names) {
            return fail(names.error());
        }
        for (const std::string& inner : *names) {
            if (auto removed = removeAt(folder.get(), inner, what, depth + 1); !removed) {
                return removed;
            }
        }
    }
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
        return failErrno(what, errno);
    }
    return {};
}

Status setAccessOfRegular(const std::filesystem::path& file, const Access& access, bool mayHaveOtherNames) {
    // NONBLOCK: whatever it is, opening must not hang.
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) {
        if (errno == ENOENT) {
            return fail(ErrorCode::NotFound, file.string() + " is not there");
        }
        return failErrno("cannot open " + file.string(), errno);
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return failErrno("cannot look at " + file.string(), errno);
    }
    if (!S_ISREG(status.st_mode) || (status.st_nlink != 1 && !mayHaveOtherNames)) {
        return fail(ErrorCode::HostFailure, file.string() + " is not a regular file with one name");
    }
    return setAccess(fd.get(), access, file);
}

} // namespace

Status setAccess(int fd, const Access& access, const std::filesystem::path& shownAs) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) {
        return failErrno("cannot look at " + shownAs.string(), errno);
    }
    // First the owner: a change of owner clears mode bits.
    if ((status.st_uid != access.uid || status.st_gid != access.gid) && ::fchown(fd, access.uid, access.gid) != 0) {
        return failErrno("cannot change the owner of " + shownAs.string(), errno);
    }
    if (::fchmod(fd, access.mode) != 0) {
        return failErrno("cannot change the mode of " + shownAs.string(), errno);
    }
    return {};
}

Status setAccess(const std::filesystem::path& file, const Access& access) {
    return setAccessOfRegular(file, access, false);
}

Status setAccessOfLayer(const std::filesystem::path& file, const Access& access) {
    return setAccessOfRegular(file, access, true);
}

Status replaceFile(const std::filesystem::path& file, std::string_view bytes, const Access& access, bool sync) {
    const std::filesystem::path temporary =
        file.parent_path() / ("." + file.filename().string() + "-" + randomUuidText());
    ScopeGuard undo([&] { ::unlink(temporary.c_str()); });
    const Status replaced =
        writeNewFile(temporary, bytes, access, sync).and_then([&] { return renamePath(temporary, file); });
    if (!replaced) {
        return replaced;
    }
    undo.dismiss();
    return sync ? syncPath(file.parent_path()) : Status{};
}

Status linkFile(const std::filesystem::path& file, const std::filesystem::path& name) {
    if (auto facts = factsOf(file); !facts) {
        return fail(facts.error());
    }
    if (::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), 0) != 0) {
        return failErrno("cannot give " + file.string() + " the name " + name.string(), errno);
    }
    return {};
}

Result<FileFacts> factsOf(const std::filesystem::path& file) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0) {
        if (errno == ENOENT) {
            return fail(ErrorCode::NotFound, file.string() + " is not there");
        }
        return failErrno("cannot look at " + file.string(), errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::HostFailure, file.string() + " is not a regular file");
    }
    return FileFacts{static_cast<Bytes>(status.st_size),
                     static_cast<Bytes>(status.st_blocks) * 512,
                     status.st_mode & 07777U,
                     status.st_uid,
                     status.st_gid,
                     status.st_ino};
}

Result<std::string> readSmallFile(const std::filesystem::path& file, std::size_t most) {
    // NONBLOCK: whatever it is, opening must not hang.
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) {
        if (errno == ENOENT) {
            return fail(ErrorCode::NotFound, file.string() + " is not there");
        }
        return failErrno("cannot open " + file.string(), errno);
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
        return failErrno("cannot look at " + file.string(), errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::HostFailure, file.string() + " is not a regular file");
    }
    std::string text(most + 1, '\0');
    std::size_t filled = 0;
    while (filled < text.size()) {
        const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
        if (got < 0 && errno != EINTR) {
            return failErrno("cannot read " + file.string(), errno);
        }
        if (got == 0) {
            break;
        }
        filled += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    if (filled > most) {
        return fail(ErrorCode::HostFailure, file.string() + " is larger than " + std::to_string(most) + " bytes");
    }
    text.resize(filled);
    return text;
}

Status makeFolder(const std::filesystem::path& folder, const Access& access) {
    if (::mkdir(folder.c_str(), 0700) != 0) {
        if (errno == EEXIST) {
            return fail(ErrorCode::AlreadyExists, folder.string() + " exists already");
        }
        return failErrno("cannot make the folder " + folder.string(), errno);
    }
    return ensureFolder(folder, access);
}

Status ensureFolder(const std::filesystem::path& folder, const Access& access) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        return failErrno("cannot make the folder " + folder.string(), errno);
    }
    const UniqueFd fd(::open(folder.c_str(), kFolderFlags));
    if (!fd) {
        return failErrno("cannot open the folder " + folder.string(), errno);
    }
    return setAccess(fd.get(), access, folder);
}

Status writeNewFile(const std::filesystem::path& file, std::string_view bytes, const Access& access, bool sync) {
    const std::string what = "cannot write " + file.string();
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!fd) {
        return failErrno(what, errno);
    }
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
        if (written < 0 && errno != EINTR) {
            return failErrno(what, errno);
        }
        bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
    }
    if (auto given = setAccess(fd.get(), access, file); !given) {
        return given;
    }
    if (sync && ::fsync(fd.get()) != 0) {
        return failErrno(what, errno);
    }
    return {};
}

Status syncPath(const std::filesystem::path& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) {
        return failErrno("cannot bring " + path.string() + " to the disk", errno);
    }
    return {};
}

Status renamePath(const std::filesystem::path& from, const std::filesystem::path& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) {
        return failErrno("cannot rename " + from.string() + " to " + to.filename().string(), errno);
    }
    return {};
}

Status removeTree(const std::filesystem::path& path) {
    const std::string what = "cannot remove " + path.string();
    const UniqueFd parent(::open(path.parent_path().c_str(), kFolderFlags));
    if (!parent) {
        return errno == ENOENT ? Status() : Status(failErrno(what, errno));
    }
    return removeAt(parent.get(), path.filename().string(), what, 0);
}

Result<std::vector<std::string>> listFolder(const std::filesystem::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), kFolderFlags));
    if (!fd) {
        if (errno == ENOENT) {
            return std::vector<std::string>{};
        }
        return failErrno("cannot list " + folder.string(), errno);
    }
    return namesOf(fd.get(), "cannot list " + folder.string());
}

bool isThere(const std::filesystem::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
}

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_image.hpp"

#include "base/scope_guard.hpp"
#include "base/unique_fd.hpp"
#include "imaging/sparse_copy.hpp"
#include "memory/delta_file.hpp"
#include "memory/file_io.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::memory {

namespace {

Result<UniqueFd> openImage(const std::filesystem::path& file, Bytes ram) {
    const std::string what = "cannot open memory image " + file.string();
    UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno == ENOENT) {
        return fail(ErrorCode::NotFound, "no memory image " + file.string());
    }
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
        return failErrno(what, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::HostFailure, what + ": not a regular file");
    }
    if (static_cast<Bytes>(status.st_size) != ram) {
        return fail(ErrorCode::HostFailure, "memory image " + file.string() + " is damaged: it has " +
                                                std::to_string(status.st_size) + " bytes instead of " +
                                                std::to_string(ram));
    }
    return fd;
}

/// True when the data is shared, false when it was copied.
Result<bool> copyParent(const ComposeSpec& spec, int to) {
    const auto from = openImage(*spec.parent, spec.ram);
    if (!from) {
        return fail(from.error());
    }
    if (::ioctl(to, FICLONE, from->get()) == 0) {
        return true;
    }
    const auto copied = imaging::copySparse(from->get(), to, spec.parent->string(), spec.ram);
    if (!copied) {
        return fail(copied.error());
    }
    if (copied->digest != spec.parentDigest) {
        return fail(ErrorCode::HostFailure, "memory image " + spec.parent->string() + " is damaged: its digest is " +
                                                copied->digest + " instead of " + spec.parentDigest);
    }
    return false;
}

Status punch(int fd, Bytes offset, Bytes length, const std::string& what) {
    if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(length)) == 0) {
        return {};
    }
    if (errno != EOPNOTSUPP) {
        return failErrno(what, errno);
    }
    const std::string zeros(std::min(length, kMiB), '\0');
    for (Bytes done = 0; done < length; done += zeros.size()) {
        const auto piece = std::string_view(zeros).substr(0, std::min<Bytes>(zeros.size(), length - done));
        if (auto written = writeFully(fd, piece, offset + done, what); !written) {
            return written;
        }
    }
    return {};
}

Status apply(const DeltaStep& step, Bytes ram, int fd, const std::string& what) {
    auto delta = DeltaReader::open(step.file);
    if (!delta) {
        return fail(delta.error());
    }
    if (delta->index().ram != ram) {
        return fail(ErrorCode::HostFailure, step.file.string() + " is of a guest with " +
                                                formatBytes(delta->index().ram) + " of memory, not " +
                                                formatBytes(ram));
    }
    if (delta->index().parent != step.parent) {
        return fail(ErrorCode::HostFailure,
                    step.file.string() + " is a delta of image " + delta->index().parent + ", not of " + step.parent);
    }
    const auto read = delta->read({
        [&](Bytes offset, std::string_view pages) { return writeFully(fd, pages, offset, what); },
        [&](Bytes offset, Bytes length) { return punch(fd, offset, length, what); },
    });
    return read ? Status{} : fail(read.error());
}

Status checkSpec(const ComposeSpec& spec) {
    if (spec.ram == 0 || spec.ram % kPage != 0 || spec.ram > kMostRam) {
        return fail(ErrorCode::InvalidArgument,
                    "a guest cannot have " + std::to_string(spec.ram) + " bytes of memory; whole pages are expected");
    }
    const std::string_view first = spec.parent ? std::string_view(spec.parentDigest) : zeroParent();
    if (spec.parent && !isDigest(spec.parentDigest)) {
        return fail(ErrorCode::InvalidArgument, "no valid digest for memory image " + spec.parent->string());
    }
    if (!spec.deltas.empty() && spec.deltas.front().parent != first) {
        return fail(ErrorCode::InvalidArgument, spec.deltas.front().file.string() + " belongs to image " +
                                                    spec.deltas.front().parent + ", not to " + std::string(first));
    }
    return {};
}

} // namespace

std::filesystem::path imagePath(const std::filesystem::path& folder, const std::string& digest) {
    return folder / (digest + ".ram");
}

Result<MemoryImage> composeImage(const ComposeSpec& spec) {
    if (auto good = checkSpec(spec); !good) {
        return fail(good.error());
    }
    std::string temporary = spec.folder / (std::string(kUnfinishedPrefix) + "XXXXXX");
    const std::string what = "cannot make a memory image in " + spec.folder.string();
    const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC)); // mode 0600
    if (!fd) {
        return failErrno(what, errno);
    }
    ScopeGuard removal([&] { ::unlink(temporary.c_str()); });

    MemoryImage image;
    image.size = spec.ram;
    if (spec.parent) {
        const auto copied = copyParent(spec, fd.get());
        if (!copied) {
            return fail(copied.error());
        }
        image.reflinked = *copied;
    } else if (::ftruncate(fd.get(), static_cast<off_t>(spec.ram)) != 0) {
        return failWriting(what, errno);
    }
    for (const DeltaStep& step : spec.deltas) {
        if (auto applied = apply(step, spec.ram, fd.get(), what); !applied) {
            return fail(applied.error());
        }
    }
    auto content = imaging::contentDigest(fd.get(), temporary, spec.ram);
    if (!content) {
        return fail(content.error());
    }
    image.digest = std::move(content->digest);
    image.file = imagePath(spec.folder, image.digest);
    if (auto given = imaging::setAccess(fd.get(), spec.access, image.file); !given) {
        return fail(given.error());
    }
    struct stat status {};
    if (::fsync(fd.get()) != 0 || ::fstat(fd.get(), &status) != 0) {
        return failErrno(what, errno);
    }
    image.allocated = static_cast<Bytes>(status.st_blocks) * 512;
    // Never over an existing image: emulators may have that inode mapped, and it has the same content.
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, image.file.c_str(), RENAME_NOREPLACE) == 0) {
        removal.dismiss();
    } else if (errno != EEXIST) {
        return failErrno(what, errno);
    }
    if (auto synced = imaging::syncPath(spec.folder); !synced) {
        return fail(synced.error());
    }
    return image;
}

Status verifyImage(const std::filesystem::path& file, const std::string& digest, Bytes ram) {
    const auto fd = openImage(file, ram);
    if (!fd) {
        return fail(fd.error());
    }
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0) {
        return failErrno("cannot read memory image " + file.string(), errno);
    }
    if ((status.st_mode & 0222U) != 0) {
        return fail(ErrorCode::HostFailure, "memory image " + file.string() + " is writable; images never change");
    }
    const auto content = imaging::contentDigest(fd->get(), file.string(), ram);
    if (!content) {
        return fail(content.error());
    }
    if (content->digest != digest) {
        return fail(ErrorCode::HostFailure, "memory image " + file.string() + " is damaged: its digest is " +
                                                content->digest + " instead of " + digest);
    }
    return {};
}

} // namespace bulkhead::memory

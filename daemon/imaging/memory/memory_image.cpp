// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_image.hpp"

#include "base/scope_guard.hpp"
#include "base/unique_fd.hpp"
#include "memory/delta_file.hpp"
#include "memory/file_io.hpp"
#include "memory/image_chunks.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <linux/fs.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace bulkhead::memory {

namespace {

Error damaged(const std::filesystem::path& image, const std::string& found, const std::string& expected) {
    return {ErrorCode::HostFailure,
            "memory image " + image.string() + " is damaged: its digest is " + found + " instead of " + expected};
}

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

/// Copies the data and leaves the holes.
Status copyData(int from, int to, Bytes size, const std::string& what) {
    if (::ftruncate(to, static_cast<off_t>(size)) != 0) {
        return failWriting(what, errno);
    }
    std::vector<char> buffer;
    for (Bytes offset = 0; offset < size;) {
        const auto extent = nextExtent(from, offset, size, what);
        if (!extent) {
            return fail(extent.error());
        }
        offset = extent->begin;
        while (offset < extent->end) {
            off64_t source = static_cast<off64_t>(offset);
            off64_t target = source;
            const ssize_t copied =
                buffer.empty() ? ::copy_file_range(from, &source, to, &target, extent->end - offset, 0) : -1;
            if (copied > 0) {
                offset += static_cast<Bytes>(copied);
                continue;
            }
            if (buffer.empty() && copied < 0 && errno != EXDEV && errno != ENOSYS && errno != EOPNOTSUPP &&
                errno != EINVAL) {
                return failWriting(what, errno);
            }
            buffer.resize(kMiB); // the kernel cannot between these two: by hand from here on
            const Bytes piece = std::min<Bytes>(buffer.size(), extent->end - offset);
            if (auto read = readFully(from, buffer.data(), piece, offset, what); !read) {
                return read;
            }
            if (auto written = writeFully(to, {buffer.data(), piece}, offset, what); !written) {
                return written;
            }
            offset += piece;
        }
        if (extent->begin == extent->end) {
            break;
        }
    }
    return {};
}

struct CopiedParent {
    bool reflinked = false;
    ImageChunks chunks;
};

Result<CopiedParent> copyParent(const ComposeSpec& spec, int to, const std::string& what) {
    const auto from = openImage(*spec.parent, spec.ram);
    if (!from) {
        return fail(from.error());
    }
    auto chunks = ImageChunks::load(chunksPath(*spec.parent), spec.parentDigest, spec.ram);
    if (!chunks) {
        chunks = ImageChunks::ofFile(from->get(), spec.ram, spec.parent->string());
        if (!chunks) {
            return fail(chunks.error());
        }
        if (const std::string digest = chunks->digest(); digest != spec.parentDigest) {
            return fail(damaged(*spec.parent, digest, spec.parentDigest));
        }
    }
    const bool reflinked = ::ioctl(to, FICLONE, from->get()) == 0;
    if (!reflinked) {
        if (auto copied = copyData(from->get(), to, spec.ram, what); !copied) {
            return fail(copied.error());
        }
    }
    return CopiedParent{reflinked, std::move(*chunks)};
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

Result<DeltaReader> openDelta(const DeltaStep& step, Bytes ram) {
    auto delta = DeltaReader::open(step.file);
    if (!delta) {
        return delta;
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
    return delta;
}

Result<std::vector<DeltaReader>> openDeltas(const ComposeSpec& spec) {
    std::vector<DeltaReader> deltas;
    for (const DeltaStep& step : spec.deltas) {
        auto delta = openDelta(step, spec.ram);
        if (!delta) {
            return fail(delta.error());
        }
        deltas.push_back(std::move(*delta));
    }
    return deltas;
}

std::set<std::uint64_t> chunksOf(const std::vector<DeltaReader>& deltas) {
    std::set<std::uint64_t> chunks;
    for (const DeltaReader& delta : deltas) {
        for (const Run& run : delta.index().runs) {
            const std::uint64_t last = ((run.first + run.count) * kPage - 1) / kChunk;
            for (std::uint64_t chunk = run.first * kPage / kChunk; chunk <= last; ++chunk) {
                chunks.insert(chunks.end(), chunk);
            }
        }
    }
    return chunks;
}

Status apply(DeltaReader& delta, int fd, const std::string& what) {
    const auto read = delta.read({
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

std::filesystem::path chunksPath(const std::filesystem::path& image) {
    return std::filesystem::path(image).replace_extension(".chunks");
}

Result<MemoryImage> composeImage(const ComposeSpec& spec) {
    if (auto good = checkSpec(spec); !good) {
        return fail(good.error());
    }
    auto deltas = openDeltas(spec);
    if (!deltas) {
        return fail(deltas.error());
    }
    const std::set<std::uint64_t> changed = chunksOf(*deltas);
    std::string temporary = spec.folder / (std::string(kUnfinishedPrefix) + "XXXXXX");
    const std::string what = "cannot make a memory image in " + spec.folder.string();
    const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC)); // mode 0600
    if (!fd) {
        return failErrno(what, errno);
    }
    const std::filesystem::path file = temporary;
    const ScopeGuard removal([&] { ::unlink(file.c_str()); }); // finds nothing once it has its name

    MemoryImage image;
    image.size = spec.ram;
    ImageChunks chunks(spec.ram);
    if (spec.parent) {
        auto copied = copyParent(spec, fd.get(), what);
        if (!copied) {
            return fail(copied.error());
        }
        image.reflinked = copied->reflinked;
        chunks = std::move(copied->chunks);
        // These get new digests. Without this check, damage in their other pages would become part of the image.
        if (auto good = chunks.check(fd.get(), changed, "memory image " + spec.parent->string()); !good) {
            return fail(good.error());
        }
    } else if (::ftruncate(fd.get(), static_cast<off_t>(spec.ram)) != 0) {
        return failWriting(what, errno);
    }
    for (DeltaReader& delta : *deltas) {
        if (auto applied = apply(delta, fd.get(), what); !applied) {
            return fail(applied.error());
        }
    }
    if (auto updated = chunks.update(fd.get(), changed, temporary); !updated) {
        return fail(updated.error());
    }
    image.digest = chunks.digest();
    image.file = imagePath(spec.folder, image.digest);
    // The list first: an image without one costs time, a list without an image only its few bytes.
    const std::filesystem::path list = temporary + ".chunks";
    const ScopeGuard listRemoval([&] { ::unlink(list.c_str()); });
    if (auto written = imaging::writeNewFile(list, chunks.encode(), spec.access, spec.sync); !written) {
        return fail(written.error());
    }
    if (auto given = imaging::setAccess(fd.get(), spec.access, image.file); !given) {
        return fail(given.error());
    }
    struct stat status {};
    if ((spec.sync && ::fsync(fd.get()) != 0) || ::fstat(fd.get(), &status) != 0) {
        return failErrno(what, errno);
    }
    image.allocated = static_cast<Bytes>(status.st_blocks) * 512;
    // Never over an existing image: emulators may have that inode mapped, and it has the same content.
    for (const auto& [from, to] : {std::pair(list, chunksPath(image.file)), std::pair(file, image.file)}) {
        if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0 && errno != EEXIST) {
            return failErrno(what, errno);
        }
    }
    if (auto synced = spec.sync ? imaging::syncPath(spec.folder) : Status{}; !synced) {
        return fail(synced.error());
    }
    return image;
}

Status syncImage(const std::filesystem::path& image) {
    for (const std::filesystem::path& path : {image, chunksPath(image), image.parent_path()}) {
        if (auto synced = imaging::syncPath(path); !synced) {
            return synced;
        }
    }
    return {};
}

Status removeImage(const std::filesystem::path& image) {
    for (const std::filesystem::path& path : {image, chunksPath(image)}) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
            return failErrno("cannot delete " + path.string(), errno);
        }
    }
    return {};
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
    const auto chunks = ImageChunks::ofFile(fd->get(), ram, file.string());
    if (!chunks) {
        return fail(chunks.error());
    }
    if (const std::string found = chunks->digest(); found != digest) {
        return fail(damaged(file, found, digest));
    }
    return {};
}

} // namespace bulkhead::memory

// SPDX-License-Identifier: Apache-2.0
#include "memcap/emulator.hpp"

#include "memory/packed_delta.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

namespace bulkhead::memcap {

namespace {

using memory::kPage;

// linux: Documentation/admin-guide/mm/pagemap.rst
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62U;
constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61U;

constexpr std::size_t kEntriesAtOnce = 64 * 1024;
/// IOV_MAX: more are refused.
constexpr std::size_t kRunsAtOnce = 1024;
constexpr Bytes kBytesAtOnce = 256 * kMiB;
constexpr std::size_t kLargestMaps = 64 * kMiB;

Result<std::string> readToEnd(int fd, const std::string& what) {
    std::string text;
    std::array<char, 64 * kKiB> piece{};
    if (::lseek(fd, 0, SEEK_SET) < 0) {
        return failErrno(what, errno);
    }
    while (true) {
        const ssize_t got = ::read(fd, piece.data(), piece.size());
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failErrno(what, errno);
        }
        if (got == 0) {
            return text;
        }
        text.append(piece.data(), static_cast<std::size_t>(got));
        if (text.size() > kLargestMaps) {
            return fail(ErrorCode::LimitExceeded, what + ": it is too large");
        }
    }
}

/// The process that a pidfd stands for; -1 when it has been collected.
Result<pid_t> pidOf(int pidfd) {
    const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd);
    const UniqueFd info(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!info) {
        return failErrno("cannot open " + path, errno);
    }
    const auto text = readToEnd(info.get(), "cannot read " + path);
    if (!text) {
        return fail(text.error());
    }
    constexpr std::string_view kKey = "\nPid:\t";
    const auto at = text->find(kKey);
    if (at == std::string::npos) {
        return fail(ErrorCode::InvalidArgument, "descriptor " + std::to_string(pidfd) + " is not of a process");
    }
    return static_cast<pid_t>(std::strtol(text->c_str() + at + kKey.size(), nullptr, 10));
}

} // namespace

std::uint64_t countPages(std::span<const PageRun> runs) {
    std::uint64_t sum = 0;
    for (const PageRun& run : runs) {
        sum += run.count;
    }
    return sum;
}

std::string Emulator::what(const char* act) const {
    return std::string(act) + " of emulator " + std::to_string(m_pid);
}

Result<Emulator> Emulator::open(pid_t pid, UniqueFd pidfd) {
    const std::string name = "emulator " + std::to_string(pid);
    const auto found = pidOf(pidfd.get());
    if (!found) {
        return fail(found.error());
    }
    if (*found != pid && *found > 0) {
        return fail(ErrorCode::InvalidArgument,
                    "the descriptor is of process " + std::to_string(*found) + ", not of " + name);
    }
    const std::string folder = "/proc/" + std::to_string(pid);
    UniqueFd maps(::open((folder + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
    UniqueFd pagemap(::open((folder + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
    const int error = errno;
    Emulator emulator(pid, std::move(pidfd), std::move(maps), std::move(pagemap));
    // It lives after the opening, so the number was its own all the time, and what was opened is of its memory.
    const bool opened = emulator.m_maps && emulator.m_pagemap;
    if (auto alive = emulator.alive(opened ? std::chrono::milliseconds(0) : kEndingTime); !alive) {
        return fail(alive.error());
    }
    if (!opened) {
        return failErrno("cannot look at the memory of " + name, error);
    }
    return emulator;
}

Status Emulator::alive(std::chrono::milliseconds patience) const {
    pollfd waiting{m_pidfd.get(), POLLIN, 0};
    int ready = 0;
    do {
        ready = ::poll(&waiting, 1, static_cast<int>(patience.count()));
    } while (ready < 0 && errno == EINTR);
    if (ready < 0) {
        return failErrno(what("cannot watch the process"), errno);
    }
    if (ready > 0) {
        return fail(ErrorCode::NotFound, "emulator " + std::to_string(m_pid) + " has ended");
    }
    return {};
}

Result<std::vector<Vma>> Emulator::maps() const {
    const auto text = readToEnd(m_maps.get(), what("cannot read the memory map"));
    return text ? parseMaps(*text) : fail(text.error());
}

Status Emulator::privatePages(std::uint64_t address, Bytes ram, std::vector<PageRun>& runs) const {
    const std::string act = what("cannot read the page map");
    const std::uint64_t pages = ram / kPage;
    std::vector<std::uint64_t> entries(std::min<std::uint64_t>(kEntriesAtOnce, pages));
    for (std::uint64_t done = 0; done < pages;) {
        const std::size_t wanted = std::min<std::uint64_t>(entries.size(), pages - done) * sizeof(std::uint64_t);
        const auto offset = static_cast<off_t>((address / kPage + done) * sizeof(std::uint64_t));
        const ssize_t got = ::pread(m_pagemap.get(), entries.data(), wanted, offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return failErrno(act, errno);
        }
        const auto count = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
        if (count == 0) { // the memory of an ended process
            return fail(ErrorCode::HostFailure, act + ": it is too short");
        }
        for (std::size_t i = 0; i < count; ++i) {
            if ((entries[i] & (kPresent | kSwapped)) == 0 || (entries[i] & kOfFile) != 0) {
                continue;
            }
            const std::uint64_t page = done + i;
            if (!runs.empty() && runs.back().first + runs.back().count == page) {
                ++runs.back().count;
            } else {
                runs.push_back({page, 1});
            }
        }
        done += count;
    }
    return {};
}

Status Emulator::copy(std::uint64_t address, std::span<const PageRun> runs, char* target) const {
    if (auto before = alive(); !before) {
        return before;
    }
    std::vector<iovec> remote;
    remote.reserve(kRunsAtOnce);
    std::size_t next = 0;
    Bytes inside = 0; // of runs[next], already taken
    while (next < runs.size()) {
        remote.clear();
        Bytes size = 0;
        while (next < runs.size() && remote.size() < kRunsAtOnce && size < kBytesAtOnce) {
            const Bytes length = std::min(runs[next].count * kPage - inside, kBytesAtOnce - size);
            // NOLINTNEXTLINE: an address of another process
            remote.push_back({reinterpret_cast<void*>(address + runs[next].first * kPage + inside), length});
            size += length;
            inside += length;
            if (inside == runs[next].count * kPage) {
                ++next;
                inside = 0;
            }
        }
        iovec local{target, size};
        const ssize_t got = ::process_vm_readv(m_pid, &local, 1, remote.data(), remote.size(), 0);
        if (got < 0) {
            return failErrno(what("cannot read the memory"), errno);
        }
        if (static_cast<Bytes>(got) != size) {
            return fail(ErrorCode::HostFailure, what("cannot read the memory") + ": a part of it is gone");
        }
        target += size;
    }
    // It lives, so all of this was read from it and not from another process with its number.
    return alive();
}

Result<MappedFile> mappedFileOf(int fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) {
        return failErrno("cannot look at the memory image", errno);
    }
    std::array<char, 4096> path{};
    const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
    if (length < 0) {
        return failErrno("cannot read the path of the memory image", errno);
    }
    return MappedFile{major(status.st_dev), minor(status.st_dev), status.st_ino,
                      std::string(path.data(), static_cast<std::size_t>(length))};
}

} // namespace bulkhead::memcap

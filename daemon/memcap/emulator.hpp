// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "memcap/ram_mapping.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::memcap {

/// How long to wait for that.
constexpr std::chrono::milliseconds kEndingTime{100};

/// Neighbouring private pages, numbered from the start of guest RAM.
struct PageRun {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    bool operator==(const PageRun&) const = default;
};

std::uint64_t countPages(std::span<const PageRun> runs);

/// The process whose memory is read. Its number may be given to another process once it has ended; what is opened here
/// stays with the one process, and alive() tells whether the number still is its own.
class Emulator {
public:
    /// Opens what is needed below /proc; later calls open nothing. InvalidArgument when `pidfd` is not of `pid`;
    /// NotFound when the process has ended.
    static Result<Emulator> open(pid_t pid, UniqueFd pidfd);

    /// NotFound when it has ended, or does so within `patience`: while a process ends its memory is gone a moment
    /// before its descriptor tells, so after a failure it pays to wait for the better reason.
    Status alive(std::chrono::milliseconds patience = std::chrono::milliseconds(0)) const;
    Result<std::vector<Vma>> maps() const;
    /// Appends the private pages among the `ram` bytes at `address`: present or swapped out, and not a file's.
    Status privatePages(std::uint64_t address, Bytes ram, std::vector<PageRun>& runs) const;
    /// Copies these pages to `target`, one behind the other.
    Status copy(std::uint64_t address, std::span<const PageRun> runs, char* target) const;

    [[nodiscard]] pid_t pid() const { return m_pid; }

private:
    Emulator(pid_t pid, UniqueFd pidfd, UniqueFd maps, UniqueFd pagemap)
        : m_pid(pid)
        , m_pidfd(std::move(pidfd))
        , m_maps(std::move(maps))
        , m_pagemap(std::move(pagemap)) {}
    [[nodiscard]] std::string what(const char* act) const;

    pid_t m_pid;
    UniqueFd m_pidfd;
    UniqueFd m_maps;
    UniqueFd m_pagemap;
};

/// What the kernel says of an open file, for findRam().
Result<MappedFile> mappedFileOf(int fd);

} // namespace bulkhead::memcap

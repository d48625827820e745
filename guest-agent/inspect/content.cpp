// SPDX-License-Identifier: Apache-2.0
#include "inspect/content.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/xattr.h>
#include <unistd.h>

namespace bulkhead::inspect {
namespace {

constexpr std::size_t kChunk = 128 * 1024;

/// Where the next bytes that are not a hole begin; `size`: there are none.
std::uint64_t nextData(int fd, std::uint64_t from, std::uint64_t size) {
    const off_t found = ::lseek(fd, static_cast<off_t>(from), SEEK_DATA);
    if (found < 0) {
        return errno == ENXIO ? size : from; // a file system that knows no holes
    }
    return std::min(static_cast<std::uint64_t>(found), size);
}

/// 0, or why it could not be read. An end before its time is EIO.
int readAt(int fd, char* to, std::size_t size, std::uint64_t from) {
    std::size_t have = 0;
    while (have < size) {
        const ssize_t count = ::pread(fd, to + have, size - have, static_cast<off_t>(from + have));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count < 0 ? errno : EIO;
        }
        have += static_cast<std::size_t>(count);
    }
    return 0;
}

bool matters(std::string_view name) {
    return name.starts_with("security.") || name.starts_with("system.posix_acl_");
}

} // namespace

ContentComparer::ContentComparer()
    : m_bytesOfA(kChunk)
    , m_bytesOfB(kChunk) {}

ContentComparer::Answer ContentComparer::compare(int a, int b, std::uint64_t size, std::uint64_t& left,
                                                 Report& report) {
    std::uint64_t at = 0;
    while (!report.isBroken()) {
        at = std::min(nextData(a, at, size), nextData(b, at, size));
        if (at >= size) {
            return {.isSame = true};
        }
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, size - at));
        if (left < 2 * count) {
            return {.errorOfA = EFBIG, .errorOfB = EFBIG};
        }
        left -= 2 * count;
        const int ofA = readAt(a, m_bytesOfA.data(), count, at);
        const int ofB = readAt(b, m_bytesOfB.data(), count, at);
        if (ofA != 0 || ofB != 0) {
            return {.errorOfA = ofA, .errorOfB = ofB};
        }
        report.countBytes(2 * count);
        report.tick();
        if (std::memcmp(m_bytesOfA.data(), m_bytesOfB.data(), count) != 0) {
            return {};
        }
        at += count;
    }
    return {};
}

std::string attributesOf(int fd) {
    constexpr std::size_t kMost = 64 * 1024; // the kernel's own limit, for the list and for a value
    std::string list(1024, '\0');
    ssize_t size = ::flistxattr(fd, list.data(), list.size());
    if (size < 0 && errno == ERANGE) {
        list.resize(kMost);
        size = ::flistxattr(fd, list.data(), list.size());
    }
    if (size <= 0) {
        return {};
    }
    list.resize(static_cast<std::size_t>(size));
    std::vector<std::string> found;
    for (std::size_t at = 0; at < list.size();) {
        const std::string name(list.c_str() + at);
        at += name.size() + 1;
        if (!matters(name)) {
            continue;
        }
        std::string value(kMost, '\0');
        const ssize_t length = ::fgetxattr(fd, name.c_str(), value.data(), value.size());
        if (length >= 0) {
            value.resize(static_cast<std::size_t>(length));
            found.push_back(name + '\0' + std::to_string(length) + '\0' + value);
        }
    }
    std::sort(found.begin(), found.end());
    std::string all;
    for (const std::string& one : found) {
        all += one;
    }
    return all;
}

} // namespace bulkhead::inspect

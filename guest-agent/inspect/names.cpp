// SPDX-License-Identifier: Apache-2.0
#include "inspect/names.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::inspect {
namespace {

/// Of the kernel's record: where the length of the record and the name stand in it.
constexpr std::size_t kLengthAt = 16;
constexpr std::size_t kNameAt = 19;
constexpr std::size_t kOverhead = 1 + sizeof(std::uint32_t);

} // namespace

Names::Names(Names&& other) noexcept
    : m_bytes(std::move(other.m_bytes))
    , m_starts(std::move(other.m_starts))
    , m_budget(std::exchange(other.m_budget, nullptr))
    , m_taken(std::exchange(other.m_taken, 0)) {}

void Names::release() {
    if (m_budget != nullptr) {
        m_budget->left += std::exchange(m_taken, 0);
    }
    m_bytes = {};
    m_starts = {};
}

Names::Outcome Names::read(int fd, std::size_t most, NameBudget& budget, int& why, std::size_t& odd) {
    release();
    m_budget = &budget;
    std::array<char, 32 * 1024> buffer{};
    while (true) {
        const long count = ::syscall(SYS_getdents64, fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            why = errno;
            release();
            return Outcome::Failed;
        }
        if (count == 0) {
            break;
        }
        const auto size = static_cast<std::size_t>(count);
        for (std::size_t at = 0; at + kNameAt < size;) {
            std::uint16_t length = 0;
            std::memcpy(&length, buffer.data() + at + kLengthAt, sizeof length);
            if (length <= kNameAt || length > size - at) {
                why = EIO;
                release();
                return Outcome::Failed;
            }
            const char* const start = buffer.data() + at + kNameAt;
            const std::string_view name(start, ::strnlen(start, length - kNameAt));
            at += length;
            if (name == "." || name == "..") {
                continue;
            }
            if (name.empty() || name.size() > 255 || name.find('/') != std::string_view::npos) {
                ++odd;
                continue;
            }
            const std::size_t cost = name.size() + kOverhead;
            if (m_starts.size() >= most || budget.left < cost) {
                release();
                return Outcome::TooMany;
            }
            budget.left -= cost;
            m_taken += cost;
            m_starts.push_back(static_cast<std::uint32_t>(m_bytes.size()));
            m_bytes.append(name).push_back('\0');
        }
    }
    const char* const base = m_bytes.data();
    std::sort(m_starts.begin(), m_starts.end(),
              [base](std::uint32_t a, std::uint32_t b) { return std::strcmp(base + a, base + b) < 0; });
    const auto last = std::unique(m_starts.begin(), m_starts.end(), [base](std::uint32_t a, std::uint32_t b) {
        return std::strcmp(base + a, base + b) == 0;
    });
    odd += static_cast<std::size_t>(m_starts.end() - last);
    m_starts.erase(last, m_starts.end());
    return Outcome::Done;
}

SeenDirectories::Answer SeenDirectories::enter(std::uint64_t inode) {
    const std::uint64_t page = inode / 4096;
    const std::uint64_t bit = inode % 4096;
    auto found = m_pages.find(page);
    if (found == m_pages.end()) {
        if (m_pages.size() >= kMostPages) {
            return Answer::Full;
        }
        found = m_pages.emplace(page, std::array<std::uint64_t, 64>{}).first;
    }
    std::uint64_t& word = found->second[bit / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    if ((word & mask) != 0) {
        return Answer::Seen;
    }
    word |= mask;
    return Answer::New;
}

} // namespace bulkhead::inspect

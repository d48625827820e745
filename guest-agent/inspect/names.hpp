// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <array>

namespace bulkhead::inspect {

/// Bytes that may still be spent on names, by all directories that are open at once.
struct NameBudget {
    std::size_t left = 0;
};

/// The names of one directory without "." and "..", sorted as bytes.
class Names {
public:
    Names() = default;
    ~Names() { release(); }
    Names(Names&& other) noexcept;
    Names& operator=(Names&&) = delete;

    enum class Outcome { Done, TooMany, Failed };
    /// Reads all names of the directory `fd` from its present position. Failed: errno in `why`. Nothing is kept unless
    /// Done. What it takes of `budget`, which must outlive this, it gives back at its end. `odd`: names that can be
    /// none (empty, with a "/") or stood there twice, and were left out.
    Outcome read(int fd, std::size_t most, NameBudget& budget, int& why, std::size_t& odd);

    [[nodiscard]] std::size_t size() const { return m_starts.size(); }
    [[nodiscard]] const char* at(std::size_t index) const { return m_bytes.data() + m_starts[index]; }

private:
    void release();

    std::string m_bytes; ///< each name with its zero byte
    std::vector<std::uint32_t> m_starts;
    NameBudget* m_budget = nullptr;
    std::size_t m_taken = 0;
};

/// Which directories were entered, by their inode numbers: one bit for each, in pages of 4096 that come as needed (512
/// bytes each; at most kMostPages of them).
class SeenDirectories {
public:
    enum class Answer { New, Seen, Full };
    Answer enter(std::uint64_t inode);

private:
    static constexpr std::size_t kMostPages = 64 * 1024;
    std::unordered_map<std::uint64_t, std::array<std::uint64_t, 64>> m_pages;
};

} // namespace bulkhead::inspect

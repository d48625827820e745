// SPDX-License-Identifier: Apache-2.0
#include "memcap/ram_mapping.hpp"

#include <algorithm>
#include <charconv>

namespace bulkhead::memcap {

namespace {

/// Takes a line of numbers and separators apart; after the first mismatch nothing matches any more.
class Scanner {
public:
    explicit Scanner(std::string_view line)
        : m_rest(line) {}

    template <class Number> void number(Number& value, int base) {
        const auto [end, error] = std::from_chars(m_rest.data(), m_rest.data() + m_rest.size(), value, base);
        m_good = m_good && error == std::errc();
        m_rest.remove_prefix(static_cast<std::size_t>(end - m_rest.data()));
    }
    void character(char expected) {
        m_good = m_good && m_rest.starts_with(expected);
        m_rest.remove_prefix(m_good ? 1 : 0);
    }
    std::string mode() {
        std::string value(m_rest.substr(0, 4));
        m_good = m_good && value.size() == 4;
        m_rest.remove_prefix(value.size());
        return value;
    }
    std::string rest() {
        m_rest.remove_prefix(std::min(m_rest.find_first_not_of(' '), m_rest.size()));
        return std::string(m_rest);
    }
    [[nodiscard]] bool isGood() const { return m_good; }

private:
    std::string_view m_rest;
    bool m_good = true;
};

bool isOf(const Vma& vma, const MappedFile& file, bool byDevice) {
    if (vma.inode != file.inode) {
        return false;
    }
    return byDevice ? vma.deviceMajor == file.deviceMajor && vma.deviceMinor == file.deviceMinor
                    : vma.path == file.path;
}

bool isAnonymous(const Vma& vma) {
    return vma.inode == 0 && vma.mode == "rw-p" && (vma.path.empty() || vma.path.starts_with("[anon:"));
}

/// The size of the guest RAM that could begin with vmas[first], as far as it is in one piece; stops at `ram`.
template <class Fits> Bytes sizeFrom(const std::vector<Vma>& vmas, std::size_t first, Bytes ram, Fits fits) {
    Bytes size = 0;
    for (std::size_t i = first; i < vmas.size() && size < ram && fits(vmas[i], size); ++i) {
        if (i > first && vmas[i].begin != vmas[i - 1].end) {
            break;
        }
        size += vmas[i].end - vmas[i].begin;
    }
    return size;
}

Result<std::vector<std::uint64_t>> findFile(const std::vector<Vma>& vmas, Bytes ram, const MappedFile& file,
                                            bool byDevice) {
    std::vector<std::uint64_t> found;
    Bytes other = 0;
    for (std::size_t i = 0; i < vmas.size(); ++i) {
        if (!isOf(vmas[i], file, byDevice)) {
            continue;
        }
        if (vmas[i].mode != "rw-p") {
            return fail(ErrorCode::WrongState, "the emulator maps its memory image with mode " + vmas[i].mode +
                                                   " instead of rw-p, so its memory is not private");
        }
        const Bytes size = sizeFrom(vmas, i, ram, [&](const Vma& vma, Bytes before) {
            return isOf(vma, file, byDevice) && vma.mode == "rw-p" && vma.offset == before;
        });
        if (size == ram) {
            found.push_back(vmas[i].begin);
        }
        other = std::max(other, size);
    }
    if (found.empty() && other > 0) {
        return fail(ErrorCode::NotFound, "the emulator maps " + std::to_string(other) +
                                             " bytes of its memory image in one piece, not " + std::to_string(ram));
    }
    return found;
}

} // namespace

Result<std::vector<Vma>> parseMaps(std::string_view text) {
    std::vector<Vma> vmas;
    while (!text.empty()) {
        const auto lineEnd = std::min(text.find('\n'), text.size());
        Scanner scanner(text.substr(0, lineEnd));
        text.remove_prefix(std::min(lineEnd + 1, text.size()));
        Vma vma;
        scanner.number(vma.begin, 16);
        scanner.character('-');
        scanner.number(vma.end, 16);
        scanner.character(' ');
        vma.mode = scanner.mode();
        scanner.character(' ');
        scanner.number(vma.offset, 16);
        scanner.character(' ');
        scanner.number(vma.deviceMajor, 16);
        scanner.character(':');
        scanner.number(vma.deviceMinor, 16);
        scanner.character(' ');
        scanner.number(vma.inode, 10);
        vma.path = scanner.rest();
        if (!scanner.isGood() || vma.end <= vma.begin) {
            return fail(ErrorCode::HostFailure,
                        "line " + std::to_string(vmas.size() + 1) + " of the emulator's memory map makes no sense");
        }
        vmas.push_back(std::move(vma));
    }
    return vmas;
}

Result<std::vector<std::uint64_t>> findRam(const std::vector<Vma>& vmas, Bytes ram,
                                           const std::optional<MappedFile>& file) {
    if (file) {
        auto found = findFile(vmas, ram, *file, true);
        if (found && found->empty()) {
            found = findFile(vmas, ram, *file, false);
        }
        if (found && found->empty()) {
            return fail(ErrorCode::NotFound, "the emulator does not map its memory image " + file->path);
        }
        return found;
    }
    std::vector<std::uint64_t> found;
    Bytes largest = 0;
    for (std::size_t i = 0; i < vmas.size(); ++i) {
        const Bytes size = sizeFrom(vmas, i, ram, [](const Vma& vma, Bytes) { return isAnonymous(vma); });
        if (size == ram) {
            found.push_back(vmas[i].begin);
        }
        largest = std::max(largest, size);
    }
    if (found.empty()) {
        return fail(ErrorCode::NotFound, "the emulator has no private memory of exactly " + std::to_string(ram) +
                                             " bytes; the largest is " + std::to_string(largest) + " bytes");
    }
    return found;
}

} // namespace bulkhead::memcap

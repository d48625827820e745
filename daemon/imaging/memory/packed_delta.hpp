// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// The pages in which the memory of a paused guest differs from a parent image, in one file.
///
/// All numbers are little-endian. A file is, without gaps:
///   header   80 bytes: magic "BHDELTA\n", u32 version 1, u32 page size 4096, u64 bytes of RAM, u64 number of runs,
///            u64 pages with data, u64 pages of zeros, 32 bytes digest of the parent image (all zero: the parent is
///            memory that is zero everywhere)
///   runs     16 bytes each: u64 first page, u32 number of pages, u32 kind (1 data, 2 zeros). Sorted, without overlap,
///            and two neighbours of the same kind are one run: the same pages give the same bytes
///   pages    the 4096 bytes of each page of the data runs, in order
///   trailer  32 bytes: BLAKE2b-256 of everything before it
///
/// The file may be damaged or forged: everything that is read is checked before it is used.
namespace bulkhead::memory {

constexpr Bytes kPage = 4096;
constexpr Bytes kMostRam = Bytes{1024} * kGiB;
constexpr std::size_t kDeltaHeaderSize = 80;
constexpr std::size_t kDeltaRunSize = 16;
constexpr std::size_t kDeltaTrailerSize = 32;

/// The digest that stands for a parent that is zero everywhere: 64 times "0".
std::string_view zeroParent();
/// True for 64 lower-case hexadecimal digits.
bool isDigest(std::string_view text);
/// The 32 bytes of a digest, and back. Only for what isDigest() and for 32 bytes.
std::string bytesOfDigest(std::string_view digits);
std::string digestOfBytes(std::string_view bytes);

enum class RunKind : std::uint32_t { Data = 1, Zero = 2 };

/// Neighbouring pages that are stored in the same way.
struct Run {
    std::uint64_t first = 0; ///< number of the page in guest RAM
    std::uint64_t count = 0;
    RunKind kind = RunKind::Data;
    bool operator==(const Run&) const = default;
};

/// What a delta says before its pages.
struct DeltaIndex {
    Bytes ram = 0;      ///< a multiple of kPage
    std::string parent; ///< digest of the parent image, or zeroParent()
    std::vector<Run> runs;

    /// Adds pages behind all others; joins them to the last run where they continue it.
    void append(std::uint64_t first, std::uint64_t count, RunKind kind);
    [[nodiscard]] std::uint64_t pages(RunKind kind) const;
    /// The size of the whole file.
    [[nodiscard]] Bytes fileSize() const;
    bool operator==(const DeltaIndex&) const = default;
};

/// The header's numbers, all checked against each other and against the size of the file.
struct DeltaHeader {
    Bytes ram = 0;
    std::string parent;
    std::uint64_t runCount = 0; ///< that many runs do fit into the file
    std::uint64_t dataPages = 0;
    std::uint64_t zeroPages = 0;
};

/// Header and runs as they stand in a file.
std::string encodeIndex(const DeltaIndex& index);
/// Reads the first kDeltaHeaderSize bytes of a file of `fileSize` bytes. HostFailure says what is wrong with it.
Result<DeltaHeader> decodeHeader(std::string_view bytes, Bytes fileSize);
/// Reads the runs that follow that header: exactly runCount * kDeltaRunSize bytes.
Result<DeltaIndex> decodeRuns(const DeltaHeader& header, std::string_view bytes);

} // namespace bulkhead::memory

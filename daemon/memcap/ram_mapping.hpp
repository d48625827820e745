// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which part of an emulator's address space is the guest's RAM.
namespace bulkhead::memcap {

/// One line of /proc/PID/maps.
struct Vma {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string mode; ///< "rw-p"
    std::uint64_t offset = 0;
    unsigned deviceMajor = 0;
    unsigned deviceMinor = 0;
    std::uint64_t inode = 0; ///< 0: no file
    std::string path;        ///< "[heap]", a file's path, or empty
    bool operator==(const Vma&) const = default;
};

/// The file that an emulator was started from.
struct MappedFile {
    unsigned deviceMajor = 0;
    unsigned deviceMinor = 0;
    std::uint64_t inode = 0;
    std::string path; ///< as the kernel names it
};

/// Reads the text of /proc/PID/maps. HostFailure for a line that is none.
Result<std::vector<Vma>> parseMaps(std::string_view text);

/// The addresses at which guest RAM of exactly `ram` bytes may begin.
/// - With a file: its private mappings from offset 0 on, `ram` bytes without a gap; the kernel may show them in several
///   parts. The device is not compared where no device fits and the path does: file systems with subvolumes show
///   another one here than stat(2) does.
/// - Without: runs of neighbouring anonymous rw-p parts that together have exactly that size. QEMU puts an inaccessible
///   page behind guest RAM, and RAM differs in its flags from other memory, so the kernel does not join it with others.
/// NotFound says what was there instead.
Result<std::vector<std::uint64_t>> findRam(const std::vector<Vma>& vmas, Bytes ram,
                                           const std::optional<MappedFile>& file);

} // namespace bulkhead::memcap

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inspect/report.hpp"

#include <cstddef>
#include <cstdint>

namespace bulkhead::inspect {

/// What a walk may cost. Together with 36 MiB for each side's directories (SeenDirectories) and 256 KiB to compare
/// content it stays below 280 MiB, whatever is on the disks.
struct WalkLimits {
    std::size_t levels = 256; ///< below the top; two descriptors each
    std::size_t namesInDirectory = 1'000'000;
    /// Bytes for the names of all directories that are open at once. Growing may take as much again for a moment.
    std::size_t nameBytes = 96 * 1024 * 1024;
    /// Bytes of content, of both sides together. A crafted disk can have one block in files of any size.
    std::uint64_t contentBytes = UINT64_MAX;
};

struct WalkOptions {
    diff_stream::Disk disk = diff_stream::Disk::System;
    /// Reads all files. Otherwise files are one when inode number, size, mode, owner, mtime and ctime are: both sides
    /// are forks of one base then, and nothing has touched them since.
    bool isDeep = false;
    WalkLimits limits = {};
};

/// Compares the trees below two directories and tells `report` what differs: of what is in `b` and not in `a` that it
/// was added, and so on. Follows no links and leaves neither file system; opens nothing but directories and regular
/// files. Of a directory only its coming, going, mode, owner and attributes count. The descriptors stay the caller's.
void compareTrees(int a, int b, const WalkOptions& options, Report& report);

} // namespace bulkhead::inspect

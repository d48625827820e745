// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inspect/report.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::inspect {

/// Reads two files of the same size side by side; needs twice 128 KiB.
class ContentComparer {
public:
    ContentComparer();

    struct Answer {
        bool isSame = false;
        int errorOfA = 0; ///< errno: it could not be read
        int errorOfB = 0;
    };
    /// Both regular files of `size` bytes. Holes on both sides cost nothing. Counts and ticks in `report`. What is read
    /// is taken from `left`; EFBIG when that is not enough.
    Answer compare(int a, int b, std::uint64_t size, std::uint64_t& left, Report& report);

private:
    std::vector<char> m_bytesOfA;
    std::vector<char> m_bytesOfB;
};

/// What the kernel acts on among the extended attributes of an open file or directory: "security.…" (file capabilities,
/// labels) and access lists, as bytes to compare. Those that cannot be read are left out.
std::string attributesOf(int fd);

} // namespace bulkhead::inspect

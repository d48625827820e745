// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace bulkhead::core {

enum class FindingStatus { Ok, Warning, Problem };
std::string_view nameOf(FindingStatus status);

/// One line of `bulkhead doctor`.
struct Finding {
    std::string check; ///< a short stable word: "acceleration", "libvirt", "disk" …
    FindingStatus status = FindingStatus::Ok;
    std::string text;  ///< what was found, a sentence without a final dot
    std::string fix;   ///< what to do, possibly a command; empty when ok
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#include "core/model/snapshot.hpp"

#include "base/escaping.hpp"

#include <algorithm>

namespace bulkhead::core {

std::string_view nameOf(SnapshotKind kind) {
    switch (kind) {
    case SnapshotKind::Disk:
        return "disk";
    case SnapshotKind::Full:
        return "full";
    }
    return "unknown";
}

bool holdsVersion(const SnapshotRecord& record) {
    return record.system.layers.empty() && record.reason == kReasonBeforeUpgrade && !record.templateVersion.empty();
}

std::string shortId(const SnapshotId& id) {
    constexpr std::size_t kDigits = 8;
    return id.text().substr(0, kDigits);
}

Status checkSnapshotText(std::string_view what, std::string_view text) {
    constexpr std::size_t kMost = 200;
    if (text.size() > kMost) {
        return fail(ErrorCode::InvalidArgument, std::string(what) + ": at most " + std::to_string(kMost) +
                                                    " bytes, not " + std::to_string(text.size()));
    }
    // What escaping would change cannot be shown in a terminal as it is.
    if (cleanUntrusted(text, 4 * kMost) != text) {
        return fail(ErrorCode::InvalidArgument,
                    std::string(what) + ": \"" + escapeUntrusted(text, 60) + "\" has characters that cannot be shown");
    }
    return {};
}

} // namespace bulkhead::core

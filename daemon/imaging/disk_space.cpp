// SPDX-License-Identifier: Apache-2.0
#include "imaging/disk_space.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/statvfs.h>

namespace bulkhead::imaging {

Result<Space> fileSystemSpace(const std::filesystem::path& path) {
    std::filesystem::path existing = path;
    struct statvfs status {};
    while (::statvfs(existing.c_str(), &status) != 0) {
        if (errno != ENOENT || !existing.has_relative_path()) {
            return failErrno("cannot find the free space of " + path.string(), errno);
        }
        existing = existing.parent_path();
    }
    const Bytes used = (status.f_blocks - status.f_bfree) * status.f_frsize;
    const Bytes available = status.f_bavail * status.f_frsize;
    return Space{used + available, available};
}

unsigned percentUsed(const Space& space, Bytes more) {
    if (space.total == 0) {
        return 100;
    }
    const Bytes used = space.total - std::min(space.available, space.total);
    const double share = (static_cast<double>(used) + static_cast<double>(more)) / static_cast<double>(space.total);
    return static_cast<unsigned>(std::min(share * 100, 100.0));
}

Status checkSpace(const SpaceProbe& probe, const std::filesystem::path& path, Bytes needed, const std::string& what) {
    const auto space = probe(path);
    if (!space) {
        return fail(space.error());
    }
    if (needed <= space->available && percentUsed(*space, needed) < kMostPercentUsed) {
        return {};
    }
    return fail(ErrorCode::NoSpace, what + " needs " + formatBytes(needed) + ", but the disk of " + path.string() +
                                        " has " + formatBytes(space->available) + " of " + formatBytes(space->total) +
                                        " free and may be filled to " + std::to_string(kMostPercentUsed) +
                                        " % only; free some space");
}

} // namespace bulkhead::imaging

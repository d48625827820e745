// SPDX-License-Identifier: Apache-2.0
#include "agent/grown_disk.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <linux/fs.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/statfs.h>

namespace bulkhead::agent {
namespace {

/// Of the kernel's ext4, which has no header for programs: the new size in blocks.
constexpr unsigned long kExt4Resize = _IOW('f', 16, std::uint64_t);

} // namespace

Status fillDisk(const char* disk, const char* mountPoint) {
    const std::string what = std::string("make ") + mountPoint + " fill " + disk;
    const UniqueFd device(::open(disk, O_RDONLY | O_CLOEXEC));
    std::uint64_t bytes = 0;
    if (!device || ::ioctl(device.get(), BLKGETSIZE64, &bytes) != 0) {
        return failErrno(what, errno);
    }
    const UniqueFd folder(::open(mountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct statfs info {};
    if (!folder || ::fstatfs(folder.get(), &info) != 0 || info.f_bsize <= 0) {
        return failErrno(what, errno);
    }
    std::uint64_t blocks = bytes / static_cast<std::uint64_t>(info.f_bsize);
    return ::ioctl(folder.get(), kExt4Resize, &blocks) == 0 ? Status() : Status(failErrno(what, errno));
}

} // namespace bulkhead::agent

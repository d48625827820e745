// SPDX-License-Identifier: Apache-2.0
#include "imaging/overlays.hpp"

#include "base/unique_fd.hpp"
#include "imaging/file_tree.hpp"
#include "process/run.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::imaging {

namespace {

Status runTool(const std::filesystem::path& program, std::vector<std::string> arguments) {
    process::ProcessSpec spec;
    spec.program = program;
    spec.arguments = std::move(arguments);
    spec.environment = process::toolEnvironment();
    const auto result = process::runChecked(spec);
    if (result) {
        return {};
    }
    const bool isFull = result.error().message.find("No space left on device") != std::string::npos;
    return fail(isFull ? ErrorCode::NoSpace : result.error().code, result.error().message);
}

} // namespace

Status makeOverlay(const std::filesystem::path& overlay, const core::DiskLayer& base) {
    if (isThere(overlay)) {
        return fail(ErrorCode::AlreadyExists, overlay.string() + " exists already");
    }
    return runTool("/usr/bin/qemu-img", {"create", "-q", "-f", "qcow2", "-F", std::string(nameOf(base.format)), "-b",
                                         base.path.string(), overlay.string()});
}

Status makeHomeFileSystem(const std::filesystem::path& file, Bytes size) {
    {
        const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
            return failErrno("cannot make " + file.string(), errno);
        }
    }
    // A new sparse file is zero, so nothing needs to be cleared: not the journal now, nor the inode tables by the guest
    // later (which would fill the file).
    if (auto made = runTool("/sbin/mke2fs", {"-q", "-F", "-t", "ext4", "-m", "0", "-E",
                                             "lazy_journal_init=1,root_owner=0:0", file.string()});
        !made) {
        return made;
    }
    return syncPath(file);
}

Status growRawFile(const std::filesystem::path& file, Bytes size) {
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return failErrno("cannot open " + file.string(), fd ? EINVAL : errno);
    }
    const auto present = static_cast<Bytes>(status.st_size);
    if (present > size) {
        return fail(ErrorCode::InvalidArgument,
                    formatBytes(size) + " is less than the " + formatBytes(present) + " that it has; it can only grow");
    }
    if (present < size && (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 || ::fsync(fd.get()) != 0)) {
        return failErrno("cannot make " + file.string() + " larger", errno);
    }
    return {};
}

} // namespace bulkhead::imaging

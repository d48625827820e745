// SPDX-License-Identifier: Apache-2.0
#include "imaging/overlays.hpp"

#include "base/unique_fd.hpp"
#include "imaging/file_tree.hpp"
#include "process/run.hpp"

#include <cerrno>
#include <fcntl.h>
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

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#include "imaging/overlays.hpp"

#include "base/unique_fd.hpp"
#include "imaging/file_tree.hpp"
#include "process/run.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::imaging {

namespace {

// The qcow2 header: QEMU's docs/interop/qcow2.txt.
constexpr std::size_t kQcowHeader = 104;
constexpr std::uint64_t kQcowMagic = 0x514649fb;
constexpr std::size_t kQcowSize = 24;
constexpr std::size_t kQcowIncompatible = 72;
/// "dirty" and "corrupt", which QEMU sets by itself.
constexpr std::uint64_t kQcowKnownFeatures = 3;
constexpr Bytes kMostDisk = 64 * 1024 * kGiB;

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

Result<Bytes> diskSizeOf(const core::DiskLayer& layer) {
    const std::string what = "cannot read " + layer.path.string();
    const UniqueFd fd(::open(layer.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
        return !fd && errno == ENOENT ? fail(ErrorCode::NotFound, layer.path.string() + " is not there")
                                      : failErrno(what, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::HostFailure, layer.path.string() + " is not a regular file");
    }
    if (layer.format == core::DiskFormat::Raw) {
        return static_cast<Bytes>(status.st_size);
    }
    std::array<unsigned char, kQcowHeader> header{};
    const ssize_t got = ::pread(fd.get(), header.data(), header.size(), 0);
    if (got < 0) {
        return failErrno(what, errno);
    }
    const auto number = [&](std::size_t offset, std::size_t bytes) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            value = value << 8U | header.at(offset + i);
        }
        return value;
    };
    // Version 3 is what qemu-img makes.
    const std::uint64_t size = number(kQcowSize, 8);
    if (got != static_cast<ssize_t>(header.size()) || number(0, 4) != kQcowMagic || number(4, 4) != 3 || size == 0 ||
        size > kMostDisk) {
        return fail(ErrorCode::HostFailure, layer.path.string() + " is damaged: it is not a qcow2 image");
    }
    if ((number(kQcowIncompatible, 8) & ~kQcowKnownFeatures) != 0) {
        return fail(ErrorCode::HostFailure,
                    layer.path.string() +
                        " is not an image as we make them: it needs features that were never asked for");
    }
    return size;
}

Status makeOverlay(const std::filesystem::path& overlay, const core::DiskLayer& base) {
    if (isThere(overlay)) {
        return fail(ErrorCode::AlreadyExists, overlay.string() + " exists already");
    }
    const auto size = diskSizeOf(base);
    if (!size) {
        return fail(size.error());
    }
    // With -u it does not open the base, nor what that says of further files.
    return runTool("/usr/bin/qemu-img", {"create", "-q", "-u", "-f", "qcow2", "-F", std::string(nameOf(base.format)),
                                         "-b", base.path.string(), overlay.string(), std::to_string(*size)});
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

Status growLayer(const core::DiskLayer& layer, Bytes size) {
    const auto present = diskSizeOf(layer);
    if (!present) {
        return fail(present.error());
    }
    if (*present > size) {
        return fail(ErrorCode::InvalidArgument, formatBytes(size) + " is less than the " + formatBytes(*present) +
                                                    " that it has; it can only grow");
    }
    if (*present == size) {
        return {};
    }
    if (layer.format == core::DiskFormat::Raw) {
        const UniqueFd fd(::open(layer.path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0 || ::fsync(fd.get()) != 0) {
            return failErrno("cannot make " + layer.path.string() + " larger", errno);
        }
        return {};
    }
    // Described in full, so that the header's name of a base is not followed.
    const nlohmann::json image{
        {"driver", "qcow2"}, {"backing", nullptr}, {"file", {{"driver", "file"}, {"filename", layer.path.string()}}}};
    return runTool("/usr/bin/qemu-img", {"resize", "-q", "json:" + image.dump(), std::to_string(size)}).and_then([&] {
        return syncPath(layer.path);
    });
}

} // namespace bulkhead::imaging

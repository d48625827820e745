// SPDX-License-Identifier: Apache-2.0
#include "agent/home.hpp"

#include "agent/grown_disk.hpp"
#include "agent/small_file.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <ctime>
#include <filesystem>
#include <optional>
#include <sys/mount.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace bulkhead::agent {
namespace {

namespace fs = std::filesystem;

/// Where the machine has the home disk, see the domain's description on the host.
constexpr const char* kHomeBlock = "/sys/block/vdb";
constexpr const char* kDriver = "/sys/bus/virtio/drivers/virtio_blk";
constexpr std::chrono::seconds kDeviceWait{10};

/// The device's name on its bus, "virtio3".
std::optional<std::string> busNameOf(const std::string& block) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink((block + "/device").c_str(), target.data(), target.size());
    if (size <= 0 || size >= static_cast<ssize_t>(target.size())) {
        return std::nullopt;
    }
    return fs::path(std::string(target.data(), static_cast<std::size_t>(size))).filename().string();
}

/// What the driver calls the disk now; none: the driver has not taken it (yet).
std::optional<std::string> blockNameOf(const std::string& busName) {
    std::error_code none;
    for (fs::directory_iterator at("/sys/bus/virtio/devices/" + busName + "/block", none); !none && at != fs::end(at);
         at.increment(none)) {
        return at->path().filename().string();
    }
    return std::nullopt;
}

Result<std::string> waitForNode(const std::string& busName) {
    const auto until = std::chrono::steady_clock::now() + kDeviceWait;
    while (std::chrono::steady_clock::now() < until) {
        if (const auto name = blockNameOf(busName)) {
            std::string node = "/dev/" + *name;
            if (::access(node.c_str(), F_OK) == 0) {
                return node;
            }
        }
        constexpr timespec kPause{0, 500'000};
        ::nanosleep(&kPause, nullptr);
    }
    return fail(ErrorCode::GuestFailure, "The home disk did not come back");
}

} // namespace

Status mountHome(const std::string& device, const std::string& where) {
    ::mkdir(where.c_str(), 0755);
    if (::mount(device.c_str(), where.c_str(), "ext4", MS_NOATIME | MS_NOSUID | MS_NODEV, "") != 0) {
        return failErrno("mount the home disk " + device + " on " + where, errno);
    }
    // One that cannot grow is as good as it was.
    static_cast<void>(fillDisk(device.c_str(), where.c_str()));
    return {};
}

void makeHome(const Account& account) {
    struct stat info {};
    if (::lstat(account.home.c_str(), &info) == 0 || ::mkdir(account.home.c_str(), 0700) != 0) {
        return;
    }
    std::error_code ignored;
    fs::copy("/etc/skel", account.home, fs::copy_options::recursive | fs::copy_options::copy_symlinks, ignored);
    // Not a range: its ++ throws, and this is the first process.
    for (fs::recursive_directory_iterator at(account.home, ignored); at != fs::end(at); at.increment(ignored)) {
        static_cast<void>(!::lchown(at->path().c_str(), account.uid, account.gid));
    }
    static_cast<void>(!::chown(account.home.c_str(), account.uid, account.gid));
}

Status takeHomeAnew() {
    const auto busName = busNameOf(kHomeBlock);
    if (!busName) {
        return fail(ErrorCode::GuestFailure, "There is no home disk");
    }
    if (!writeKernelFile(std::string(kDriver) + "/unbind", *busName) ||
        !writeKernelFile(std::string(kDriver) + "/bind", *busName)) {
        return failErrno("take the home disk anew", errno);
    }
    const auto node = waitForNode(*busName);
    if (!node) {
        return fail(node.error());
    }
    return mountHome(*node, "/home");
}

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#include "inspect/disks.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <string_view>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::inspect {
namespace {

constexpr unsigned long kHarmless = MS_NOSUID | MS_NODEV | MS_NOEXEC;

struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
};

std::string serialOf(const std::string& block) {
    const UniqueFd fd(::open((block + "/serial").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 64> text{};
    const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
    const std::string_view read(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    return std::string(read.substr(0, read.find_first_of(std::string_view("\n\0", 2))));
}

} // namespace

std::string findDisk(const std::string& serial, const std::string& blocks) {
    const std::unique_ptr<DIR, CloseFolder> folder(::opendir(blocks.c_str()));
    while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
        if (entry->d_name[0] != '.' && serialOf(blocks + "/" + entry->d_name) == serial) {
            return entry->d_name;
        }
    }
    return {};
}

Result<std::string> makePrivateFolder() {
    if (::unshare(CLONE_NEWNS) != 0) {
        return failErrno("make a mount space of one's own", errno);
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return failErrno("keep mounts to oneself", errno);
    }
    // Over a folder that is everywhere: nobody but this process sees it.
    const std::string folder = "/tmp";
    if (::mount("inspect", folder.c_str(), "tmpfs", kHarmless, "mode=0700,size=256k") != 0) {
        return failErrno("mount a folder for the disks on " + folder, errno);
    }
    return folder;
}

Result<MountedDisk> mountDisk(const std::string& folder, const std::string& name, int& why) {
    const std::string device = "/dev/" + name;
    const std::string where = folder + "/" + name;
    MountedDisk mounted;
    if (::mkdir(where.c_str(), 0700) != 0) {
        why = errno;
        return failErrno("make " + where, why);
    }
    constexpr unsigned long kFlags = MS_RDONLY | MS_NOATIME | kHarmless;
    if (::mount(device.c_str(), where.c_str(), "ext4", kFlags, "errors=continue") != 0) {
        why = errno;
        if (::mount(device.c_str(), where.c_str(), "ext4", kFlags, "errors=continue,noload") != 0) {
            return failErrno("mount " + device, why);
        }
        mounted.isWithoutJournal = true;
    }
    mounted.top.reset(::open(where.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!mounted.top) {
        why = errno;
        return failErrno("open " + where, why);
    }
    why = 0;
    return mounted;
}

} // namespace bulkhead::inspect

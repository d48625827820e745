// SPDX-License-Identifier: Apache-2.0
#include "agent/identity.hpp"

#include "agent/small_file.hpp"
#include "base/ids.hpp"
#include "base/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/random.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace bulkhead::agent {
namespace {

constexpr const char* kMachineId = "/etc/machine-id";
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr const char* kOwnBootId = "/run/bulkhead-boot-id";

/// Never empty in between, since programs may read it now; and does not wait, whatever was put in its place.
void writeFile(const char* path, const std::string& text) {
    const UniqueFd file(::open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0444));
    if (file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
        static_cast<void>(!::ftruncate(file.get(), static_cast<off_t>(text.size())));
    }
}

} // namespace

bool hasMachineId() {
    struct stat info {};
    return ::stat(kMachineId, &info) == 0 && info.st_size > 0;
}

void makeMachineId() {
    std::string id = randomUuidText();
    std::erase(id, '-');
    writeFile(kMachineId, id + "\n");
}

void makeBootId() {
    ::umount2(kBootId, MNT_DETACH); // where the image was taken of a machine like this
    ::unlink(kOwnBootId);
    writeFile(kOwnBootId, randomUuidText() + "\n");
    static_cast<void>(::mount(kOwnBootId, kBootId, nullptr, MS_BIND, nullptr));
}

int mixEntropy(std::string_view bytes) {
    const UniqueFd device(::open("/dev/urandom", O_WRONLY | O_CLOEXEC));
    if (!device) {
        return errno;
    }
    // rand_pool_info: how many bits these bytes are worth, their number, and they themselves.
    const std::array<int, 2> head{static_cast<int>(bytes.size() * 8), static_cast<int>(bytes.size())};
    std::vector<int> info((sizeof head + bytes.size() + sizeof(int) - 1) / sizeof(int));
    std::memcpy(info.data(), head.data(), sizeof head);
    std::memcpy(info.data() + head.size(), bytes.data(), bytes.size());
    const bool mixed =
        ::ioctl(device.get(), RNDADDENTROPY, info.data()) == 0 && ::ioctl(device.get(), RNDRESEEDCRNG) == 0;
    const int why = mixed ? 0 : errno;
    ::explicit_bzero(info.data(), info.size() * sizeof(int));
    return why;
}

} // namespace bulkhead::agent

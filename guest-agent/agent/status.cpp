// SPDX-License-Identifier: Apache-2.0
#include "agent/small_file.hpp"
#include "agent/system.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <dirent.h>
#include <string_view>
#include <sys/statvfs.h>

namespace bulkhead::agent {
namespace {

/// The number behind "NAME:" in /proc/meminfo, in bytes; 0 when it is not there.
std::uint64_t memoryField(std::string_view text, std::string_view name) {
    const std::size_t at = text.find(name);
    if (at == std::string_view::npos) {
        return 0;
    }
    const std::size_t digits = text.find_first_of("0123456789", at + name.size());
    std::uint64_t kib = 0;
    if (digits != std::string_view::npos) {
        std::from_chars(text.data() + digits, text.data() + text.size(), kib);
    }
    return kib * 1024;
}

void fillFileSystem(const char* path, FileSystemUse& use) {
    struct statvfs info {};
    if (::statvfs(path, &info) == 0) {
        use.set_total(info.f_blocks * info.f_frsize);
        use.set_available(info.f_bavail * info.f_frsize);
    }
}

std::uint32_t countProcesses() {
    DIR* folder = ::opendir("/proc");
    if (folder == nullptr) {
        return 0;
    }
    std::uint32_t count = 0;
    while (const dirent* entry = ::readdir(folder)) {
        if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0) {
            ++count;
        }
    }
    ::closedir(folder);
    return count;
}

} // namespace

StatusReply readStatus() {
    StatusReply status;
    timespec uptime{};
    ::clock_gettime(CLOCK_BOOTTIME, &uptime);
    status.set_uptime_ms(static_cast<std::uint64_t>(uptime.tv_sec) * 1000 +
                         static_cast<std::uint64_t>(uptime.tv_nsec) / 1'000'000);
    if (const auto memory = readSmallFile("/proc/meminfo", std::size_t{64} * 1024)) {
        status.set_memory_total(memoryField(*memory, "MemTotal:"));
        status.set_memory_available(memoryField(*memory, "MemAvailable:"));
    }
    status.set_processes(countProcesses());
    fillFileSystem("/", *status.mutable_system());
    fillFileSystem("/home", *status.mutable_home());
    return status;
}

} // namespace bulkhead::agent

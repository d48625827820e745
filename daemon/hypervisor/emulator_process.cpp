// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/emulator_process.hpp"

#include "hypervisor/domain_xml.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace bulkhead::hypervisor {
namespace {

std::optional<pid_t> readPidFile(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string text;
    if (!in || !(in >> text)) {
        return std::nullopt;
    }
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc{} || end != text.data() + text.size() || pid <= 1) {
        return std::nullopt;
    }
    return pid;
}

/// True when the arguments of the process have "-uuid" and then the id. (The arguments of a process that has ended are
/// empty.)
bool isEmulatorOf(pid_t pid, const InstanceId& id) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    const std::string arguments{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    std::string wanted;
    wanted.append(1, '\0').append("-uuid").append(1, '\0').append(id.text()).append(1, '\0');
    return arguments.find(wanted) != std::string::npos;
}

/// The second number of the line "Uid: real effective saved filesystem". (The owner of the folder /proc/PID is root
/// for processes that may not be traced.)
std::optional<uid_t> effectiveUid(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/status");
    std::string word;
    while (in >> word) {
        if (word == "Uid:") {
            uid_t real = 0;
            uid_t effective = 0;
            return in >> real >> effective ? std::optional(effective) : std::nullopt;
        }
        in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return std::nullopt;
}

} // namespace

std::optional<EmulatorProcess> findEmulator(const std::filesystem::path& pidDirectory, const InstanceId& id) {
    const auto pid = readPidFile(pidDirectory / (domainName(id) + ".pid"));
    if (!pid) {
        return std::nullopt;
    }
    // First the descriptor, then the look: what is seen afterwards is seen of the process that the descriptor holds,
    // unless that one has ended already.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0)));
    const auto uid = effectiveUid(*pid);
    if (!pidfd || !uid || !isEmulatorOf(*pid, id) || hasEnded(pidfd)) {
        return std::nullopt;
    }
    return EmulatorProcess{*pid, *uid, std::move(pidfd)};
}

bool hasEnded(const UniqueFd& pidfd) {
    pollfd entry{pidfd.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
}

} // namespace bulkhead::hypervisor

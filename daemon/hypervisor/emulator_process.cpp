// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/emulator_process.hpp"

#include "hypervisor/domain_xml.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace bulkhead::hypervisor {
namespace {

std::optional<pid_t> parsePid(const std::string& text) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (error != std::errc{} || end != text.data() + text.size() || pid <= 1) {
        return std::nullopt;
    }
    return pid;
}

std::optional<pid_t> readPidFile(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::string text;
    if (!in || !(in >> text)) {
        return std::nullopt;
    }
    return parsePid(text);
}

/// Each one ended by a zero byte. Empty when the process has ended.
std::string argumentsOf(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// True when the arguments have "-uuid" and then the id.
bool isEmulatorOf(const std::string& arguments, const InstanceId& id) {
    std::string wanted;
    wanted.append(1, '\0').append("-uuid").append(1, '\0').append(id.text()).append(1, '\0');
    return arguments.find(wanted) != std::string::npos;
}

/// By the program's name as it was called: what it really runs shows only to those who may trace it.
bool isNamedQemu(const std::string& arguments) {
    const std::filesystem::path program(arguments.substr(0, arguments.find('\0')));
    return program.filename().native().starts_with("qemu-system-");
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

/// First the descriptor, then the look: what is seen afterwards is seen of the process that the descriptor holds,
/// unless that one has ended already.
std::optional<EmulatorProcess> hold(pid_t pid, const InstanceId& id) {
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const auto uid = effectiveUid(pid);
    if (!pidfd || !uid || !isEmulatorOf(argumentsOf(pid), id) || hasEnded(pidfd)) {
        return std::nullopt;
    }
    return EmulatorProcess{pid, *uid, std::move(pidfd)};
}

} // namespace

std::optional<EmulatorProcess> findEmulator(const std::filesystem::path& pidDirectory, const InstanceId& id) {
    const auto pid = readPidFile(pidDirectory / (domainName(id) + ".pid"));
    return pid ? hold(*pid, id) : std::nullopt;
}

std::optional<EmulatorProcess> searchEmulator(const UidRange& users, const InstanceId& id) {
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
         entry.increment(error)) {
        const auto pid = parsePid(entry->path().filename().native());
        if (!pid) {
            continue;
        }
        if (const auto arguments = argumentsOf(*pid); !isNamedQemu(arguments) || !isEmulatorOf(arguments, id)) {
            continue;
        }
        if (auto found = hold(*pid, id); found && found->uid >= users.first && found->uid <= users.last) {
            return found;
        }
    }
    return std::nullopt;
}

Status killProcess(const UniqueFd& pidfd) {
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0U) != 0 && errno != ESRCH) {
        return failErrno("cannot kill the process", errno);
    }
    return {};
}

bool hasEnded(const UniqueFd& pidfd) {
    pollfd entry{pidfd.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
}

} // namespace bulkhead::hypervisor

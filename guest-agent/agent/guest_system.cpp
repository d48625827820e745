// SPDX-License-Identifier: Apache-2.0
#include "agent/guest_system.hpp"

#include "agent/accounts.hpp"
#include "agent/disks.hpp"
#include "agent/home.hpp"
#include "agent/hostname.hpp"
#include "agent/identity.hpp"
#include "agent/small_file.hpp"
#include "agent/time_zone.hpp"
#include "protocol/limits.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bulkhead::agent {
namespace {

/// Reaps until this process has no children left or the time is over. As the first process we are the parent of all
/// that lost theirs, so "no children" means nothing runs any more.
bool reapAll(std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    sigset_t childEnded;
    ::sigemptyset(&childEnded);
    ::sigaddset(&childEnded, SIGCHLD); // blocked by main(), so it can be waited for
    for (;;) {
        pid_t pid = 0;
        while ((pid = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
        }
        if (pid < 0 && errno == ECHILD) {
            return true;
        }
        const auto left = until - std::chrono::steady_clock::now();
        if (left <= std::chrono::nanoseconds::zero()) {
            return false;
        }
        const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
        const timespec wait{ns / 1'000'000'000, ns % 1'000'000'000};
        ::sigtimedwait(&childEnded, nullptr, &wait);
    }
}

/// A process of this name runs (of its first 15 letters, as the kernel keeps them).
bool isRunning(std::string_view name) {
    std::error_code none;
    for (std::filesystem::directory_iterator at("/proc", none); !none && at != std::filesystem::end(at);
         at.increment(none)) {
        const std::string entry = at->path().filename().string();
        if (entry.find_first_not_of("0123456789") == std::string::npos &&
            readSmallFile("/proc/" + entry + "/comm", 64) == std::string(name) + "\n") {
            return true;
        }
    }
    return false;
}

} // namespace

int GuestSystem::quiesce() {
    const auto time = parseProcessorTime(readSmallFile("/proc/stat", std::size_t{256} * 1024).value_or(""));
    if (!time || !m_idleness.look(*time, std::chrono::steady_clock::now())) {
        return EAGAIN;
    }
    ::sync();
    return 0;
}

int UnitSystem::quiesce() {
    return isRunning("bulkhead-sessio") ? GuestSystem::quiesce() : EAGAIN;
}

int GuestSystem::rejuvenate(const RejuvenateRequest& request) {
    if (request.entropy().size() < protocol::kMinEntropy || request.entropy().size() > protocol::kMaxEntropy) {
        return EINVAL;
    }
    if (const int why = mixEntropy(request.entropy()); why != 0) {
        return why;
    }
    if (const int why = setClock(request.realtime_ns()); why != 0) {
        return why;
    }
    makeMachineId();
    makeBootId();
    if (request.mount_home()) {
        if (const auto taken = takeHomeAnew(); !taken) {
            writeKernelFile("/dev/kmsg", "<3>bulkhead-agent: " + taken.error().message + "\n");
            return EIO;
        }
        if (const auto user = systemAccount("user")) {
            makeHome(*user);
        }
    }
    return 0;
}

int GuestSystem::settleDisks(bool standStill) {
    return standStill ? freezeDisks() : writeDisks();
}

void GuestSystem::releaseDisks() {
    thawDisks();
}

int GuestSystem::setHostname(const std::string& name) {
    if (::sethostname(name.data(), name.size()) != 0) {
        return errno;
    }
    return installHostname({}, name);
}

int GuestSystem::setClock(std::int64_t realtimeNs) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    if (realtimeNs < 0) {
        return EINVAL;
    }
    const timespec time{realtimeNs / kSecond, realtimeNs % kSecond};
    return ::clock_settime(CLOCK_REALTIME, &time) == 0 ? 0 : errno;
}

int GuestSystem::setTimeZone(const std::string& name) {
    return installTimeZone({}, name);
}

void GuestSystem::powerOff(std::chrono::milliseconds grace) {
    // First of all, so that little is left to be lost should the host lose its patience later.
    ::sync();
    ::kill(-1, SIGTERM);
    ::kill(-1, SIGCONT);
    if (!reapAll(grace)) {
        ::kill(-1, SIGKILL);
        // A process may hang in the kernel; the disks matter more than it.
        reapAll(std::chrono::seconds(1));
    }
    ::sync();
    ::umount2("/home", MNT_DETACH);
    // Read-only flushes the journal, so that the next start has nothing to replay.
    ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_RDONLY, nullptr);
    ::sync();
    ::reboot(RB_POWER_OFF);
    ::_exit(0); // not reached; the kernel would panic, which with panic=-1 resets the machine
}

void UnitSystem::powerOff(std::chrono::milliseconds grace) {
    ::sync();
    // As `systemctl poweroff`, which needs a bus: systemd(1), SIGRTMIN+4.
    constexpr int kPowerOff = 4;
    ::kill(1, SIGRTMIN + kPowerOff);
    const auto until = std::chrono::steady_clock::now() + grace + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < until) {
        constexpr timespec kPause{0, 100'000'000};
        ::nanosleep(&kPause, nullptr); // SIGTERM ends us here
    }
    ::sync();
    ::reboot(RB_POWER_OFF);
    ::_exit(1);
}

} // namespace bulkhead::agent

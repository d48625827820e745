// SPDX-License-Identifier: Apache-2.0
#include "agent/guest_system.hpp"

#include "agent/time_zone.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
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

} // namespace

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

// SPDX-License-Identifier: Apache-2.0
#include "agent/reaper.hpp"

#include "agent/small_file.hpp"

#include <sstream>
#include <string>
#include <sys/wait.h>

namespace bulkhead::agent {

void reapAllBut(const std::set<pid_t>& kept) {
    for (;;) {
        siginfo_t ended{};
        if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) {
            return;
        }
        if (kept.contains(ended.si_pid)) {
            break;
        }
        ::waitpid(ended.si_pid, nullptr, WNOHANG);
    }
    // The kernel always names the same one first, so the others have to be asked for by number. Should the list not be
    // readable, they stay until the kept one is gone.
    constexpr std::size_t kMostBytes = std::size_t{1} << 20;
    std::istringstream children(readSmallFile("/proc/thread-self/children", kMostBytes).value_or(""));
    for (pid_t pid = 0; children >> pid;) {
        if (!kept.contains(pid)) {
            ::waitpid(pid, nullptr, WNOHANG);
        }
    }
}

} // namespace bulkhead::agent

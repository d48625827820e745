// SPDX-License-Identifier: Apache-2.0
#include "session/launcher.hpp"

#include "base/unique_fd.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bulkhead::session {
namespace {

[[noreturn]] void becomeProgram(char* const* argv, int report) {
    ::setsid();
    // Not where we began: in a machine that was begun from a memory image the home was mounted over that since.
    if (const char* const home = std::getenv("HOME"); home == nullptr || ::chdir(home) != 0) {
        static_cast<void>(!::chdir("/"));
    }
    // What we ignore, a program must not.
    for (const int number : {SIGPIPE, SIGCHLD, SIGTERM, SIGINT, SIGHUP}) {
        std::signal(number, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int null = ::open("/dev/null", O_RDONLY);
    if (null >= 0) {
        ::dup2(null, STDIN_FILENO);
    }
    // Also those that a library opened without close-on-exec.
    ::syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execvp(argv[0], argv);
    const int why = errno;
    static_cast<void>(!::write(report, &why, sizeof why));
    ::_exit(127);
}

} // namespace

void forgetChildren() {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    action.sa_flags = SA_NOCLDWAIT;
    ::sigaction(SIGCHLD, &action, nullptr);
}

int startProgram(const std::vector<std::string>& argv) {
    if (argv.empty()) {
        return EINVAL;
    }
    std::vector<char*> words;
    for (const std::string& word : argv) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return errno;
    }
    UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) {
        return errno;
    }
    if (child == 0) {
        becomeProgram(words.data(), writing.get());
    }
    writing.reset();
    int why = 0;
    ssize_t count = 0;
    do {
        // Ends at exec, which closes the other end.
        count = ::read(reading.get(), &why, sizeof why);
    } while (count < 0 && errno == EINTR);
    return count == static_cast<ssize_t>(sizeof why) ? why : 0;
}

} // namespace bulkhead::session

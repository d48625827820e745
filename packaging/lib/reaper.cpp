// SPDX-License-Identifier: Apache-2.0
// bulkhead-reaper COMMAND [ARGUMENT…]
//
// Runs COMMAND and collects every orphan below it at once. Where PID 1 collects late (containers, test systems), a
// QEMU that has exited stays a zombie and libvirt's destroy waits 1 to 2 s for it; below this program it takes 0.2 s.
//
// It stays until no process is left below it, so that emulators which outlive a killed libvirtd are still collected.
// As the PID 1 of a namespace it ends with COMMAND instead: the kernel then kills whatever is left in the namespace.
// Its exit status is COMMAND's, or 128 + the signal that ended it. SIGTERM, SIGINT and SIGHUP are passed on.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

volatile std::sig_atomic_t g_child = 0; // a signal handler has no other way to learn it

void passOn(int signal) {
    if (g_child > 0) {
        ::kill(static_cast<pid_t>(g_child), signal);
    }
}

void setHandlers(void (*handler)(int)) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = SA_RESTART;
        ::sigaction(signal, &action, nullptr);
    }
}

int exitStatus(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: bulkhead-reaper COMMAND [ARGUMENT…]\n", stderr);
        return 2;
    }
    const bool isInit = ::getpid() == 1;
    if (!isInit && ::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        std::fprintf(stderr, "bulkhead-reaper: cannot become a subreaper: %s\n", std::strerror(errno));
        return 126;
    }
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        sigaddset(&signals, signal);
    }
    // Held back until the handler knows the child, so that an early signal is neither lost nor fatal.
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    const pid_t child = ::fork();
    if (child < 0) {
        std::fprintf(stderr, "bulkhead-reaper: cannot fork: %s\n", std::strerror(errno));
        return 126;
    }
    if (child == 0) {
        ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
        ::execvp(argv[1], argv + 1);
        const int error = errno;
        std::fprintf(stderr, "bulkhead-reaper: cannot run %s: %s\n", argv[1], std::strerror(error));
        ::_exit(error == ENOENT ? 127 : 126);
    }
    g_child = child;
    setHandlers(passOn);
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);

    int result = 0;
    for (;;) {
        int status = 0;
        const pid_t ended = ::wait(&status);
        if (ended == child) {
            g_child = 0;
            result = exitStatus(status);
            if (isInit) {
                return result;
            }
        } else if (ended < 0 && errno == ECHILD) {
            return result;
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
#include "process/spawn.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bulkhead::process {

namespace {

enum class Step : int { Session, Descriptors, Identity, DeathSignal, Privileges, Directory, Execute };

const char* nameOf(Step step) {
    switch (step) {
    case Step::Session:
        return "make a process group";
    case Step::Descriptors:
        return "set up descriptors";
    case Step::Identity:
        return "change user";
    case Step::DeathSignal:
        return "set the death signal";
    case Step::Privileges:
        return "give up privileges";
    case Step::Directory:
        return "enter the working directory";
    case Step::Execute:
        return "execute";
    }
    return "start";
}

struct Failure {
    int error = 0;
    Step step = Step::Execute;
};

/// Everything that the child needs, made before the fork: afterwards the child may call async-signal-safe functions
/// only, because another thread may have held any lock at the moment of the fork.
struct Prepared {
    const ProcessSpec& spec;
    std::string program;
    std::string directory;
    std::vector<char*> argv;
    std::vector<char*> envp;
    std::vector<DescriptorMapping> descriptors; ///< with 0, 1 and 2
    std::vector<int> parked;                    ///< room for the child's copies
    int firstFree = 3;                          ///< above all descriptor numbers that the child wants
    pid_t parent = 0;                           ///< before the fork
};

[[noreturn]] void giveUp(int report, Step step) {
    const Failure failure{errno, step};
    // If this cannot be written, the parent sees the exit status.
    [[maybe_unused]] const auto written = ::write(report, &failure, sizeof(failure));
    ::_exit(127);
}

[[noreturn]] void runChild(Prepared& prepared, int report) {
    const ProcessSpec& spec = prepared.spec;
    struct sigaction action {};
    action.sa_handler = SIG_DFL; // NOLINT: a macro with a C cast
    for (int number = 1; number < NSIG; ++number) {
        ::sigaction(number, &action, nullptr); // KILL, STOP and libc's own two refuse; that is fine
    }
    if (spec.newSession ? ::setsid() < 0 : ::setpgid(0, 0) != 0) {
        giveUp(report, Step::Session);
    }
    ::umask(spec.umask);

    // All descriptors close at exec; then copies are parked above every number that is wanted, so that no mapping can
    // overwrite the source of another; then they are put in place, which leaves them open at exec.
    if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
        giveUp(report, Step::Descriptors);
    }
    const int movedReport = ::fcntl(report, F_DUPFD_CLOEXEC, prepared.firstFree);
    if (movedReport < 0) {
        giveUp(report, Step::Descriptors);
    }
    report = movedReport;
    for (std::size_t i = 0; i < prepared.descriptors.size(); ++i) {
        prepared.parked[i] = ::fcntl(prepared.descriptors[i].ours, F_DUPFD_CLOEXEC, prepared.firstFree);
        if (prepared.parked[i] < 0) {
            giveUp(report, Step::Descriptors);
        }
    }
    for (std::size_t i = 0; i < prepared.descriptors.size(); ++i) {
        if (::dup2(prepared.parked[i], prepared.descriptors[i].child) < 0) {
            giveUp(report, Step::Descriptors);
        }
    }

    if (spec.identity) {
        // The system calls themselves: libc's wrappers would signal threads that this process does not have.
        if (::syscall(SYS_setgroups, 0, nullptr) != 0 ||
            ::syscall(SYS_setresgid, spec.identity->gid, spec.identity->gid, spec.identity->gid) != 0 ||
            ::syscall(SYS_setresuid, spec.identity->uid, spec.identity->uid, spec.identity->uid) != 0) {
            giveUp(report, Step::Identity);
        }
    }
    // After the change of user, which clears it.
    if (spec.deathSignal && ::prctl(PR_SET_PDEATHSIG, *spec.deathSignal, 0, 0, 0) != 0) {
        giveUp(report, Step::DeathSignal);
    }
    // A parent that has ended before this sends nothing any more.
    if (spec.deathSignal && ::getppid() != prepared.parent) {
        errno = ESRCH;
        giveUp(report, Step::DeathSignal);
    }
    if (spec.noNewPrivileges && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        giveUp(report, Step::Privileges);
    }
    if (::chdir(prepared.directory.c_str()) != 0) {
        giveUp(report, Step::Directory);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(prepared.program.c_str(), prepared.argv.data(), prepared.envp.data());
    giveUp(report, Step::Execute);
}

Status check(const ProcessSpec& spec) {
    const auto bad = [&](const std::string& why) {
        return fail(ErrorCode::InvalidArgument, "cannot start " + spec.program.string() + ": " + why);
    };
    if (!spec.program.is_absolute()) {
        return bad("the program's path is not absolute");
    }
    const auto hasNul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    if (hasNul(spec.program.native()) || std::any_of(spec.arguments.begin(), spec.arguments.end(), hasNul) ||
        std::any_of(spec.environment.begin(), spec.environment.end(), hasNul)) {
        return bad("an argument has a zero byte");
    }
    std::vector<int> seen;
    for (const DescriptorMapping& mapping : spec.descriptors) {
        if (mapping.child < 0 || mapping.ours < 0 || mapping.child > 255) {
            return bad("a descriptor mapping is out of range");
        }
        if (std::find(seen.begin(), seen.end(), mapping.child) != seen.end()) {
            return bad("descriptor " + std::to_string(mapping.child) + " is mapped twice");
        }
        seen.push_back(mapping.child);
    }
    return {};
}

} // namespace

std::vector<std::string> toolEnvironment() {
    return {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8"};
}

std::string ExitStatus::text() const {
    if (signal != 0) {
        const char* const name = ::sigdescr_np(signal);
        return "killed by signal " + std::to_string(signal) + (name != nullptr ? " (" + std::string(name) + ")" : "");
    }
    return "exit status " + std::to_string(code);
}

Result<Child> spawn(const ProcessSpec& spec) {
    if (const Status good = check(spec); !good) {
        return fail(good.error());
    }
    const std::string what = "cannot start " + spec.program.string();

    Prepared prepared{
        spec, spec.program.string(), spec.workingDirectory.value_or("/").string(), {}, {}, spec.descriptors, {}, 3};
    prepared.argv.push_back(prepared.program.data());
    for (const std::string& argument : spec.arguments) {
        prepared.argv.push_back(const_cast<char*>(argument.c_str())); // execve(2) does not write to them
    }
    prepared.argv.push_back(nullptr);
    for (const std::string& variable : spec.environment) {
        prepared.envp.push_back(const_cast<char*>(variable.c_str()));
    }
    prepared.envp.push_back(nullptr);

    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    std::array<int, 2> pipeEnds{-1, -1};
    if (!null || ::pipe2(pipeEnds.data(), O_CLOEXEC) != 0) {
        return failErrno(what, errno);
    }
    const UniqueFd reportReader(pipeEnds[0]);
    UniqueFd reportWriter(pipeEnds[1]);
    for (int standard = 0; standard < 3; ++standard) {
        if (std::none_of(spec.descriptors.begin(), spec.descriptors.end(),
                         [&](const auto& m) { return m.child == standard; })) {
            prepared.descriptors.push_back({standard, null.get()});
        }
    }
    for (const DescriptorMapping& mapping : prepared.descriptors) {
        prepared.firstFree = std::max(prepared.firstFree, mapping.child + 1);
    }
    prepared.parked.resize(prepared.descriptors.size(), -1);

    // No handler of ours may run in the child before it has put the defaults back.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    prepared.parent = ::getpid();
    const pid_t pid = ::fork();
    const int forkError = errno;
    if (pid == 0) {
        runChild(prepared, reportWriter.get());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) {
        return failErrno(what, forkError);
    }
    reportWriter.reset();

    Failure failure;
    ssize_t got = 0;
    do {
        got = ::read(reportReader.get(), &failure, sizeof(failure));
    } while (got < 0 && errno == EINTR);
    if (got == static_cast<ssize_t>(sizeof(failure))) {
        ::waitpid(pid, nullptr, 0);
        return failErrno(what + ": " + nameOf(failure.step), failure.error);
    }
    // The child is not reaped yet, so its number cannot have been given to another process.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    if (!pidfd) {
        const int error = errno;
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        return failErrno(what + ": open a descriptor of the process", error);
    }
    return Child{pid, std::move(pidfd)};
}

Result<std::optional<ExitStatus>> reap(const Child& child) {
    siginfo_t info{};
    int result = 0;
    do {
        result = ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        return failErrno("cannot collect process " + std::to_string(child.pid), errno);
    }
    if (info.si_pid == 0) {
        return std::optional<ExitStatus>{};
    }
    if (info.si_code == CLD_EXITED) {
        return std::optional<ExitStatus>{ExitStatus{info.si_status, 0}};
    }
    return std::optional<ExitStatus>{ExitStatus{0, info.si_status}};
}

} // namespace bulkhead::process

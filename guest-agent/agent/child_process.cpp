// SPDX-License-Identifier: Apache-2.0
#include "agent/child_process.hpp"

#include "agent/small_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {
namespace {

struct Pipe {
    UniqueFd reader;
    UniqueFd writer;
};

Result<Pipe> makePipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return failErrno("make a pipe", errno);
    }
    return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

void makeNonBlocking(const UniqueFd& fd) {
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

/// The child's ends.
struct Stdio {
    UniqueFd input;
    UniqueFd output;
    UniqueFd errors;
};

Status openPipes(Child& child, Stdio& stdio, const ChildPlan& plan) {
    auto input = makePipe();
    auto output = makePipe();
    auto errors = makePipe();
    if (!input || !output || !errors) {
        return fail(ErrorCode::LimitExceeded, "No descriptors for the program's pipes");
    }
    if (plan.account) {
        // A program may open /dev/stderr anew, for which it must own the pipe.
        for (const int fd : {input->reader.get(), output->writer.get(), errors->writer.get()}) {
            if (::fchown(fd, plan.account->uid, plan.account->gid) != 0) {
                return failErrno("give the pipes to the user", errno);
            }
        }
    }
    child.input = std::move(input->writer);
    child.output = std::move(output->reader);
    child.errors = std::move(errors->reader);
    stdio = {std::move(input->reader), std::move(output->writer), std::move(errors->writer)};
    makeNonBlocking(child.input);
    makeNonBlocking(child.output);
    makeNonBlocking(child.errors);
    return {};
}

Status openTerminal(Child& child, Stdio& stdio, const ChildPlan& plan) {
    UniqueFd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    int unlock = 0;
    if (!master || ::ioctl(master.get(), TIOCSPTLCK, &unlock) != 0) {
        return failErrno("open a terminal", errno);
    }
    // By descriptor, not by name: what is mounted on /dev/pts may be the guest programs' doing.
    UniqueFd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!slave) {
        return failErrno("open a terminal's other end", errno);
    }
    if (plan.account) {
        constexpr gid_t kTtyGroup = 5;
        if (::fchown(slave.get(), plan.account->uid, kTtyGroup) != 0 || ::fchmod(slave.get(), 0620) != 0) {
            return failErrno("give the terminal to the user", errno);
        }
    }
    const winsize size{plan.rows, plan.columns, 0, 0};
    ::ioctl(master.get(), TIOCSWINSZ, &size);
    termios settings{};
    if (::tcgetattr(slave.get(), &settings) == 0) {
        settings.c_iflag |= IUTF8;
        ::tcsetattr(slave.get(), TCSANOW, &settings);
    }
    child.input.reset(::fcntl(master.get(), F_DUPFD_CLOEXEC, 3));
    child.output = std::move(master);
    stdio.output.reset(::fcntl(slave.get(), F_DUPFD_CLOEXEC, 3));
    stdio.errors.reset(::fcntl(slave.get(), F_DUPFD_CLOEXEC, 3));
    stdio.input = std::move(slave);
    if (!child.input || !stdio.output || !stdio.errors) {
        return fail(ErrorCode::LimitExceeded, "No descriptors for the program's terminal");
    }
    return {};
}

[[noreturn]] void giveUp(int report, ChildFailure::Stage stage, int errorNumber) {
    const ChildFailure failure{stage, errorNumber};
    // A pipe takes so little at once; when the agent is gone nobody wants to know.
    [[maybe_unused]] const ssize_t written = ::write(report, &failure, sizeof failure);
    ::_exit(127);
}

void resetSignals() {
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction action {};
        action.sa_handler = SIG_DFL;
        ::sigaction(signal, &action, nullptr); // refused for KILL, STOP and libc's own
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void limitResources(const ChildPlan& plan) {
    // Soft 1024 because of select(2); programs that want more may raise it.
    const rlimit files{1024, 524288};
    ::setrlimit(RLIMIT_NOFILE, &files);
    const rlimit noCore{0, RLIM_INFINITY};
    ::setrlimit(RLIMIT_CORE, &noCore);
    if (plan.limitProcesses != 0) {
        const rlimit processes{plan.limitProcesses, plan.limitProcesses};
        ::setrlimit(RLIMIT_NPROC, &processes);
    }
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

std::string_view pathOf(const std::vector<std::string>& environment) {
    constexpr std::string_view kName = "PATH=";
    for (const std::string& entry : environment) {
        if (entry.starts_with(kName)) {
            return std::string_view(entry).substr(kName.size());
        }
    }
    return "/usr/bin:/bin";
}

/// As execvpe(3), but with the PATH of the program's environment and without a shell for files that have no header.
/// Returns the errno that says it best.
int become(std::vector<std::string> argv, std::vector<std::string> environment) {
    const std::string name = argv.front();
    if (name.empty()) {
        return ENOENT;
    }
    const std::vector<char*> arguments = pointersTo(argv);
    const std::string path(pathOf(environment));
    const std::vector<char*> variables = pointersTo(environment);
    if (name.find('/') != std::string::npos) {
        ::execve(name.c_str(), arguments.data(), variables.data());
        return errno;
    }
    int best = ENOENT;
    std::string_view rest = path;
    for (;;) {
        const std::size_t colon = rest.find(':');
        const std::string_view folder = rest.substr(0, colon);
        const std::string candidate = (folder.empty() ? std::string(".") : std::string(folder)) + "/" + name;
        ::execve(candidate.c_str(), arguments.data(), variables.data());
        if (errno == EACCES) {
            best = EACCES; // perhaps a later folder has one that may be run
        } else if (errno != ENOENT && errno != ENOTDIR) {
            return errno;
        }
        if (colon == std::string_view::npos) {
            return best;
        }
        rest.remove_prefix(colon + 1);
    }
}

[[noreturn]] void runChild(const ChildPlan& plan, const Stdio& stdio, int report) {
    using Stage = ChildFailure::Stage;
    resetSignals();
    ::setsid();
    if (plan.terminal && ::ioctl(stdio.input.get(), TIOCSCTTY, 0) != 0) {
        giveUp(report, Stage::Setup, errno);
    }
    if (::dup2(stdio.input.get(), 0) < 0 || ::dup2(stdio.output.get(), 1) < 0 || ::dup2(stdio.errors.get(), 2) < 0) {
        giveUp(report, Stage::Setup, errno);
    }
    // Ours are close-on-exec by themselves; this is for what the agent itself may have inherited.
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    ::umask(022);
    limitResources(plan);
    // The agent protects itself from the out-of-memory killer; its children must not inherit that.
    writeKernelFile("/proc/self/oom_score_adj", "0");
    if (plan.account) {
        if (::setgroups(plan.groups.size(), plan.groups.data()) != 0 || ::setgid(plan.account->gid) != 0 ||
            ::setuid(plan.account->uid) != 0) {
            giveUp(report, Stage::Setup, errno);
        }
    }
    if (::chdir(plan.cwd.c_str()) != 0) {
        const int why = errno;
        if (!plan.cwdMayBeMissing || ::chdir("/") != 0) {
            giveUp(report, Stage::Directory, why);
        }
    }
    giveUp(report, Stage::Lookup, become(plan.argv, plan.environment));
}

} // namespace

Result<Child> startChild(const ChildPlan& plan) {
    Child child;
    Stdio stdio;
    if (auto opened = plan.terminal ? openTerminal(child, stdio, plan) : openPipes(child, stdio, plan); !opened) {
        return fail(opened.error());
    }
    auto report = makePipe();
    if (!report) {
        return fail(report.error());
    }
    child.pid = ::fork();
    if (child.pid < 0) {
        return failErrno("start a process", errno);
    }
    if (child.pid == 0) {
        runChild(plan, stdio, report->writer.get());
    }
    makeNonBlocking(report->reader);
    child.report = std::move(report->reader);
    return child;
}

std::vector<std::string> loginEnvironment(const Account& account, const std::vector<std::string>& extra,
                                          const std::optional<std::string>& term) {
    std::vector<std::string> environment{
        "HOME=" + account.home,
        "USER=" + account.name,
        "LOGNAME=" + account.name,
        "SHELL=" + account.shell,
        account.uid == 0 ? "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                         : "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games",
        "LANG=C.UTF-8",
    };
    if (term) {
        environment.push_back("TERM=" + *term);
    }
    for (const std::string& entry : extra) {
        const std::string_view name = std::string_view(entry).substr(0, entry.find('=') + 1);
        const auto same = std::find_if(environment.begin(), environment.end(),
                                       [name](const std::string& known) { return known.starts_with(name); });
        if (same == environment.end()) {
            environment.push_back(entry);
        } else {
            *same = entry;
        }
    }
    return environment;
}

} // namespace bulkhead::agent

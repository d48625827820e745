// SPDX-License-Identifier: Apache-2.0
#include "memcap/hardening.hpp"

#include <cerrno>
#include <csignal>
#include <linux/capability.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

namespace bulkhead::memcap {

namespace {

/// Beside the buffer: the program, the lists of runs, one scratch block.
constexpr rlim_t kMaxOtherMemory = rlim_t{512} * 1024 * 1024;

/// For comparing and writing, which nobody stands still for.
constexpr int kLatePriority = 5;

Status limit(decltype(RLIMIT_NOFILE) resource, rlim_t value, const char* what) {
    rlimit now{};
    if (::getrlimit(resource, &now) != 0) {
        return failErrno(std::string("read the limit of ") + what, errno);
    }
    const rlim_t lowered = std::min(value, now.rlim_max);
    const rlimit wanted{lowered, lowered};
    if (::setrlimit(resource, &wanted) != 0) {
        return failErrno(std::string("limit ") + what, errno);
    }
    return {};
}

/// Keeps those of `kept` (a mask of the first 32 capabilities) that we have.
Status keepCapabilities(std::uint32_t kept) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> sets{};
    if (::syscall(SYS_capget, &header, sets.data()) != 0) {
        return failErrno("read the capabilities", errno);
    }
    kept &= sets[0].permitted;
    sets = {};
    sets[0].permitted = kept;
    sets[0].effective = kept;
    if (::syscall(SYS_capset, &header, sets.data()) != 0) {
        return failErrno("drop capabilities", errno);
    }
    return {};
}

Status dropCapabilities() {
    // Who has no capabilities need not (and may not) clear the bounding set.
    for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
        if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 && errno != EPERM) {
            return failErrno("drop a capability from the bounding set", errno);
        }
    }
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
        return failErrno("clear the ambient capabilities", errno);
    }
    return keepCapabilities(std::uint32_t{1} << CAP_SYS_PTRACE);
}

#ifndef BULKHEAD_NO_SECCOMP

class Filter {
public:
    Filter()
        : m_context(::seccomp_init(SCMP_ACT_KILL_PROCESS)) {}
    Filter(const Filter&) = delete;
    Filter& operator=(const Filter&) = delete;
    ~Filter() { ::seccomp_release(m_context); }

    void allow(int call) { note(::seccomp_rule_add_array(m_context, SCMP_ACT_ALLOW, call, 0, nullptr)); }
    void allowWhen(int call, scmp_arg_cmp condition) {
        note(::seccomp_rule_add_array(m_context, SCMP_ACT_ALLOW, call, 1, &condition));
    }
    Status load() {
        if (m_context == nullptr) {
            return fail(ErrorCode::HostFailure, "no memory for the system call filter");
        }
        if (m_error == 0) {
            m_error = ::seccomp_load(m_context);
        }
        return m_error == 0 ? Status{} : Status(failErrno("install the system call filter", -m_error));
    }

private:
    void note(int result) {
        if (m_error == 0 && result != 0) {
            m_error = result;
        }
    }
    scmp_filter_ctx m_context;
    int m_error = 0;
};

scmp_arg_cmp argument(unsigned index, scmp_compare how, std::uint64_t a, std::uint64_t b = 0) {
    return {index, how, a, b};
}

Status installFilter(pid_t emulator) {
    Filter filter;
    // Of other processes only the one, and reading only.
    filter.allowWhen(SCMP_SYS(process_vm_readv), argument(0, SCMP_CMP_EQ, static_cast<std::uint64_t>(emulator)));
    filter.allowWhen(SCMP_SYS(setpriority), argument(0, SCMP_CMP_EQ, PRIO_PROCESS));
    // The descriptors that are open; none can be opened any more.
    for (const int call :
         {SCMP_SYS(read),          SCMP_SYS(write),      SCMP_SYS(pread64),         SCMP_SYS(pwrite64),
          SCMP_SYS(lseek),         SCMP_SYS(close),      SCMP_SYS(fstat),           SCMP_SYS(newfstatat),
          SCMP_SYS(fallocate),     SCMP_SYS(ftruncate),  SCMP_SYS(fsync),           SCMP_SYS(poll),
          SCMP_SYS(clock_gettime), SCMP_SYS(capget),     SCMP_SYS(capset),          SCMP_SYS(getrandom),
          SCMP_SYS(exit),          SCMP_SYS(exit_group), SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigreturn)}) {
        filter.allow(call);
    }
    // malloc and the buffer, without memory that could be run.
    for (const int call : {SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex)}) {
        filter.allow(call);
    }
    filter.allowWhen(SCMP_SYS(mmap), argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    filter.allowWhen(SCMP_SYS(mprotect), argument(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    // abort(), so that a failed assertion says what it is.
    for (const int call : {SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(getpid), SCMP_SYS(gettid)}) {
        filter.allow(call);
    }
    filter.allowWhen(SCMP_SYS(tgkill), argument(0, SCMP_CMP_EQ, static_cast<std::uint64_t>(::getpid())));
    return filter.load();
}

#endif

} // namespace

Status closeInherited(int lastFd) {
    if (::close_range(static_cast<unsigned>(lastFd) + 1, ~0U, 0) != 0) {
        return failErrno("close inherited descriptors", errno);
    }
    return {};
}

void hurry() {
    constexpr int kFirst = -20;
    ::setpriority(PRIO_PROCESS, 0, kFirst);
}

Status giveUpPrivileges([[maybe_unused]] pid_t emulator, [[maybe_unused]] Bytes ram) {
    // A file that would become too large is an error (EFBIG), not the end.
    ::signal(SIGXFSZ, SIG_IGN);
    ::signal(SIGPIPE, SIG_IGN);
    if (auto status = limit(RLIMIT_CORE, 0, "core files"); !status) {
        return status;
    }
#ifndef BULKHEAD_NO_SECCOMP // a sanitizer reserves terabytes of addresses
    if (auto status = limit(RLIMIT_AS, ram + kMaxOtherMemory, "memory"); !status) {
        return status;
    }
#endif
    if (auto status = dropCapabilities(); !status) {
        return status;
    }
    if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return failErrno("give up being dumpable and new privileges", errno);
    }
#ifndef BULKHEAD_NO_SECCOMP
    return installFilter(emulator);
#else
    return {};
#endif
}

Status giveUpReading() {
    // Others first now. Lowering the priority needs no right.
    ::setpriority(PRIO_PROCESS, 0, kLatePriority);
    return keepCapabilities(0);
}

} // namespace bulkhead::memcap

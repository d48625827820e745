// SPDX-License-Identifier: Apache-2.0
#include "viewer/confinement.hpp"

#include <cerrno>
#include <cstring>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <string>

namespace bulkhead::viewer {
namespace {

class Filter {
public:
    Filter()
        : m_context(::seccomp_init(SCMP_ACT_ALLOW)) {
        // Qt's threads for D-Bus and the X server are there already.
        note(::seccomp_attr_set(m_context, SCMP_FLTATR_CTL_TSYNC, 1));
    }
    Filter(const Filter&) = delete;
    Filter& operator=(const Filter&) = delete;
    ~Filter() { ::seccomp_release(m_context); }

    void refuse(int call, int errorNumber = EPERM) {
        note(::seccomp_rule_add_array(m_context, SCMP_ACT_ERRNO(static_cast<std::uint16_t>(errorNumber)), call, 0,
                                      nullptr));
    }
    void refuseWhen(int call, scmp_arg_cmp condition) {
        note(::seccomp_rule_add_array(m_context, SCMP_ACT_ERRNO(EPERM), call, 1, &condition));
    }
    [[nodiscard]] int load() {
        if (m_error == 0) {
            m_error = ::seccomp_load(m_context);
        }
        return m_error;
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

int installFilter() {
    Filter filter;
    constexpr std::array kRefused{
        // programs
        SCMP_SYS(execve), SCMP_SYS(execveat),
        // other processes
        SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(process_madvise),
        SCMP_SYS(pidfd_getfd), SCMP_SYS(kcmp),
        // mounts and namespaces
        SCMP_SYS(mount), SCMP_SYS(umount2), SCMP_SYS(pivot_root), SCMP_SYS(chroot), SCMP_SYS(unshare), SCMP_SYS(setns),
        SCMP_SYS(fsopen), SCMP_SYS(fsmount), SCMP_SYS(fsconfig), SCMP_SYS(fspick), SCMP_SYS(move_mount),
        SCMP_SYS(open_tree), SCMP_SYS(mount_setattr),
        // the kernel itself
        SCMP_SYS(bpf), SCMP_SYS(perf_event_open), SCMP_SYS(init_module), SCMP_SYS(finit_module),
        SCMP_SYS(delete_module), SCMP_SYS(kexec_load), SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(swapon),
        SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(quotactl), SCMP_SYS(syslog), SCMP_SYS(iopl), SCMP_SYS(ioperm),
        SCMP_SYS(userfaultfd), SCMP_SYS(open_by_handle_at), SCMP_SYS(io_uring_setup), SCMP_SYS(io_uring_enter),
        SCMP_SYS(io_uring_register),
        // keys
        SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl)};
    for (const int call : kRefused) {
        filter.refuse(call);
    }
    filter.refuseWhen(SCMP_SYS(socket), {0, SCMP_CMP_NE, AF_UNIX, 0});
    filter.refuseWhen(SCMP_SYS(socketpair), {0, SCMP_CMP_NE, AF_UNIX, 0});
    filter.refuseWhen(SCMP_SYS(clone), {0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER});
    // Its flags lie in memory, out of a filter's sight; the C library falls back to clone().
    filter.refuse(SCMP_SYS(clone3), ENOSYS);
    return filter.load();
}

tl::unexpected<client::Failure> failedTo(const char* what, int errorNumber) {
    return client::failed(client::code::kHostFailure,
                          std::string("cannot ") + what + ": " + std::strerror(errorNumber));
}

} // namespace

client::Outcome<void> confine() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return failedTo("give up the right to new privileges", errno);
    }
    // A core file would hold what the guest showed.
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_CORE, &none) != 0) {
        return failedTo("forbid core files", errno);
    }
    if (const int error = installFilter(); error != 0) {
        return failedTo("install the system call filter", -error);
    }
    return {};
}

} // namespace bulkhead::viewer

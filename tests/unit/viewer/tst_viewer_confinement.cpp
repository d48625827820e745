// SPDX-License-Identifier: Apache-2.0
#include "viewer/confinement.hpp"

#include <QByteArray>
#include <QFile>
#include <QTest>

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <future>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;

namespace {

/// What `act` gives in a process of its own: 0, or the error number; -1 when it died. Confined before, if wanted.
int inAProcess(bool confined, const std::function<int()>& act) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        if (confined && !viewer::confine()) {
            ::_exit(254);
        }
        errno = 0;
        ::_exit(act() < 0 ? errno : 0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int openSocket(int family) {
    return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

int runTrue() {
    char* argv[] = {const_cast<char*>("/bin/true"), nullptr};
    return ::execve(argv[0], argv, nullptr);
}

} // namespace

using Act = std::function<int()>;
Q_DECLARE_METATYPE(Act)

class TestViewerConfinement : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatAViewerNeedsNotIsRefused_data() {
        QTest::addColumn<Act>("act");
        QTest::addColumn<bool>("worksOtherwise"); ///< the control: without the filter it succeeds here
        QTest::newRow("inet") << Act([] { return openSocket(AF_INET); }) << true;
        QTest::newRow("inet6") << Act([] { return openSocket(AF_INET6); }) << false;
        QTest::newRow("netlink") << Act([] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }) << true;
        QTest::newRow("vsock") << Act([] { return openSocket(AF_VSOCK); }) << false;
        QTest::newRow("packet") << Act([] { return ::socket(AF_PACKET, SOCK_RAW, 0); }) << false;
        QTest::newRow("program") << Act(runTrue) << true;
        QTest::newRow("trace") << Act([] { return static_cast<int>(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); })
                               << true;
        QTest::newRow("mount") << Act([] { return ::mount("none", "/proc/self", "tmpfs", 0, nullptr); }) << false;
        QTest::newRow("namespace") << Act([] { return ::unshare(CLONE_NEWUSER); }) << false;
        QTest::newRow("bpf") << Act([] { return static_cast<int>(::syscall(SYS_bpf, BPF_MAP_CREATE, nullptr, 0)); })
                             << false;
        QTest::newRow("module") << Act([] { return static_cast<int>(::syscall(SYS_finit_module, -1, "", 0)); })
                                << false;
        QTest::newRow("keys") << Act([] { return static_cast<int>(::syscall(SYS_keyctl, 0, 0, 0, 0, 0)); }) << false;
        QTest::newRow("memory of others") << Act([] {
            return static_cast<int>(::syscall(SYS_process_vm_readv, ::getppid(), nullptr, 0, nullptr, 0, 0));
        }) << false;
    }
    void whatAViewerNeedsNotIsRefused() {
        QFETCH(Act, act);
        QFETCH(bool, worksOtherwise);
        QCOMPARE(inAProcess(true, act), EPERM);
        if (worksOtherwise) {
            QCOMPARE(inAProcess(false, act), 0);
        }
    }

    void whatAViewerNeedsWorks() {
        QCOMPARE(inAProcess(true, [] { return openSocket(AF_UNIX); }), 0);
        QCOMPARE(inAProcess(true, [] { return ::open("/proc/self/status", O_RDONLY | O_CLOEXEC); }), 0);
        QCOMPARE(inAProcess(true,
                            [] {
                                std::thread other([] {});
                                other.join();
                                return 0;
                            }),
                 0);
    }

    void theKernelSaysSo() {
        const auto ask = [] {
            QFile file("/proc/self/status");
            if (!file.open(QIODevice::ReadOnly)) {
                return -1;
            }
            const QByteArray status = file.readAll();
            errno = 1;
            return status.contains("Seccomp:\t2\n") && status.contains("NoNewPrivs:\t1\n") ? 0 : -1;
        };
        QCOMPARE(inAProcess(true, ask), 0);
        QVERIFY(inAProcess(false, ask) != 0);
    }

    /// Qt has threads before the filter comes.
    void earlierThreadsAreConfinedToo() {
        const auto fromAnEarlierThread = [] {
            std::promise<void> confined;
            auto answer = std::async(std::launch::async, [&] {
                confined.get_future().wait();
                const int fd = openSocket(AF_INET);
                return fd < 0 ? errno : 0;
            });
            if (!viewer::confine()) {
                return -1;
            }
            confined.set_value();
            errno = 1;
            return answer.get() == EPERM ? 0 : -1;
        };
        QCOMPARE(inAProcess(false, fromAnEarlierThread), 0);
    }
};

QTEST_APPLESS_MAIN(TestViewerConfinement)
#include "tst_viewer_confinement.moc"

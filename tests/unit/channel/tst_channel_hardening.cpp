// SPDX-License-Identifier: Apache-2.0
#include "channel/hardening.hpp"

#include <QTest>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <new>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace bulkhead::channel;

namespace {
/// Runs `work` in a child that has given up its privileges; the wait status.
int runConfined(const std::function<void()>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        for (const int number : {SIGABRT, SIGSEGV, SIGSYS}) {
            ::signal(number, SIG_DFL); // Qt Test has handlers that do much
        }
        if (!giveUpPrivileges()) {
            ::_exit(99);
        }
        work();
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}
} // namespace

class TestChannelHardening : public QObject {
    Q_OBJECT

private slots:
    void allowed() {
        const int status = runConfined([] {
            std::vector<std::unique_ptr<std::vector<char>>> blocks;
            for (std::size_t size = 1; size < 64 * 1024 * 1024; size *= 3) {
                blocks.push_back(std::make_unique<std::vector<char>>(size, 'x'));
            }
            blocks.clear();
            try {
                throw std::bad_alloc();
            } catch (const std::exception&) {
            }
            int pair[2];
            if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
                ::_exit(98);
            }
        });
        QVERIFY(WIFEXITED(status));
        QCOMPARE(WEXITSTATUS(status), 0);
    }
    /// A failed assertion must be told from a forbidden call.
    void abort_isAnAbort() {
        const int status = runConfined([] { std::abort(); });
        QVERIFY(WIFSIGNALED(status));
        QCOMPARE(WTERMSIG(status), SIGABRT);
    }
#ifndef BULKHEAD_NO_SECCOMP
    void heapCorruption_isAnAbort() {
        const int status = runConfined([] {
            // What malloc does when it finds its heap broken: write a line, then abort.
            void* volatile block = std::malloc(64); // volatile: the compiler must not see what is done here
            void (*volatile release)(void*) = std::free;
            release(block);
            release(block);
        });
        QVERIFY(WIFSIGNALED(status));
        QCOMPARE(WTERMSIG(status), SIGABRT);
    }
    void memory_isLimited() {
        const int status = runConfined([] {
            void* const block = std::malloc(std::size_t{600} * 1024 * 1024);
            ::_exit(block == nullptr ? 0 : 1);
        });
        QCOMPARE(WEXITSTATUS(status), 0);
    }
    void forbidden_data() {
        QTest::addColumn<std::function<void()>>("work");
        const auto row = [](const char* name, std::function<void()> work) { QTest::newRow(name) << work; };
        row("open", [] { (void)::open("/etc/passwd", O_RDONLY); });
        row("socket", [] { (void)::socket(AF_UNIX, SOCK_STREAM, 0); });
        row("network socket pair", [] {
            int pair[2];
            (void)::socketpair(AF_INET, SOCK_STREAM, 0, pair);
        });
        row("fork", [] { (void)::fork(); });
        row("exec", [] { (void)::execl("/bin/true", "true", nullptr); });
        row("kill", [] { (void)::kill(1, 0); });
        row("setuid", [] { [[maybe_unused]] const int result = ::setuid(0); });
    }
    void forbidden() {
        QFETCH(std::function<void()>, work);
        const int status = runConfined(work);
        QVERIFY(WIFSIGNALED(status));
        QCOMPARE(WTERMSIG(status), SIGSYS);
    }
#endif
};

QTEST_APPLESS_MAIN(TestChannelHardening)
#include "tst_channel_hardening.moc"

// SPDX-License-Identifier: Apache-2.0
#include "process/host_memory.hpp"
#include "process/run.hpp"
#include "process/spawn.hpp"
#include "process/system_clock.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::process;

namespace {

ProcessSpec shell(const std::string& script) {
    ProcessSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"-c", script};
    spec.environment = toolEnvironment();
    return spec;
}

std::string outputOf(const ProcessSpec& spec) {
    const auto result = run(spec);
    return result ? result->output : "error: " + result.error().message;
}

} // namespace

class TestProcess : public QObject {
    Q_OBJECT

private slots:
    void run_givesOutputErrorAndStatus() {
        const auto result = run(shell("echo out; echo err >&2; exit 7"));
        QVERIFY(result);
        QCOMPARE(result->output, std::string("out\n"));
        QCOMPARE(result->error, std::string("err\n"));
        QCOMPARE(result->status.code, 7);
        QCOMPARE(result->status.text(), std::string("exit status 7"));
    }
    void run_givesTheSignal() {
        const auto result = run(shell("kill -9 $$"));
        QVERIFY(result);
        QCOMPARE(result->status.signal, SIGKILL);
        QVERIFY(!result->status.isSuccess());
        QVERIFY(result->status.text().starts_with("killed by signal 9"));
    }
    void arguments_areNotParsedByAnyone() {
        ProcessSpec spec;
        spec.program = "/usr/bin/printf";
        spec.arguments = {"%s|", "a b", "$(id)", "", "*;'\""};
        QCOMPARE(outputOf(spec), std::string("a b|$(id)||*;'\"|"));
    }
    void environment_isNotInherited() {
        ::setenv("BULKHEAD_TEST_SECRET", "1", 1);
        ProcessSpec spec;
        spec.program = "/usr/bin/env";
        spec.environment = {"ONLY=this"};
        QCOMPARE(outputOf(spec), std::string("ONLY=this\n"));
    }
    void descriptors_onlyTheNamedOnesAreOpen() {
        const UniqueFd leaky(::open("/dev/null", O_RDONLY)); // no CLOEXEC on purpose
        QVERIFY(leaky);
        // ls itself has 3 open on the folder it lists.
        QCOMPARE(outputOf(shell("ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0")),
                 std::string("0 1 2 3 /dev/null\n"));
    }
    void descriptors_areMappedEvenWhenTheyCross() {
        QTemporaryDir folder;
        std::vector<UniqueFd> files;
        for (const char* text : {"A", "B"}) {
            const std::string path = folder.filePath(text).toStdString();
            std::ofstream(path) << text;
            files.emplace_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        }
        ProcessSpec spec = shell("cat <&4; cat <&3");
        // Ours may be 3 and 4 themselves: put them at known numbers first, then cross them.
        const UniqueFd low(::fcntl(files[0].get(), F_DUPFD_CLOEXEC, 3));
        const UniqueFd high(::fcntl(files[1].get(), F_DUPFD_CLOEXEC, 3));
        spec.descriptors = {{high.get() == 3 ? 4 : 3, low.get()}, {high.get() == 3 ? 3 : 4, high.get()}};
        if (spec.descriptors[0].child == 3) {
            QCOMPARE(outputOf(spec), std::string("BA"));
        } else {
            QCOMPARE(outputOf(spec), std::string("AB"));
        }
        // The exact swap: child 3 is our 4 and the other way round.
        const int a = low.get();
        const int b = high.get();
        ::lseek(a, 0, SEEK_SET);
        ::lseek(b, 0, SEEK_SET);
        ProcessSpec swapped = shell("cat <&" + std::to_string(a) + "; cat <&" + std::to_string(b));
        if (a > 9 || b > 9) {
            swapped.program = "/bin/bash"; // dash takes one digit only
        }
        swapped.descriptors = {{a, b}, {b, a}};
        QCOMPARE(outputOf(swapped), std::string("BA"));
    }
    void identity_isDroppedForGood() {
        if (::geteuid() != 0) {
            QSKIP("changing the user needs root");
        }
        ProcessSpec spec = shell("id -u; id -g; id -G; grep -E '^(Uid|Gid|NoNewPrivs|CapEff)' /proc/self/status | tr "
                                 "-s '\\t' ' '; umask; pwd");
        spec.identity = Identity{4711, 4712};
        spec.umask = 027;
        QCOMPARE(outputOf(spec), std::string("4711\n4712\n4712\nUid: 4711 4711 4711 4711\nGid: 4712 4712 4712 4712\n"
                                             "CapEff: 0000000000000000\nNoNewPrivs: 1\n0027\n/\n"));
    }
    void deathSignal_survivesTheChangeOfUser() {
        // reports.
        if (::geteuid() != 0) {
            QSKIP("changing the user needs root");
        }
        ProcessSpec spec = shell("sleep 60");
        spec.program = "/bin/sleep";
        spec.arguments = {"60"};
        spec.identity = Identity{4711, 4712};
        spec.deathSignal = SIGKILL;
        Result<Child> child = fail(ErrorCode::HostFailure, "not started");
        std::thread([&] { child = spawn(spec); }).join(); // the starting thread ends at once
        QVERIFY(child);
        pollfd ended{child->pidfd.get(), POLLIN, 0};
        QCOMPARE(::poll(&ended, 1, 5000), 1);
        const auto collected = reap(*child);
        QVERIFY(collected && collected->has_value());
        QCOMPARE((*collected)->signal, SIGKILL);
    }
    void workingDirectory_andNewSession() {
        ProcessSpec spec = shell("pwd; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader");
        spec.workingDirectory = "/usr";
        spec.newSession = true;
        QCOMPARE(outputOf(spec), std::string("/usr\nleader\n"));
    }
    void signals_areAtTheirDefaults() {
        ::signal(SIGPIPE, SIG_IGN);
        QCOMPARE(outputOf(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -s '\\t' ' '")),
                 std::string("SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n"));
    }

    void failure_namesTheStep_data() {
        QTest::addColumn<QString>("program");
        QTest::addColumn<QString>("folder");
        QTest::addColumn<QString>("message");
        QTest::newRow("no program") << "/nonexistent/x"
                                    << "/"
                                    << "cannot start /nonexistent/x: execute: No such file or directory";
        QTest::newRow("no folder") << "/bin/true"
                                   << "/nonexistent"
                                   << "cannot start /bin/true: enter the working directory: No such file or directory";
        QTest::newRow("relative") << "true"
                                  << "/"
                                  << "cannot start true: the program's path is not absolute";
    }
    void failure_namesTheStep() {
        QFETCH(QString, program);
        QFETCH(QString, folder);
        QFETCH(QString, message);
        ProcessSpec spec;
        spec.program = program.toStdString();
        spec.workingDirectory = folder.toStdString();
        const auto child = spawn(spec);
        QVERIFY(!child);
        QCOMPARE(QString::fromStdString(child.error().message), message);
    }
    void badDescriptor_isAnError() {
        ProcessSpec spec = shell("true");
        spec.descriptors = {{3, 9999}};
        QVERIFY(spawn(spec).error().message.find("set up descriptors") != std::string::npos);
        spec.descriptors = {{3, 0}, {3, 1}};
        QCOMPARE(spawn(spec).error().code, ErrorCode::InvalidArgument);
    }

    void output_keepsTheTail() {
        RunOptions options;
        options.maxOutput = 1000;
        const auto result = run(shell("seq 1 100000; echo last"), options);
        QVERIFY(result);
        QCOMPARE(result->output.size(), std::size_t{1000});
        QVERIFY(result->output.ends_with("100000\nlast\n"));
        QVERIFY(result->outputWasCut);
    }
    void timeout_killsTheWholeGroup() {
        QTemporaryDir folder;
        RunOptions options;
        options.timeout = std::chrono::milliseconds(200);
        options.killGrace = std::chrono::milliseconds(200);
        // The shell and its child ignore TERM, and the child holds our pipe.
        const std::string pidFile = folder.filePath("pid").toStdString();
        const auto result =
            run(shell("trap '' TERM; sleep 100 & echo $! >" + pidFile + "; wait; wait; sleep 100"), options);
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::TimedOut);
        pid_t grandchild = 0;
        std::ifstream(pidFile) >> grandchild;
        QVERIFY(grandchild > 0);
        QTRY_VERIFY(::kill(grandchild, 0) != 0 || isZombie(grandchild));
    }
    void endlessOutput_doesNotBlockTheTimeout() {
        RunOptions options;
        options.timeout = std::chrono::milliseconds(200);
        const auto result = run(shell("yes"), options);
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::TimedOut);
    }
    void backgroundChild_doesNotKeepUs() {
        const auto result = run(shell("sleep 100 & echo done"));
        QVERIFY(result);
        QCOMPARE(result->output, std::string("done\n"));
    }
    void cancel_endsTheRun() {
        std::stop_source source;
        RunOptions options;
        options.cancel = source.get_token();
        options.progressDescriptor = 3;
        options.onProgressLine = [&](std::string_view line) {
            if (line == "ready") {
                source.request_stop();
            }
        };
        const auto result = run(shell("echo ready >&3; sleep 100"), options);
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Cancelled);
        QCOMPARE(run(shell("true"), options).error().code, ErrorCode::Cancelled);
    }
    void progress_comesByLines() {
        std::vector<std::string> lines;
        RunOptions options;
        options.progressDescriptor = 3;
        options.onProgressLine = [&](std::string_view line) { lines.emplace_back(line); };
        QVERIFY(run(shell("printf 'one\\ntwo\\n' >&3; printf 'three' >&3; head -c 10000 /dev/zero | tr '\\0' x >&3"),
                    options));
        QCOMPARE(lines.size(), std::size_t{3});
        QCOMPARE(lines[0], std::string("one"));
        QCOMPARE(lines[1], std::string("two"));
        QCOMPARE(lines[2].size(), std::size_t{4096});
    }
    void runChecked_showsTheEscapedTail() {
        const auto result = runChecked(shell("echo ignored; printf 'bad \\033[2Jthing\\nsecond\\n' >&2; exit 3"));
        QVERIFY(!result);
        QCOMPARE(result.error().message, std::string("sh failed (exit status 3): bad \\x1b[2Jthing | second"));
    }
    void manyThreadsMaySpawnAtOnce() {
        std::vector<std::thread> threads;
        std::atomic<int> good = 0;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&, i] {
                for (int n = 0; n < 10; ++n) {
                    const auto result = run(shell("echo " + std::to_string(i)));
                    good += result && result->output == std::to_string(i) + "\n" ? 1 : 0;
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        QCOMPARE(good.load(), 80);
    }

    void hostMemory_readsMeminfo() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("meminfo").toStdString();
        std::ofstream(path) << "MemTotal:       16 kB\nMemFree: 1 kB\nMemAvailable:    8 kB\n";
        const auto amount = ProcHostMemory(path).memory();
        QCOMPARE(amount.total, Bytes{16384});
        QCOMPARE(amount.available, Bytes{8192});
        QCOMPARE(ProcHostMemory("/nonexistent").memory().total, Bytes{0});
        QVERIFY(ProcHostMemory().memory().available > 0);
    }
    void clock_isAfterThisWasWritten() { QVERIFY(SystemClock().now() > 1'700'000'000); }

private:
    static bool isZombie(pid_t pid) {
        std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
        std::string text((std::istreambuf_iterator<char>(file)), {});
        return text.find(") Z") != std::string::npos;
    }
};

QTEST_GUILESS_MAIN(TestProcess)
#include "tst_process.moc"

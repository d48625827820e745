// SPDX-License-Identifier: Apache-2.0
#include "../protocol/session_pair.hpp"
#include "agent/accounts.hpp"
#include "agent/child_process.hpp"
#include "agent/event_loop.hpp"
#include "agent/idleness.hpp"
#include "agent/modules.hpp"
#include "agent/pumps.hpp"
#include "agent/reaper.hpp"
#include "agent/small_file.hpp"
#include "agent/time_zone.hpp"
#include "protocol/time_zone.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::agent;

class TestAgentParts : public QObject {
    Q_OBJECT

private slots:
    void sessionLines_areThoseWithANameAndAValue() {
        QCOMPARE(environmentLines("# DISPLAY=:1\nDISPLAY=:0\n\n=x\nword\nEMPTY=\nA=b=c"),
                 (std::vector<std::string>{"DISPLAY=:0", "EMPTY=", "A=b=c"}));
        QVERIFY(environmentLines("").empty());
    }
    void findsAccounts_data() {
        QTest::addColumn<QByteArray>("name");
        QTest::addColumn<bool>("found");
        QTest::addColumn<int>("uid");
        QTest::addColumn<QByteArray>("home");
        QTest::newRow("root") << QByteArray("root") << true << 0 << QByteArray("/root");
        QTest::newRow("user") << QByteArray("user") << true << 1000 << QByteArray("/home/user");
        QTest::newRow("no home, no shell") << QByteArray("bare") << true << 7 << QByteArray("/");
        QTest::newRow("too few fields") << QByteArray("short") << false << 0 << QByteArray();
        QTest::newRow("uid is no number") << QByteArray("letters") << false << 0 << QByteArray();
        QTest::newRow("uid is negative") << QByteArray("minus") << false << 0 << QByteArray();
        QTest::newRow("uid is too large") << QByteArray("large") << false << 0 << QByteArray();
        QTest::newRow("unknown") << QByteArray("nobody") << false << 0 << QByteArray();
        QTest::newRow("empty name") << QByteArray() << false << 0 << QByteArray();
        QTest::newRow("part of a name") << QByteArray("use") << false << 0 << QByteArray();
    }
    void findsAccounts() {
        QFETCH(QByteArray, name);
        QFETCH(bool, found);
        QFETCH(int, uid);
        QFETCH(QByteArray, home);
        constexpr std::string_view kPasswd = "root:x:0:0:root:/root:/bin/bash\n"
                                             ":x:1:1::/:/bin/sh\n"
                                             "short:x:3:3\n"
                                             "letters:x:abc:3::/:/bin/sh\n"
                                             "minus:x:-1:3::/:/bin/sh\n"
                                             "large:x:4294967296:3::/:/bin/sh\n"
                                             "bare:x:7:7:::\n"
                                             "user:x:1000:1000:Domain user:/home/user:/bin/bash";
        const auto account = findAccount(kPasswd, name.toStdString());
        QCOMPARE(account.has_value(), found);
        if (found) {
            QCOMPARE(int(account->uid), uid);
            QCOMPARE(QByteArray::fromStdString(account->home), home);
        }
    }

    void findsGroups() {
        constexpr std::string_view kGroup = "root:x:0:\nsudo:x:27:other,user\nusers:x:100:userx,use\n"
                                            "bad:x:z:user\nuser:x:1000:user\ndocker:x:99:user";
        const Account user{"user", 1000, 1000, "/home/user", "/bin/bash"};
        QCOMPARE(groupsOf(kGroup, user), (std::vector<gid_t>{1000, 27, 99}));
    }

    void readsModuleLists() {
        const auto entries = parseModuleList("early /lib/a.ko\nlate /lib/b.ko\nnewer /lib/c.ko\nearly \n\nlate /lib/d");
        QCOMPARE(entries.size(), std::size_t{3});
        QVERIFY(entries[0].early && entries[0].path == "/lib/a.ko");
        QVERIFY(!entries[1].early && entries[1].path == "/lib/b.ko");
        QVERIFY(!entries[2].early && entries[2].path == "/lib/d");
    }

    void processorTimes() {
        const auto time = parseProcessorTime("cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3 4\n");
        QVERIFY(time);
        QCOMPARE(time->idle, std::uint64_t{4500});
        QCOMPARE(time->busy, std::uint64_t{171});
        for (const char* broken : {"", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"}) {
            QVERIFY2(!parseProcessorTime(broken), broken);
        }
    }
    void restIsNineTenthsIdle_betweenTwoLooks() {
        using namespace std::chrono_literals;
        Idleness idleness;
        const std::chrono::steady_clock::time_point begin{};
        QVERIFY(!idleness.look({1000, 1000}, begin)); // nothing to compare with
        QVERIFY(!idleness.look({1011, 1089}, begin + 1s));
        QVERIFY(idleness.look({1021, 1179}, begin + 2s));
        QVERIFY(idleness.look({1121, 1179}, begin + 2100ms)); // too soon for another answer
        QVERIFY(!idleness.look({1121, 1179}, begin + 3s));
    }
    void readsOnlySmallRegularFiles() {
        const QTemporaryDir folder;
        const std::string base = folder.path().toStdString();
        std::ofstream(base + "/file") << "12345";
        QCOMPARE(readSmallFile(base + "/file", 5).value_or("?"), std::string("12345"));
        QVERIFY(!readSmallFile(base + "/file", 4));
        QVERIFY(!readSmallFile(base + "/none", 4));
        QVERIFY(!readSmallFile(base, 4096));
        QCOMPARE(::mkfifo((base + "/fifo").c_str(), 0600), 0);
        QVERIFY(!readSmallFile(base + "/fifo", 4096)); // and does not wait for a writer
        QVERIFY(readSmallFile("/proc/meminfo", 64 * 1024));
    }

    void timeZoneNames_data() {
        QTest::addColumn<QByteArray>("name");
        QTest::addColumn<bool>("good");
        for (const char* name : {"UTC", "Europe/Berlin", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "EST5EDT"}) {
            QTest::newRow(name) << QByteArray(name) << true;
        }
        for (const char* name : {"", "/", "/etc/passwd", "..", "../passwd", "Europe/../../passwd", "Europe//Berlin",
                                 "Europe/", "Europe/Berlin\n", ".hidden", "-x", "a b", "a\\b", "\xc3\xa4"}) {
            QTest::addRow("bad: %s", name) << QByteArray(name) << false;
        }
        QTest::newRow("bad: a zero byte") << QByteArray("UTC\0x", 5) << false;
        QTest::newRow("bad: long") << QByteArray(65, 'a') << false;
    }
    void timeZoneNames() {
        QFETCH(QByteArray, name);
        QTEST(protocol::isTimeZoneName(name.toStdString()), "good");
    }
    void installsTimeZones() {
        const QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::filesystem::create_directories(root / "etc");
        std::filesystem::create_directories(root / "usr/share/zoneinfo/Europe");
        std::ofstream(root / "usr/share/zoneinfo/Europe/Berlin") << "TZif2";
        std::ofstream(root / "usr/share/zoneinfo/UTC") << "TZif2";
        std::ofstream(root / "etc/localtime") << "a file in its place";
        const auto zone = [&] { return std::filesystem::read_symlink(root / "etc/localtime").string(); };
        QCOMPARE(installTimeZone(root, "Europe/Berlin"), 0);
        QCOMPARE(zone(), std::string("/usr/share/zoneinfo/Europe/Berlin"));
        QCOMPARE(readSmallFile(root / "etc/timezone", 100), std::optional<std::string>("Europe/Berlin\n"));
        QCOMPARE(installTimeZone(root, "UTC"), 0);
        QCOMPARE(zone(), std::string("/usr/share/zoneinfo/UTC"));
        QCOMPARE(installTimeZone(root, "Mars/Olympus"), ENOENT);
        QCOMPARE(installTimeZone(root, "Europe"), ENOENT); // a folder
        QCOMPARE(installTimeZone(root, "../../../etc/passwd"), EINVAL);
        QCOMPARE(zone(), std::string("/usr/share/zoneinfo/UTC"));
        std::filesystem::remove_all(root / "etc");
        QCOMPARE(installTimeZone(root, "UTC"), ENOENT);
    }
    void mergesTheEnvironment() {
        const Account user{"user", 1000, 1000, "/home/user", "/bin/bash"};
        const auto environment = loginEnvironment(user, {"A=1", "HOME=/x", "A=2", "HOM=3"}, "xterm");
        const auto has = [&](const char* entry) {
            return std::count(environment.begin(), environment.end(), entry) == 1;
        };
        QVERIFY(has("A=2") && has("HOME=/x") && has("HOM=3") && has("TERM=xterm") && has("USER=user"));
        QVERIFY(!has("A=1") && !has("HOME=/home/user"));
    }

    void removedHandlersAreNotCalled() {
        EventLoop loop;
        std::array<int, 2> first{};
        std::array<int, 2> second{};
        QCOMPARE(::pipe(first.data()), 0);
        QCOMPARE(::pipe(second.data()), 0);
        int calls = 0;
        std::array<EventLoop::WatchId, 2> ids{};
        // Both are ready in the same round; whichever comes first removes the other.
        for (const std::size_t i : {0UL, 1UL}) {
            const int fd = i == 0 ? first[0] : second[0];
            ids.at(i) = loop.watch(fd, EPOLLIN, [&](std::uint32_t) {
                ++calls;
                loop.unwatch(ids[0]);
                loop.unwatch(ids[1]);
                loop.after(std::chrono::milliseconds(20), [&] { loop.quit(); });
            });
        }
        QCOMPARE(::write(first[1], "x", 1), ssize_t{1});
        QCOMPARE(::write(second[1], "x", 1), ssize_t{1});
        loop.run();
        QCOMPARE(calls, 1);
        for (const int fd : {first[0], first[1], second[0], second[1]}) {
            ::close(fd);
        }
    }

    void outputIsSentAtOnce_data() {
        QTest::addColumn<int>("blocks");
        QTest::addColumn<bool>("ends");
        for (const int blocks : {1, 7, 8}) {
            QTest::addRow("%d full reads, then silence", blocks) << blocks << false;
            QTest::addRow("%d full reads, then the end", blocks) << blocks << true;
        }
    }
    void outputIsSentAtOnce() {
        QFETCH(int, blocks);
        QFETCH(bool, ends);
        protocol::test::Pair pair(65536);
        pair.connect();
        const auto stream = pair.host.session.open();
        QVERIFY(stream);
        pair.pump();
        std::array<int, 2> ends2{};
        QCOMPARE(::pipe2(ends2.data(), O_NONBLOCK | O_CLOEXEC), 0);
        UniqueFd writer(ends2[1]);
        const std::string text(std::size_t(blocks) * 32 * 1024, 'x');
        QVERIFY(::fcntl(writer.get(), F_SETPIPE_SZ, 512 * 1024) > 0);
        QCOMPARE(::write(writer.get(), text.data(), text.size()), ssize_t(text.size()));

        EventLoop loop;
        bool ended = false;
        OutputPump pump(loop, pair.guest.session, *stream, UniqueFd(ends2[0]), [&] { ended = true; });
        pump.start();
        if (ends) {
            pump.endWhenEmpty(); // the writer stays open
        }
        loop.atEndOfRound([&] {
            pair.pump();
            if (pair.host.events.data[*stream].size() == text.size() && ended == ends) {
                loop.quit();
            }
            return false;
        });
        bool late = false;
        loop.after(std::chrono::seconds(5), [&] {
            late = true;
            loop.quit();
        });
        loop.run();
        QVERIFY(!late);
        QCOMPARE(pair.host.events.data[*stream].size(), text.size());
        QCOMPARE(ended, ends);
    }

    void reapsAllButThoseToKeep() {
        std::vector<pid_t> children;
        for (int i = 0; i < 4; ++i) {
            const pid_t pid = ::fork();
            if (pid == 0) {
                ::_exit(i);
            }
            QVERIFY(pid > 0);
            children.push_back(pid);
            siginfo_t info{};
            QCOMPARE(::waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT), 0);
        }
        // The first is what the kernel names first.
        reapAllBut({children[0], children[2]});
        int status = 0;
        QCOMPARE(::waitpid(children[1], &status, WNOHANG), -1);
        QCOMPARE(::waitpid(children[3], &status, WNOHANG), -1);
        QCOMPARE(::waitpid(children[2], &status, WNOHANG), children[2]);
        QCOMPARE(WEXITSTATUS(status), 2);
        reapAllBut({});
        QCOMPARE(::waitpid(children[0], &status, WNOHANG), -1);
    }

    void timersCanBeCancelled() {
        EventLoop loop;
        bool wrong = false;
        const auto cancelled = loop.after(std::chrono::milliseconds(1), [&] { wrong = true; });
        loop.after(std::chrono::milliseconds(5), [&] { loop.quit(); });
        loop.cancel(cancelled);
        loop.run();
        QVERIFY(!wrong);
    }
};

QTEST_GUILESS_MAIN(TestAgentParts)
#include "tst_agent_parts.moc"

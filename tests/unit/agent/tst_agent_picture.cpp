// SPDX-License-Identifier: Apache-2.0
// What goes on around a picture, with a machine that freezes nothing.
#include "../protocol/session_pair.hpp"
#include "agent/aside.hpp"
#include "agent/hostname.hpp"
#include "agent/picture.hpp"
#include "agent/small_file.hpp"
#include "protocol/hostname.hpp"

#include <QTemporaryDir>
#include <QTest>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::agent;
using namespace std::chrono_literals;

namespace {

class FakeSystem final : public System {
public:
    ~FakeSystem() override {
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    }
    [[nodiscard]] bool canChangeAccount() const override { return false; }
    int setClock(std::int64_t) override { return 0; }
    int setTimeZone(const std::string&) override { return 0; }
    int quiesce() override { return 0; }
    int rejuvenate(const RejuvenateRequest&) override { return 0; }
    int settleDisks(bool standStill) override { return standStill ? freezes : writes; }
    void releaseDisks() override { ++released; }
    int setHostname(const std::string&) override { return 0; }
    void powerOff(std::chrono::milliseconds) override {}

    int freezes = 0;
    int writes = 0;
    int released = 0;
};

/// One whose disks hang until the test says so. The process that hangs has no descriptors of ours, but hears signals.
class HangingSystem final : public System {
public:
    [[nodiscard]] bool canChangeAccount() const override { return false; }
    int setClock(std::int64_t) override { return 0; }
    int setTimeZone(const std::string&) override { return 0; }
    int quiesce() override { return 0; }
    int rejuvenate(const RejuvenateRequest&) override { return 0; }
    int settleDisks(bool) override {
        std::signal(SIGUSR1, [](int) {
            const int done = 0; // what a process that came to its end would have said
            static_cast<void>(!::write(STDERR_FILENO + 1, &done, sizeof done));
            ::_exit(0);
        });
        for (;;) {
            ::pause();
        }
    }
    void releaseDisks() override {
        if (::getpid() == m_owner) {
            ++released;
        } else {
            std::ofstream(asidePath()) << "x";
        }
    }
    int setHostname(const std::string&) override { return 0; }
    void powerOff(std::chrono::milliseconds) override {}

    [[nodiscard]] bool wasReleasedAside() const { return std::filesystem::exists(asidePath()); }
    int released = 0;

private:
    [[nodiscard]] std::string asidePath() const { return m_folder.filePath("released").toStdString(); }
    QTemporaryDir m_folder;
    pid_t m_owner = ::getpid();
};

/// The child that this process has; -1: none that lives.
pid_t onlyChild() {
    std::ifstream children("/proc/thread-self/children");
    for (pid_t pid = 0; children >> pid;) {
        std::string line;
        std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), line);
        if (line.find(") Z") == std::string::npos) {
            return pid;
        }
    }
    return -1;
}

/// The process waits for its signal.
bool isWaiting(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string each; std::getline(status, each);) {
        if (each.starts_with("SigCgt:")) {
            const auto caught = std::stoull(each.substr(7), nullptr, 16);
            return (caught & (1ULL << (SIGUSR1 - 1))) != 0;
        }
    }
    return false;
}

constexpr auto kLong = 60s;

struct Rig {
    explicit Rig(System& system, const Picture::Limits& limits = {kLong, kLong, kLong, kLong})
        : picture(loop, system, limits) {}
    /// Runs the loop until `done`; false: not within ten seconds.
    bool until(const std::function<bool()>& done) {
        bool late = false;
        const auto timer = loop.after(10s, [&] {
            late = true;
            loop.quit();
        });
        EventLoop::TimerId look = 0;
        std::function<void()> again = [&] {
            if (done()) {
                loop.quit();
            } else {
                look = loop.after(1ms, again);
            }
        };
        again();
        if (!done()) {
            loop.run();
        }
        loop.cancel(look);
        loop.cancel(timer);
        return !late;
    }
    std::optional<int> begin(bool ofMemory) {
        start(ofMemory);
        return until([this] { return answer.has_value(); }) ? answer : std::nullopt;
    }
    void start(bool ofMemory) {
        answer.reset();
        picture.begin(session(), ofMemory, [this](int why) {
            ++answers;
            answer = why;
        });
    }
    protocol::Session& session() { return ends.guest.session; }
    protocol::Session& another() { return ends.host.session; }

    protocol::test::Pair ends;
    EventLoop loop;
    Picture picture;
    std::optional<int> answer;
    int answers = 0;
};

} // namespace

class TestAgentPicture : public QObject {
    Q_OBJECT

private slots:
    void cleanup() {
        // Each test's own process is the only one for it.
        for (pid_t pid = onlyChild(); pid > 0; pid = onlyChild()) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }

    void begins_data() {
        QTest::addColumn<bool>("ofMemory");
        QTest::addColumn<int>("outcome");
        for (const int outcome : {0, EIO, EBUSY}) {
            QTest::addRow("of the disks: %d", outcome) << false << outcome;
            QTest::addRow("of the memory, too: %d", outcome) << true << outcome;
        }
    }
    void begins() {
        QFETCH(bool, ofMemory);
        QFETCH(int, outcome);
        FakeSystem system;
        (ofMemory ? system.writes : system.freezes) = outcome;
        Rig rig(system);
        QVERIFY(rig.picture.mayWrite());
        QCOMPARE(rig.begin(ofMemory), std::optional(outcome));
        QCOMPARE(rig.answers, 1);
        // Only file systems that stand still forbid it, and only they are let go.
        const bool isFrozen = !ofMemory && outcome == 0;
        QCOMPARE(rig.picture.mayWrite(), !isFrozen);
        rig.picture.end();
        QCOMPARE(system.released, isFrozen ? 1 : 0);
        QVERIFY(rig.picture.mayWrite());
        rig.picture.end();
        QCOMPARE(system.released, isFrozen ? 1 : 0);
        QCOMPARE(rig.answers, 1);
    }

    void onlyThePicturedSession_wasAnothers_data() {
        QTest::addColumn<QString>("what");
        QTest::addColumn<bool>("wasAnothers");
        QTest::newRow("pictured") << "memory" << true;
        QTest::newRow("pictured, another session ends first") << "memory other" << true;
        QTest::newRow("frozen") << "disks" << false;
        QTest::newRow("never") << "" << false;
        QTest::newRow("ended before") << "memory end" << false;
        QTest::newRow("failed") << "fails" << false;
        QTest::newRow("begun again without the memory") << "memory disks" << false;
        QTest::newRow("begun again with it") << "disks memory" << true;
    }
    void onlyThePicturedSession_wasAnothers() {
        QFETCH(QString, what);
        FakeSystem system;
        Rig rig(system);
        for (const QString& step : what.split(' ', Qt::SkipEmptyParts)) {
            if (step == "memory" || step == "disks") {
                QCOMPARE(rig.begin(step == "memory"), std::optional(0));
            } else if (step == "end") {
                rig.picture.end();
            } else if (step == "other") {
                QVERIFY(!rig.picture.endsWith(rig.another()));
            } else {
                system.writes = EIO;
                QCOMPARE(rig.begin(true), std::optional(EIO));
            }
        }
        QTEST(rig.picture.endsWith(rig.session()), "wasAnothers");
        QVERIFY(!rig.picture.endsWith(rig.session())); // once
    }

    void frozen_goesOnByItself() {
        FakeSystem system;
        Rig rig(system, {kLong, kLong, 1500ms, kLong});
        QCOMPARE(rig.begin(false), std::optional(0));
        QCOMPARE(system.released, 0);
        QVERIFY(rig.until([&] { return system.released == 1; }));
        QVERIFY(rig.picture.mayWrite());
        rig.picture.end();
        QCOMPARE(system.released, 1);
    }
    void frozen_outlivesItsSession_butNotItsTime() {
        FakeSystem system;
        Rig rig(system, {kLong, kLong, 1500ms, kLong});
        QCOMPARE(rig.begin(false), std::optional(0));
        QVERIFY(!rig.picture.endsWith(rig.session()));
        QVERIFY(!rig.picture.mayWrite());
        QVERIFY(rig.until([&] { return system.released == 1; }));
    }
    void frozen_canBeEndedByALaterSession() {
        FakeSystem system;
        Rig rig(system);
        QCOMPARE(rig.begin(false), std::optional(0));
        QVERIFY(!rig.picture.endsWith(rig.session()));
        rig.picture.end();
        QCOMPARE(system.released, 1);
    }
    void frozen_goesOnWithTheEndOfAll() {
        FakeSystem system;
        {
            Rig rig(system);
            QCOMPARE(rig.begin(false), std::optional(0));
        }
        QCOMPARE(system.released, 1);
    }
    void pictured_isForAWhile() {
        FakeSystem system;
        Rig rig(system, {kLong, kLong, kLong, 30ms});
        QCOMPARE(rig.begin(true), std::optional(0));
        bool isLate = false;
        rig.loop.after(100ms, [&] { isLate = true; });
        QVERIFY(rig.until([&] { return isLate; }));
        QVERIFY(!rig.picture.endsWith(rig.session()));
        QCOMPARE(system.released, 0);
    }

    void hangingDisks_data() {
        QTest::addColumn<bool>("ofMemory");
        QTest::addColumn<int>("answer");
        // What is not written is in the memory.
        QTest::newRow("of the memory, too") << true << 0;
        QTest::newRow("of the disks") << false << ETIMEDOUT;
    }
    void hangingDisks() {
        QFETCH(bool, ofMemory);
        QFETCH(int, answer);
        HangingSystem system;
        Rig rig(system, {20ms, 20ms, kLong, kLong});
        rig.start(ofMemory);
        const pid_t pid = onlyChild();
        QVERIFY(pid > 0);
        QVERIFY(rig.until([&] { return rig.answer.has_value(); }));
        QCOMPARE(rig.answer, std::optional(answer));
        QCOMPARE(rig.picture.mayWrite(), ofMemory); // they may come to a stand any moment
        // One at a time.
        rig.start(false);
        QCOMPARE(rig.answer, std::optional(EBUSY));
        QCOMPARE(rig.picture.endsWith(rig.session()), ofMemory);
        // What stands still by now goes on at once.
        QVERIFY(ofMemory || rig.until([&] { return system.wasReleasedAside(); }));
        QVERIFY(rig.until([&] { return isWaiting(pid); }));
        ::kill(pid, SIGUSR1);
        if (!ofMemory) {
            // They stand still at last, but nobody wants it any more.
            QVERIFY(rig.until([&] { return system.released == 1; }));
        }
        ::waitpid(pid, nullptr, 0);
        QVERIFY(rig.until([&] { return rig.picture.mayWrite(); }));
        QCOMPARE(system.released, ofMemory ? 0 : 1);
        QCOMPARE(system.wasReleasedAside(), !ofMemory);
    }
    void endedOrLostWhileItBegins_data() {
        QTest::addColumn<QString>("how");
        QTest::addColumn<int>("answers");
        QTest::newRow("ended") << "end" << 1;
        QTest::newRow("the session is over") << "session" << 0;
        QTest::newRow("only its control stream is over") << "stream" << 0;
    }
    void endedOrLostWhileItBegins() {
        QFETCH(QString, how);
        QFETCH(int, answers);
        HangingSystem system;
        Rig rig(system);
        rig.start(false);
        const pid_t pid = onlyChild();
        if (how == "end") {
            rig.picture.end();
            QCOMPARE(rig.answer, std::optional(ECANCELED));
        } else if (how == "session") {
            QVERIFY(!rig.picture.endsWith(rig.session()));
        } else {
            rig.picture.forgetAnswer(rig.session());
        }
        QVERIFY(rig.until([&] { return isWaiting(pid); }));
        QVERIFY(!rig.picture.mayWrite());
        QVERIFY(how == "stream" || rig.until([&] { return system.wasReleasedAside(); }));
        ::kill(pid, SIGUSR1);
        ::waitpid(pid, nullptr, 0);
        if (how == "stream") {
            bool isLate = false;
            rig.loop.after(100ms, [&] { isLate = true; });
            QVERIFY(rig.until([&] { return isLate; }));
            rig.picture.end(); // the session goes on, and so does the picture
        }
        QVERIFY(rig.until([&] { return system.released == 1; }));
        QCOMPARE(rig.answers, answers);
        QVERIFY(rig.picture.mayWrite());
    }
    void killedHelper_isAnError() {
        HangingSystem system;
        Rig rig(system);
        rig.start(false);
        const pid_t pid = onlyChild();
        QVERIFY(pid > 0);
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
        QVERIFY(rig.until([&] { return rig.answer.has_value(); }));
        QCOMPARE(rig.answer, std::optional(EIO));
        QVERIFY(rig.until([&] { return system.wasReleasedAside(); })); // it may have come halfway
    }

    void hostnames_data() {
        QTest::addColumn<QByteArray>("name");
        QTest::addColumn<bool>("good");
        for (const char* name : {"a", "work", "Work-2", "0", "3com", "xn--bcher-kva"}) {
            QTest::newRow(name) << QByteArray(name) << true;
        }
        QTest::newRow("longest") << QByteArray(63, 'a') << true;
        QTest::newRow("too long") << QByteArray(64, 'a') << false;
        for (const char* name :
             {"", "-", "-a", "a-", "a.b", ".", "a b", "a_b", "a/b", "a\n", "\na", "a\tb", "ä", "a#"}) {
            QTest::addRow("bad: %s", name) << QByteArray(name) << false;
        }
        QTest::newRow("bad: a zero byte") << QByteArray("a\0b", 3) << false;
    }
    void hostnames() {
        QFETCH(QByteArray, name);
        QFETCH(bool, good);
        QCOMPARE(protocol::isHostname(name.toStdString()), good);
        const QTemporaryDir folder;
        QCOMPARE(installHostname(folder.path().toStdString(), name.toStdString()), good ? 0 : EINVAL);
    }
    void hosts_data() {
        QTest::addColumn<QByteArray>("before");
        QTest::addColumn<QByteArray>("after");
        QTest::newRow("as the templates have it")
            << QByteArray("127.0.0.1\tlocalhost\n127.0.1.1\tdomain\n::1\tlocalhost\n")
            << QByteArray("127.0.0.1\tlocalhost\n127.0.1.1\twork\n::1\tlocalhost\n");
        QTest::newRow("several names, several lines") << QByteArray("127.0.1.1 a b c\n10.0.0.1 x\n\t127.0.1.1 d\n")
                                                      << QByteArray("127.0.1.1\twork\n10.0.0.1 x\n");
        QTest::newRow("none") << QByteArray("# mine\n127.0.1.10 x\n")
                              << QByteArray("# mine\n127.0.1.10 x\n127.0.1.1\twork\n");
        QTest::newRow("no end of line") << QByteArray("::1 localhost")
                                        << QByteArray("::1 localhost\n127.0.1.1\twork\n");
        QTest::newRow("empty") << QByteArray() << QByteArray("127.0.1.1\twork\n");
    }
    void hosts() {
        QFETCH(QByteArray, before);
        QTEST(QByteArray::fromStdString(hostsWithName(before.toStdString(), "work")), "after");
    }
    void installsHostnames() {
        const QTemporaryDir folder;
        const std::filesystem::path root = folder.path().toStdString();
        std::filesystem::create_directories(root / "etc");
        const auto textOf = [&](const char* name) { return readSmallFile(root / "etc" / name, 1000).value_or("none"); };
        // Files that are not there are not made.
        QCOMPARE(installHostname(root, "work"), 0);
        QVERIFY(std::filesystem::is_empty(root / "etc"));
        std::ofstream(root / "etc/hostname") << "domain\n";
        std::ofstream(root / "etc/hosts") << "127.0.1.1 domain\n";
        QCOMPARE(installHostname(root, "work"), 0);
        QCOMPARE(textOf("hostname"), std::string("work\n"));
        QCOMPARE(textOf("hosts"), std::string("127.0.1.1\twork\n"));
        // What is right is left alone.
        const auto written = std::filesystem::last_write_time(root / "etc/hosts");
        QCOMPARE(installHostname(root, "work"), 0);
        QVERIFY(std::filesystem::last_write_time(root / "etc/hosts") == written);
        // A link is followed by nobody.
        std::filesystem::remove(root / "etc/hostname");
        std::ofstream(root / "target") << "mine";
        std::filesystem::create_symlink(root / "target", root / "etc/hostname");
        QCOMPARE(installHostname(root, "other"), 0);
        QCOMPARE(readSmallFile(root / "target", 100).value_or("none"), std::string("mine"));
        QCOMPARE(textOf("hostname"), std::string("other\n"));
    }
};

QTEST_GUILESS_MAIN(TestAgentPicture)
#include "tst_agent_picture.moc"

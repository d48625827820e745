// SPDX-License-Identifier: Apache-2.0
// Pictures of a running machine, with the real agent as an ordinary process: what its programs see of them in the
// machine that runs on (nothing), and in one that was begun from the picture: that its host is another one, in the
// middle of whatever the old one was about. Here the machine is the same, and only the host's end changes.
#include "host_client.hpp"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using agent::ExecRequest;
using agent::Reply;
using agent::Request;
using tests::HostClient;

namespace {

/// How the host's end changes.
enum class Change {
    Line,          ///< virtio-serial: the same line, cut off between frames
    LineInHeader,  ///< cut off within the header of a frame, both ways
    LineInPayload, ///< within what a frame carries
    Lost,          ///< vsock: the connection ends, and then comes another
    TakenOver,     ///< vsock: another comes, and then the old one ends
};

bool isLine(Change change) {
    return change != Change::Lost && change != Change::TakenOver;
}

class Guest {
public:
    explicit Guest(Change change)
        : m_change(change) {
        tests::fillRandom(m_token);
        std::ofstream(path("token"), std::ios::binary)
            .write(reinterpret_cast<const char*>(m_token.data()), std::streamsize(m_token.size()));
        std::array<int, 2> ends{-1, -1};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            qFatal("no socketpair");
        }
        UniqueFd ours(ends[0]);
        const UniqueFd its(ends[1]);
        m_pid = ::fork();
        if (m_pid == 0) {
            if (isLine(change)) {
                const std::string number = std::to_string(::dup(its.get())); // without close-on-exec
                ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--connect-fd", number.c_str(), "--token-file",
                        path("token").c_str(), nullptr);
            } else {
                ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--listen-unix", path("agent.sock").c_str(), "--token-file",
                        path("token").c_str(), nullptr);
            }
            ::_exit(99);
        }
        m_host = std::make_unique<HostClient>(isLine(change) ? std::move(ours) : connect(), m_token);
    }
    ~Guest() {
        m_host.reset();
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
    HostClient& host() { return *m_host; }
    bool begin() { return m_host->begin() && m_host->hello().has_value(); }

    /// The host of another machine, which has this one's memory, begins. Its predecessor was about to send to `stream`.
    bool beginAnew(protocol::StreamId stream = 1) {
        if (!isLine(m_change)) {
            auto next = m_change == Change::TakenOver ? std::make_unique<HostClient>(connect(), m_token) : nullptr;
            if (next && !(next->begin() && next->hello())) {
                return false;
            }
            m_host = std::move(next);
            if (m_host) {
                return true;
            }
            m_host = std::make_unique<HostClient>(connect(), m_token);
            return begin();
        }
        const int fd = m_host->fd();
        if (m_change != Change::Line) {
            // To it: the begin of a frame of 1000 bytes. From it: what the predecessor has taken ends in one, too.
            std::string cut("\0\0\0\0\0\0\0\0\0\0\x03\xe8payload", 19);
            cut[7] = static_cast<char>(stream);
            cut.resize(m_change == Change::LineInHeader ? 5 : cut.size());
            if (::send(fd, cut.data(), cut.size(), MSG_NOSIGNAL) != ssize_t(cut.size())) {
                return false;
            }
            std::array<char, 4099> taken{};
            const std::size_t count = m_change == Change::LineInHeader ? 7 : taken.size();
            static_cast<void>(!::recv(fd, taken.data(), count, MSG_DONTWAIT));
        }
        return begin();
    }
    /// The answer's errno; -1: none came.
    int freeze(bool ofMemory) {
        Request request;
        request.set_id(71);
        request.mutable_freeze()->set_of_memory(ofMemory);
        return ask(request);
    }
    int thaw(std::int64_t realtimeNs = 1'700'000'000'000'000'000) {
        Request request;
        request.set_id(72);
        request.mutable_thaw()->set_realtime_ns(realtimeNs);
        return ask(request);
    }
    int ask(const Request& request) {
        const auto reply = m_host->ask(request);
        if (!reply || reply->id() != request.id() || reply->has_done() != (reply->error_number() == 0)) {
            return -1;
        }
        return reply->error_number();
    }
    /// Starts a script that says its process first of all, but not before it is ready for signals: dash forgets those
    /// that come while it starts a command.
    pid_t start(const std::string& script, bool terminal = false) {
        ExecRequest request;
        for (const std::string& word : {std::string("sh"), std::string("-c"), script}) {
            request.add_argv(word);
        }
        request.set_terminal(terminal);
        m_program = m_host->start(request);
        auto& out = m_host->stream(m_program.stdio);
        const bool hasLine = m_host->waitUntil([&] { return out.received.find('\n') != std::string::npos; });
        return hasLine ? std::stoi(out.received) : -1;
    }
    [[nodiscard]] const HostClient::Program& program() const { return m_program; }
    [[nodiscard]] std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }
    [[nodiscard]] bool has(const char* name) const { return std::filesystem::exists(path(name)); }
    void make(const char* name) const { std::ofstream(path(name)) << "x"; }
    [[nodiscard]] pid_t pid() const { return m_pid; }

private:
    UniqueFd connect() {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string socket = path("agent.sock");
        std::copy(socket.begin(), socket.end(), address.sun_path);
        QElapsedTimer timer;
        timer.start();
        for (;;) {
            UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ||
                timer.elapsed() > 10'000) {
                return fd;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(2)); // lint-allow(sleep): as the daemon pauses
        }
    }

    Change m_change;
    QTemporaryDir m_folder;
    protocol::Token m_token{};
    pid_t m_pid = -1;
    std::unique_ptr<HostClient> m_host;
    HostClient::Program m_program;
};

bool exists(pid_t pid) {
    return std::filesystem::exists("/proc/" + std::to_string(pid));
}

/// Bytes that a process has written.
long long writtenBy(pid_t pid) {
    std::ifstream io("/proc/" + std::to_string(pid) + "/io");
    for (std::string name; io >> name;) {
        long long value = 0;
        io >> value;
        if (name == "wchar:") {
            return value;
        }
    }
    return -1;
}

void addChanges(const std::function<void(const char*, Change)>& add) {
    add("line", Change::Line);
    add("line, in a header", Change::LineInHeader);
    add("line, in a payload", Change::LineInPayload);
    add("lost connection", Change::Lost);
    add("taken over connection", Change::TakenOver);
}

} // namespace

Q_DECLARE_METATYPE(Change)

class TestAgentSnapshot : public QObject {
    Q_OBJECT

private slots:
    void named() {
        Guest guest(Change::Line);
        QVERIFY(guest.host().begin());
        const auto hello = guest.host().hello();
        QVERIFY(hello);
        QVERIFY(std::count(hello->features().begin(), hello->features().end(), protocol::kFeatureSnapshot) == 1);
    }

    void source_noticesNothing_data() {
        QTest::addColumn<bool>("ofMemory");
        QTest::addColumn<bool>("terminal");
        QTest::newRow("memory, pipes") << true << false;
        QTest::newRow("memory, terminal") << true << true;
        QTest::newRow("disks, pipes") << false << false;
        QTest::newRow("disks, terminal") << false << true;
    }
    void source_noticesNothing() {
        QFETCH(bool, ofMemory);
        QFETCH(bool, terminal);
        Guest guest(Change::Line);
        QVERIFY(guest.begin());
        const pid_t pid = guest.start(
            "trap 'echo hup > " + guest.path("hup") + "' HUP; echo $$; while read x; do echo =$x=; done", terminal);
        QVERIFY(pid > 0);
        auto& out = guest.host().stream(guest.program().stdio);
        const auto answers = [&](const std::string& word) {
            guest.host().send(guest.program().stdio, word + "\n");
            return guest.host().waitUntil([&] { return out.received.find("=" + word + "=") != std::string::npos; });
        };
        for (const char* const round : {"1", "2"}) { // again and again
            QVERIFY(answers(std::string("before") + round));
            QCOMPARE(guest.freeze(ofMemory), 0);
            QVERIFY(answers(std::string("meanwhile") + round));
            // The emulator stands.
            ::kill(guest.pid(), SIGSTOP);
            guest.host().send(guest.program().stdio, "in the pause\n");
            ::kill(guest.pid(), SIGCONT);
            QCOMPARE(guest.thaw(), 0);
            QVERIFY(answers(std::string("after") + round));
        }
        QVERIFY(out.received.find("=in the pause=") != std::string::npos);
        // And the session's end means again what it always did.
        QVERIFY(guest.beginAnew());
        QTRY_VERIFY(guest.has("hup"));
    }

    void programs_liveOnInAnotherMachine_data() {
        QTest::addColumn<Change>("change");
        QTest::addColumn<bool>("terminal");
        QTest::addColumn<bool>("isBlocked");
        addChanges([](const char* name, Change change) {
            QTest::addRow("%s, pipes", name) << change << false << false;
            QTest::addRow("%s, terminal", name) << change << true << false;
            QTest::addRow("%s, pipes that wait for their reader", name) << change << false << true;
            QTest::addRow("%s, terminal that waits for its reader", name) << change << true << true;
        });
    }
    void programs_liveOnInAnotherMachine() {
        QFETCH(Change, change);
        QFETCH(bool, terminal);
        QFETCH(bool, isBlocked);
        Guest guest(change);
        QVERIFY(guest.begin());
        const std::string much = "head -c 2000000 /dev/zero | tr '\\0' x";
        const pid_t pid =
            guest.start("trap 'echo hup > " + guest.path("hup") + "' HUP; trap 'echo pipe > " + guest.path("pipe") +
                            "' PIPE; echo $$; " + (isBlocked ? much + "; " : "") + "while [ ! -e " + guest.path("go") +
                            " ]; do sleep 0.02; done; " + much + "; " + much + " >&2; echo done > " +
                            guest.path("written") + "; read x; echo $? > " + guest.path("read"),
                        terminal);
        QVERIFY(pid > 0);
        auto& out = guest.host().stream(guest.program().stdio);
        if (isBlocked) {
            out.consume = false;
            QVERIFY(guest.host().waitUntil([&] { return out.total >= protocol::kInitialWindow; }));
        }
        QCOMPARE(guest.freeze(true), 0);
        QVERIFY(guest.beginAnew(guest.program().stdio));
        guest.make("go");
        // Nobody reads it, and yet it is not held up, nor is it told that nobody does.
        QTRY_VERIFY_WITH_TIMEOUT(guest.has("written"), 20'000);
        QVERIFY(!guest.has("hup"));
        QVERIFY(!guest.has("pipe"));
        // The new session knows nothing of it, and works.
        const auto ended = guest.host().run([] {
            ExecRequest request;
            request.add_argv("echo");
            request.add_argv("fresh");
            return request;
        }());
        QVERIFY(ended);
        QCOMPARE(ended->output, std::string("fresh\n"));
        // Its standard input is open, and says nothing.
        QVERIFY(exists(pid));
        QVERIFY(!guest.has("read"));
        // That it was another machine is forgotten: what runs by now is hung up with its session, and no other.
        const pid_t fresh =
            guest.start("trap 'echo hup > " + guest.path("fresh") + "; exit' HUP; sleep 1000 & echo $$; wait");
        QVERIFY(guest.beginAnew());
        QTRY_VERIFY(guest.has("fresh"));
        QTRY_VERIFY(!exists(fresh));
        QVERIFY(exists(pid));
        QVERIFY(!guest.has("hup"));
        // It is reaped when it ends.
        ::kill(pid, SIGKILL);
        QTRY_VERIFY(!exists(pid));
        QVERIFY(!guest.has("read"));
    }

    void detachedProgram_endsByItself_data() {
        QTest::addColumn<Change>("change");
        QTest::addColumn<bool>("terminal");
        QTest::addColumn<bool>("leavesOne");
        addChanges([](const char* name, Change change) {
            QTest::addRow("%s, pipes", name) << change << false << false;
            QTest::addRow("%s, terminal", name) << change << true << false;
            QTest::addRow("%s, another has its outputs", name) << change << false << true;
        });
    }
    void detachedProgram_endsByItself() {
        QFETCH(Change, change);
        QFETCH(bool, terminal);
        QFETCH(bool, leavesOne);
        Guest guest(change);
        QVERIFY(guest.begin());
        const pid_t pid =
            guest.start((leavesOne ? "(while [ ! -e " + guest.path("stop") +
                                         " ]; do sleep 0.02; done; echo late; echo $? > " + guest.path("late") + ") & "
                                   : std::string()) +
                            "echo $$; cat > " + guest.path("input") + " & while [ ! -e " + guest.path("go") +
                            " ]; do sleep 0.02; done; exit 5",
                        terminal);
        QVERIFY(pid > 0);
        QCOMPARE(guest.freeze(true), 0);
        QVERIFY(guest.beginAnew());
        guest.make("go");
        QTRY_VERIFY(!exists(pid)); // no zombie either
        if (leavesOne) {
            // Its child writes on.
            guest.make("stop");
            QTRY_VERIFY(guest.has("late"));
            QTRY_COMPARE(QString::fromStdString([&] {
                             std::string text;
                             std::getline(std::ifstream(guest.path("late")), text);
                             return text;
                         }()),
                         QString("0"));
        }
        QVERIFY(guest.freeze(false) == 0 && guest.thaw() == 0);
    }

    void flood_doesNotKeepTheNewHostOut_data() {
        QTest::addColumn<Change>("change");
        addChanges([](const char* name, Change change) { QTest::newRow(name) << change; });
    }
    void flood_doesNotKeepTheNewHostOut() {
        QFETCH(Change, change);
        Guest guest(change);
        QVERIFY(guest.begin());
        std::vector<pid_t> writers;
        for (int i = 0; i < 6; ++i) {
            writers.push_back(guest.start("echo $$; exec yes abcdefghijklmnopqrstuvwxyz"));
            QVERIFY(writers.back() > 0);
            guest.host().stream(guest.program().stdio).keep = false;
        }
        QCOMPARE(guest.freeze(true), 0);
        // The old host is gone: nobody reads, and the agent has more to send than the line takes.
        int waiting = 0;
        QTRY_VERIFY(::ioctl(guest.host().fd(), FIONREAD, &waiting) == 0 && waiting > 100'000);
        QVERIFY(guest.beginAnew(guest.program().stdio)); // it has a limit of its own
        QCOMPARE(guest.freeze(true), 0);
        QCOMPARE(guest.thaw(), 0);
        for (const pid_t pid : writers) {
            const auto before = writtenBy(pid);
            QTRY_VERIFY2(writtenBy(pid) > before + 1'000'000, "it waits for a reader");
        }
        for (const pid_t pid : writers) {
            ::kill(pid, SIGKILL);
            QTRY_VERIFY(!exists(pid));
        }
    }

    void notPictured_isHungUp_data() {
        QTest::addColumn<Change>("change");
        QTest::addColumn<QString>("what");
        addChanges([](const char* name, Change change) {
            QTest::addRow("%s, never", name) << change << "";
            QTest::addRow("%s, thawed", name) << change << "memory thaw";
            QTest::addRow("%s, only its disks", name) << change << "disks";
            QTest::addRow("%s, the disks after the memory", name) << change << "memory disks";
        });
    }
    void notPictured_isHungUp() {
        QFETCH(Change, change);
        QFETCH(QString, what);
        Guest guest(change);
        QVERIFY(guest.begin());
        const pid_t pid =
            guest.start("trap 'echo hup > " + guest.path("hup") + "; exit' HUP; sleep 1000 & echo $$; wait");
        QVERIFY(pid > 0);
        for (const QString& step : what.split(' ', Qt::SkipEmptyParts)) {
            QCOMPARE(step == "thaw" ? guest.thaw() : guest.freeze(step == "memory"), 0);
        }
        QVERIFY(guest.beginAnew());
        QTRY_VERIFY(guest.has("hup"));
        QTRY_VERIFY(!exists(pid));
    }

    void strangers_doNotEndIt() {
        // A connection that has proved nothing comes and goes while the machine is pictured.
        Guest guest(Change::Lost);
        QVERIFY(guest.begin());
        const pid_t pid =
            guest.start("trap 'echo hup > " + guest.path("hup") + "' HUP; echo $$; while :; do sleep 0.05; done");
        QCOMPARE(guest.freeze(true), 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string socket = guest.path("agent.sock");
        std::copy(socket.begin(), socket.end(), address.sun_path);
        {
            const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            QCOMPARE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
            const std::string text(100, 'x');
            QCOMPARE(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
            char byte = 0;
            QVERIFY(::recv(fd.get(), &byte, 1, 0) <= 0); // thrown out
        }
        QVERIFY(guest.beginAnew());
        QVERIFY(exists(pid));
        QVERIFY(!guest.has("hup"));
        ::kill(pid, SIGKILL);
    }

    void hostileValues_data() {
        QTest::addColumn<QByteArray>("request");
        QTest::addColumn<int>("outcome");
        const auto row = [](const char* name, int outcome, const std::function<void(Request&)>& fill) {
            Request request;
            request.set_id(9);
            fill(request);
            QTest::newRow(name) << QByteArray::fromStdString(request.SerializeAsString()) << outcome;
        };
        row("thaw, nothing frozen", 0, [](Request& r) { r.mutable_thaw()->set_realtime_ns(1); });
        row("thaw, a time before all times", EINVAL, [](Request& r) { r.mutable_thaw()->set_realtime_ns(-1); });
        row("thaw, the last of all times", 0, [](Request& r) { r.mutable_thaw()->set_realtime_ns(INT64_MAX); });
        row("name", EPERM, [](Request& r) { r.mutable_set_hostname()->set_name("work"); }); // of a process only
        const auto name = [&](const char* title, const std::string& text) {
            row(title, EINVAL, [&](Request& r) { r.mutable_set_hostname()->set_name(text); });
        };
        name("name, empty", "");
        name("name, too long", std::string(64, 'a'));
        name("name, very long", std::string(60'000, 'a'));
        name("name, with a line", "a\n127.0.0.1 deb.example");
        name("name, with a dot", "a.example");
        name("name, with a zero byte", std::string("a\0b", 3));
        name("name, of a path", "../etc/passwd");
    }
    void hostileValues() {
        QFETCH(QByteArray, request);
        QFETCH(int, outcome);
        Guest guest(Change::Line);
        QVERIFY(guest.begin());
        Request parsed;
        QVERIFY(parsed.ParseFromString(request.toStdString()));
        QCOMPARE(guest.ask(parsed), outcome);
    }

    void whileFrozen_nothingIsWritten() {
        Guest guest(Change::Line);
        QVERIFY(guest.begin());
        QCOMPARE(guest.freeze(false), 0);
        Request request;
        request.set_id(5);
        request.mutable_set_hostname()->set_name("work");
        QCOMPARE(guest.ask(request), EAGAIN);
        request.mutable_rejuvenate()->set_entropy(std::string(64, 'e'));
        QCOMPARE(guest.ask(request), EAGAIN);
        request.mutable_quiesce();
        QCOMPARE(guest.ask(request), EAGAIN);
        request.mutable_ping();
        QCOMPARE(guest.ask(request), 0);
        QCOMPARE(guest.thaw(-1), EINVAL); // and yet
        request.mutable_set_hostname()->set_name("work");
        QCOMPARE(guest.ask(request), EPERM);
        // A machine that is to end does not stand in its own way.
        QCOMPARE(guest.freeze(false), 0);
        request.mutable_shutdown()->set_grace_ms(10);
        QCOMPARE(guest.ask(request), 0);
        QVERIFY(!guest.host().waitUntil([] { return false; }, 10'000));
        QVERIFY(guest.host().transportEnded());
    }
};

QTEST_GUILESS_MAIN(TestAgentSnapshot)
#include "tst_agent_snapshot.moc"

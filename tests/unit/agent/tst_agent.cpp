// SPDX-License-Identifier: Apache-2.0
// Runs the real agent as an ordinary process over a socketpair and talks to it as the host does.
#include "channel/validator.hpp"
#include "host_client.hpp"

#include <QCryptographicHash>
#include <QTest>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using agent::ExecEvent;
using agent::ExecFailed;
using agent::ExecRequest;
using agent::Request;
using tests::HostClient;

namespace {

/// The agent's process and the host's end of its channel.
class RunningAgent {
public:
    explicit RunningAgent(const std::string& tokenFile, const protocol::Token& token) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            qFatal("no socketpair");
        }
        m_pid = ::fork();
        if (m_pid == 0) {
            const int fd = ::dup(ends[1]); // without close-on-exec
            const std::string number = std::to_string(fd);
            ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--connect-fd", number.c_str(), "--token-file", tokenFile.c_str(),
                    nullptr);
            ::_exit(99);
        }
        ::close(ends[1]);
        m_host = std::make_unique<HostClient>(UniqueFd(ends[0]), token);
    }
    ~RunningAgent() {
        m_host.reset();
        if (m_pid > 0) {
            ::kill(m_pid, SIGKILL);
            ::waitpid(m_pid, nullptr, 0);
        }
    }
    HostClient& host() { return *m_host; }
    [[nodiscard]] pid_t pid() const { return m_pid; }
    /// The exit status after the host has closed its end.
    int closeAndWait() {
        m_host.reset();
        int status = 0;
        ::waitpid(std::exchange(m_pid, -1), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    [[nodiscard]] long residentKiB() const {
        std::ifstream status("/proc/" + std::to_string(m_pid) + "/status");
        for (std::string line; std::getline(status, line);) {
            if (line.starts_with("VmRSS:")) {
                return std::stol(line.substr(6));
            }
        }
        return -1;
    }

private:
    pid_t m_pid = -1;
    std::unique_ptr<HostClient> m_host;
};

ExecRequest command(std::initializer_list<std::string> argv) {
    ExecRequest request;
    for (const std::string& word : argv) {
        request.add_argv(word);
    }
    return request;
}

ExecRequest shell(const std::string& script) {
    return command({"sh", "-c", script});
}

std::string sha256(const std::string& bytes) {
    return QCryptographicHash::hash(QByteArray::fromRawData(bytes.data(), qsizetype(bytes.size())),
                                    QCryptographicHash::Sha256)
        .toHex()
        .toStdString();
}

bool isAlive(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t end = text.rfind(')');
    return end != std::string::npos && text.size() > end + 2 && text[end + 2] != 'Z';
}

std::string patternOf(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 1;
    for (char& c : bytes) {
        state = state * 1664525U + 1013904223U;
        c = static_cast<char>(state >> 24);
    }
    return bytes;
}

} // namespace

class TestAgent : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        tests::fillRandom(m_token);
        m_tokenFile = std::filesystem::temp_directory_path() / ("bulkhead-token-" + std::to_string(::getpid()));
        std::ofstream(m_tokenFile, std::ios::binary)
            .write(reinterpret_cast<const char*>(m_token.data()), std::streamsize(m_token.size()));
    }
    void cleanupTestCase() { std::filesystem::remove(m_tokenFile); }
    void init() {
        m_agent = std::make_unique<RunningAgent>(m_tokenFile.string(), m_token);
        QVERIFY(host().begin());
        const auto hello = host().hello();
        QVERIFY(hello);
        QCOMPARE(hello->version(), protocol::kProtocolVersion);
        QVERIFY(hello->features_size() >= 5);
    }
    void cleanup() { m_agent.reset(); }

    void runsCommands_data() {
        QTest::addColumn<QString>("script");
        QTest::addColumn<QByteArray>("input");
        QTest::addColumn<QByteArray>("output");
        QTest::addColumn<QByteArray>("errors");
        QTest::addColumn<int>("status");
        QTest::addColumn<int>("signal");
        QTest::newRow("echo") << "echo hello" << QByteArray() << QByteArray("hello\n") << QByteArray() << 0 << 0;
        QTest::newRow("both outputs") << "echo a; echo b >&2" << QByteArray() << QByteArray("a\n") << QByteArray("b\n")
                                      << 0 << 0;
        QTest::newRow("exit status") << "exit 7" << QByteArray() << QByteArray() << QByteArray() << 7 << 0;
        QTest::newRow("killed") << "kill -9 $$" << QByteArray() << QByteArray() << QByteArray() << 0 << 9;
        QTest::newRow("standard input") << "sort -rn" << QByteArray("1\n3\n2\n") << QByteArray("3\n2\n1\n")
                                        << QByteArray() << 0 << 0;
        QTest::newRow("reads nothing") << "exec <&-; echo done" << QByteArray(200'000, 'x') << QByteArray("done\n")
                                       << QByteArray() << 0 << 0;
        QTest::newRow("output of a background process") << "(sleep 0.2; echo late) & echo early" << QByteArray()
                                                        << QByteArray("early\nlate\n") << QByteArray() << 0 << 0;
        QTest::newRow("reopens its output") << "echo x > /dev/stdout; echo y > /dev/stderr" << QByteArray()
                                            << QByteArray("x\n") << QByteArray("y\n") << 0 << 0;
        QTest::newRow("default signals") << "sh -c 'kill -PIPE $$'; echo $?" << QByteArray() << QByteArray("141\n")
                                         << QByteArray() << 0 << 0;
        QTest::newRow("only three descriptors")
            << "ls /proc/self/fd | wc -l" << QByteArray() << QByteArray("4\n") << QByteArray() << 0 << 0;
        QTest::newRow("own session") << "set -- $(cat /proc/$$/stat); [ $6 = $$ ] && [ $5 = $$ ] && echo leader"
                                     << QByteArray() << QByteArray("leader\n") << QByteArray() << 0 << 0;
    }
    void runsCommands() {
        QFETCH(QString, script);
        QFETCH(QByteArray, input);
        QFETCH(QByteArray, output);
        QFETCH(QByteArray, errors);
        QFETCH(int, status);
        QFETCH(int, signal);
        const auto ended = host().run(shell(script.toStdString()), input.toStdString());
        QVERIFY(ended);
        QVERIFY(!ended->failed);
        QCOMPARE(QByteArray::fromStdString(ended->output), output);
        QCOMPARE(QByteArray::fromStdString(ended->errors), errors);
        QCOMPARE(int(ended->status), status);
        QCOMPARE(int(ended->signal), signal);
    }

    void saysWhyACommandDidNotStart_data() {
        QTest::addColumn<QStringList>("argv");
        QTest::addColumn<QString>("user");
        QTest::addColumn<QString>("cwd");
        QTest::addColumn<QStringList>("environment");
        QTest::addColumn<int>("reason");
        const QStringList ok{"true"};
        QTest::newRow("not in PATH") << QStringList{"no-such-command"} << ""
                                     << "" << QStringList() << int(ExecFailed::COMMAND_NOT_FOUND);
        QTest::newRow("no such file") << QStringList{"/no/such"} << ""
                                      << "" << QStringList() << int(ExecFailed::COMMAND_NOT_FOUND);
        QTest::newRow("empty name") << QStringList{""} << ""
                                    << "" << QStringList() << int(ExecFailed::COMMAND_NOT_FOUND);
        QTest::newRow("a folder") << QStringList{"/etc"} << ""
                                  << "" << QStringList() << int(ExecFailed::COMMAND_NOT_EXECUTABLE);
        QTest::newRow("not executable") << QStringList{"/etc/passwd"} << ""
                                        << "" << QStringList() << int(ExecFailed::COMMAND_NOT_EXECUTABLE);
        QTest::newRow("PATH of the program counts")
            << ok << ""
            << "" << QStringList{"PATH=/nowhere"} << int(ExecFailed::COMMAND_NOT_FOUND);
        QTest::newRow("no such user") << ok << "no-such-user"
                                      << "" << QStringList() << int(ExecFailed::NO_SUCH_USER);
        QTest::newRow("no such folder") << ok << ""
                                        << "/no/such" << QStringList() << int(ExecFailed::NO_SUCH_DIRECTORY);
        QTest::newRow("relative folder") << ok << ""
                                         << "tmp" << QStringList() << int(ExecFailed::BAD_REQUEST);
        QTest::newRow("no arguments") << QStringList() << ""
                                      << "" << QStringList() << int(ExecFailed::BAD_REQUEST);
        QTest::newRow("variable without =") << ok << ""
                                            << "" << QStringList{"NAME"} << int(ExecFailed::BAD_REQUEST);
        QTest::newRow("variable without name") << ok << ""
                                               << "" << QStringList{"=x"} << int(ExecFailed::BAD_REQUEST);
        QTest::newRow("NUL in an argument") << QStringList{"echo", QString("a") + QChar(0) + "b"} << ""
                                            << "" << QStringList() << int(ExecFailed::BAD_REQUEST);
        QTest::newRow("too many arguments") << QStringList(int(protocol::kMaxArguments) + 1, "x") << ""
                                            << "" << QStringList() << int(ExecFailed::BAD_REQUEST);
        QTest::newRow("too many variables")
            << ok << ""
            << "" << QStringList(int(protocol::kMaxEnvironment) + 1, "A=b") << int(ExecFailed::BAD_REQUEST);
    }
    void saysWhyACommandDidNotStart() {
        QFETCH(QStringList, argv);
        QFETCH(QString, user);
        QFETCH(QString, cwd);
        QFETCH(QStringList, environment);
        QFETCH(int, reason);
        ExecRequest request;
        for (const QString& word : argv) {
            request.add_argv(word.toStdString());
        }
        for (const QString& entry : environment) {
            request.add_environment(entry.toStdString());
        }
        request.set_user(user.toStdString());
        request.set_cwd(cwd.toStdString());
        const auto ended = host().run(request);
        QVERIFY(ended);
        QVERIFY(ended->failed);
        QCOMPARE(int(ended->reason), reason);
        // The next one is not troubled by it.
        const auto next = host().run(shell("exit 3"));
        QVERIFY(next);
        QCOMPARE(int(next->status), 3);
    }

    void setsTheEnvironment() {
        ExecRequest request = shell("echo $LANG $HOME $EXTRA $(pwd) ${TERM-none}");
        request.add_environment("EXTRA=given");
        request.add_environment("HOME=/first");
        request.add_environment("HOME=/tmp");
        request.set_cwd("/usr");
        const auto ended = host().run(request);
        QVERIFY(ended);
        QCOMPARE(QString::fromStdString(ended->output), QString("C.UTF-8 /tmp given /usr none\n"));
    }

    void givesATerminal() {
        ExecRequest request = shell("stty size; echo $TERM; tty; test -t 0 && test -t 1 && test -t 2 && echo three");
        request.set_terminal(true);
        request.mutable_window()->set_rows(33);
        request.mutable_window()->set_columns(101);
        request.set_term("xterm-256color");
        const auto ended = host().run(request);
        QVERIFY(ended);
        const QString text = QString::fromStdString(ended->output);
        QVERIFY2(text.contains("33 101\r\nxterm-256color\r\n/dev/pts/"), qPrintable(text));
        QVERIFY2(text.contains("three"), qPrintable(text));
    }

    void interruptsATerminal() {
        ExecRequest request = shell("trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.05; done");
        request.set_terminal(true);
        const auto program = host().start(request);
        auto& out = host().stream(program.stdio);
        QVERIFY(host().waitUntil([&] { return out.received.find("ready") != std::string::npos; }));
        host().send(program.stdio, "\x03");
        const auto ended = host().finish(program);
        QVERIFY(ended);
        QCOMPARE(int(ended->status), 9);
        QVERIFY(ended->output.find("caught") != std::string::npos);
    }

    void changesTheWindowSize() {
        ExecRequest request = shell("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done");
        request.set_terminal(true);
        const auto program = host().start(request);
        auto& out = host().stream(program.stdio);
        QVERIFY(host().waitUntil([&] { return out.received.find("ready") != std::string::npos; }));
        agent::ExecInput input;
        input.mutable_window()->set_rows(50);
        input.mutable_window()->set_columns(132);
        host().sendMessage(program.exec, input);
        const auto ended = host().finish(program);
        QVERIFY(ended);
        QVERIFY2(ended->output.find("50 132") != std::string::npos, ended->output.c_str());
    }

    void terminalEndsWithItsProgram() {
        // What it left in the background has the terminal open; all that was written is there nevertheless.
        ExecRequest request = shell("trap '' HUP; sleep 60 & seq 1 20000");
        request.set_terminal(true);
        const auto ended = host().run(request);
        QVERIFY(ended);
        QCOMPARE(int(ended->status), 0);
        QVERIFY(ended->output.ends_with("20000\r\n"));
    }

    void terminalInputCanEnd() {
        ExecRequest request = shell("cat > /dev/null; echo over");
        request.set_terminal(true);
        const auto ended = host().run(request, "line\n");
        QVERIFY(ended);
        QVERIFY(ended->output.find("over") != std::string::npos);
    }

    void sendsSignals_data() {
        QTest::addColumn<int>("number");
        QTest::newRow("TERM") << SIGTERM;
        QTest::newRow("INT") << SIGINT;
        QTest::newRow("KILL") << SIGKILL;
    }
    void sendsSignals() {
        QFETCH(int, number);
        // Two processes: the whole group has to hear it, or the pipe stays open.
        const auto program = host().start(shell("sleep 600 | sleep 600"));
        host().signal(program, std::uint32_t(number)); // perhaps before it runs
        const auto ended = host().finish(program);
        QVERIFY(ended);
        QCOMPARE(int(ended->signal), number);
    }

    void carriesBigDataBothWays() {
        const std::string bytes = patternOf(24 * 1024 * 1024);
        const auto ended = host().run(command({"cat"}), bytes, 120'000);
        QVERIFY(ended);
        QCOMPARE(ended->output.size(), bytes.size());
        QCOMPARE(sha256(ended->output), sha256(bytes));
    }

    void inputComesBeforeTheProgram() {
        // The host opens stdio first and may already send, and even close it.
        agent::StreamHeader header;
        header.mutable_stdio()->set_exec_id(500);
        const auto stdio = host().session().open();
        QVERIFY(stdio);
        host().sendMessage(*stdio, header);
        host().send(*stdio, "early bytes", true);
        *header.mutable_exec() = command({"cat"});
        header.mutable_exec()->set_exec_id(500);
        const auto exec = host().session().open();
        QVERIFY(exec);
        host().sendMessage(*exec, header);
        QVERIFY(host().waitUntil([&] { return host().stream(*stdio).finished && host().stream(*exec).finished; }));
        QCOMPARE(QString::fromStdString(host().stream(*stdio).received), QString("early bytes"));
    }

    void outputEndsBeforeTheProcess() {
        const auto program = host().start(shell("exec >&- 2>&-; read line; exit 5"));
        QVERIFY(host().waitUntil([&] { return host().stream(program.stdio).finished; }));
        const auto ended = host().finish(program, "go\n");
        QVERIFY(ended);
        QCOMPARE(int(ended->status), 5);
    }

    void aFastWriterWaits() {
        const auto program = host().start(command({"yes", "abcdefgh"}));
        host().stream(program.stdio).consume = false;
        QVERIFY(host().waitUntil([&] { return host().stream(program.stdio).total >= protocol::kInitialWindow; }));
        // Other work goes on, and nothing piles up in the agent.
        const long before = agentProcess().residentKiB();
        for (int i = 0; i < 20; ++i) {
            QVERIFY(host().run(shell("exit 0")));
        }
        QCOMPARE(host().stream(program.stdio).total, std::size_t{protocol::kInitialWindow});
        // `yes` would have written gigabytes by now; a sanitizer keeps freed memory for a while.
        QVERIFY2(agentProcess().residentKiB() - before < 48 * 1024, "the agent grew");
        host().signal(program, SIGKILL);
    }

    void aClosedOutputStopsTheWriter() {
        const auto program = host().start(command({"yes"}));
        QVERIFY(host().waitUntil([&] { return host().stream(program.stdio).total > 1000; }));
        host().session().resetStream(program.stdio);
        std::optional<ExecEvent> event;
        while ((event = host().nextEvent(program)) && event->has_started()) {
        }
        QVERIFY(event);
        QCOMPARE(int(event->exited().signal()), SIGPIPE);
    }

    void aClosedOutputLeavesTheInput() {
        const auto program = host().start(shell("cat | wc -c >&2; exit 6"));
        QVERIFY(host().nextEvent(program));
        closeOutput(program);
        QVERIFY(host().waitUntil([&] { return host().stream(program.stdio).finished; }));
        const auto ended = host().finish(program, std::string(3'000'000, 'x'));
        QVERIFY(ended);
        QCOMPARE(QString::fromStdString(ended->errors), QString("3000000\n"));
        QCOMPARE(int(ended->status), 6);
    }
    void aClosedOutputIsABrokenPipe() {
        const auto program = host().start(command({"yes"}));
        closeOutput(program); // perhaps before it runs
        const auto ended = host().finish(program);
        QVERIFY(ended);
        QCOMPARE(int(ended->signal), SIGPIPE);
    }
    void aMissingOutputIsABrokenPipe_data() {
        QTest::addColumn<bool>("errors");
        QTest::newRow("output") << false;
        QTest::newRow("errors") << true;
    }
    void aMissingOutputIsABrokenPipe() {
        QFETCH(bool, errors);
        // The host gave the stream up so early that its header never came.
        agent::StreamHeader header;
        (errors ? header.mutable_stdio()->set_exec_id(700) : header.mutable_err()->set_exec_id(700));
        const auto other = host().session().open();
        QVERIFY(other);
        host().sendMessage(*other, header);
        *header.mutable_exec() = shell(errors ? "exec yes >&2" : "exec yes");
        header.mutable_exec()->set_exec_id(700);
        HostClient::Program program;
        const auto exec = host().session().open();
        QVERIFY(exec);
        program.exec = *exec;
        host().sendMessage(program.exec, header);
        std::optional<ExecEvent> event;
        while ((event = host().nextEvent(program)) && event->has_started()) {
        }
        QVERIFY(event);
        QCOMPARE(int(event->exited().signal()), SIGPIPE);
    }

    void theGroupIsSignalledAfterItsLeader() {
        // The leader stays a zombie, so that the number cannot be another group's.
        const auto program = host().start(shell("sleep 600 & echo $$"));
        auto& out = host().stream(program.stdio);
        QVERIFY(host().waitUntil([&] { return out.received.ends_with('\n'); }));
        const pid_t leader = std::stoi(out.received);
        QTRY_VERIFY(!isAlive(leader));
        QVERIFY(host().run(shell("exit 0"))); // the agent has seen a child end in the meantime
        QCOMPARE(::kill(-leader, 0), 0);
        QVERIFY(std::filesystem::exists("/proc/" + std::to_string(leader)));
        host().signal(program, SIGTERM);
        const auto ended = host().finish(program);
        QVERIFY(ended);
        QCOMPARE(int(ended->status), 0);
        QTRY_VERIFY(!std::filesystem::exists("/proc/" + std::to_string(leader)));
    }

    void anAbandonedProgramIsKilled() {
        const auto program = host().start(shell("trap '' TERM HUP INT; echo $$; while :; do sleep 1; done"));
        auto& out = host().stream(program.stdio);
        QVERIFY(host().waitUntil([&] { return out.received.ends_with('\n'); }));
        const pid_t pid = std::stoi(out.received);
        QVERIFY(isAlive(pid));
        host().session().resetStream(program.exec);
        QVERIFY(host().waitUntil([&] { return host().stream(program.stdio).wasReset; }));
        QTRY_VERIFY(!isAlive(pid));
    }

    void aNewSessionHangsUpTheOld() {
        const auto program = host().start(shell("echo $$; while :; do sleep 1; done"));
        auto& out = host().stream(program.stdio);
        QVERIFY(host().waitUntil([&] { return out.received.ends_with('\n'); }));
        const pid_t pid = std::stoi(out.received);
        // In the middle of data both ways.
        const auto busy = host().start(command({"cat"}));
        host().send(busy.stdio, patternOf(1024 * 1024));
        QVERIFY(host().waitUntil([&] { return host().stream(busy.stdio).total > 1000; }));
        QVERIFY(host().begin());
        QVERIFY(host().hello());
        QTRY_VERIFY(!isAlive(pid));
        const auto ended = host().run(shell("echo fresh"));
        QVERIFY(ended);
        QCOMPARE(QString::fromStdString(ended->output), QString("fresh\n"));
    }

    void refusesTooManyPrograms() {
        std::vector<HostClient::Program> programs;
        for (std::size_t i = 0; i < protocol::kMaxConcurrentExecs; ++i) {
            programs.push_back(host().start(shell("read line")));
            const auto event = host().nextEvent(programs.back());
            QVERIFY(event && event->has_started());
        }
        const auto refused = host().run(shell("exit 0"));
        QVERIFY(refused);
        QVERIFY(refused->failed);
        QCOMPARE(int(refused->reason), int(ExecFailed::LIMIT));
        for (const auto& program : programs) {
            QVERIFY(host().finish(program, "x\n"));
        }
        const auto ended = host().run(shell("exit 4"));
        QVERIFY(ended);
        QCOMPARE(int(ended->status), 4);
    }

    void breaksOnlyTheBadStream_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::newRow("no message") << QByteArray("\x04\x00\x00\x00\xff\xff\xff\xff", 8);
        QTest::newRow("empty header") << QByteArray("\x00\x00\x00\x00", 4);
        QTest::newRow("length too large") << QByteArray("\xff\xff\xff\x7f", 4);
    }
    void breaksOnlyTheBadStream() {
        QFETCH(QByteArray, bytes);
        const auto stream = host().session().open();
        QVERIFY(stream);
        host().send(*stream, bytes.toStdString());
        QVERIFY(host().waitUntil([&] { return host().stream(*stream).wasReset; }));
        QVERIFY(host().run(shell("exit 0")));
    }

    void answersRequests() {
        Request request;
        request.set_id(11);
        request.mutable_ping();
        auto reply = host().ask(request);
        QVERIFY(reply);
        QCOMPARE(reply->id(), std::uint64_t{11});
        QVERIFY(reply->has_done());

        request.mutable_status();
        reply = host().ask(request);
        QVERIFY(reply);
        QVERIFY(reply->status().uptime_ms() > 0);
        QVERIFY(reply->status().memory_total() > reply->status().memory_available());
        QVERIFY(reply->status().memory_available() > 0);
        QVERIFY(reply->status().processes() > 1);
        QVERIFY(reply->status().system().total() > 0);

        request.mutable_set_clock()->set_realtime_ns(0); // a process may not
        reply = host().ask(request);
        QVERIFY(reply);
        QCOMPARE(reply->error_number(), EPERM);
        const auto checked = channel::checkReply(channel::GuestMessage(reply->SerializeAsString()));
        QVERIFY(checked); // or the host would take the guest for broken
        QCOMPARE(checked->errorNumber, EPERM);
    }

    void shutsDown() {
        const auto program = host().start(shell("echo up; sleep 600"));
        QVERIFY(host().waitUntil([&] { return host().stream(program.stdio).total > 0; }));
        Request request;
        request.set_id(1);
        request.mutable_shutdown()->set_grace_ms(100);
        const auto reply = host().ask(request);
        QVERIFY(reply);
        QCOMPARE(reply->error_number(), 0);
        QVERIFY(!host().waitUntil([] { return false; }, 10'000));
        QVERIFY(host().transportEnded());
        QCOMPARE(agentProcess().closeAndWait(), 0);
    }

    void endsWithItsChannel() {
        const auto program = host().start(shell("echo $$; sleep 600"));
        auto& out = host().stream(program.stdio);
        QVERIFY(host().waitUntil([&] { return out.received.ends_with('\n'); }));
        const pid_t pid = std::stoi(out.received);
        QCOMPARE(agentProcess().closeAndWait(), 0);
        QTRY_VERIFY(!isAlive(pid));
    }

private:
    HostClient& host() { return m_agent->host(); }
    RunningAgent& agentProcess() { return *m_agent; }
    void closeOutput(const HostClient::Program& program) {
        agent::ExecInput input;
        input.mutable_close_output();
        host().sendMessage(program.exec, input);
    }

    protocol::Token m_token{};
    std::filesystem::path m_tokenFile;
    std::unique_ptr<RunningAgent> m_agent;
};

QTEST_GUILESS_MAIN(TestAgent)
#include "tst_agent.moc"

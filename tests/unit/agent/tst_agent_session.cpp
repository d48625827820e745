// SPDX-License-Identifier: Apache-2.0
// The agent between the host and a program that stands in for bulkhead-session.
#include "host_client.hpp"
#include "protocol/session.pb.h"

#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <fstream>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using protocol::StreamId;
using tests::HostClient;

namespace {

UniqueFd connectTo(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return {};
    }
    return fd;
}

std::string framed(const google::protobuf::MessageLite& message) {
    const auto bytes = protocol::frameMessage(message.SerializeAsString());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

session::Event up(std::uint32_t heads) {
    session::Event event;
    event.mutable_up()->set_heads(heads);
    return event;
}

session::Event windowCalled(std::uint32_t number, const std::string& title) {
    session::Event event;
    event.mutable_window_changed()->set_window(number);
    event.mutable_window_changed()->set_title(title);
    return event;
}

/// The program's end of its connection. Never blocks.
class Program {
public:
    explicit Program(const std::string& path)
        : m_fd(connectTo(path)) {}
    [[nodiscard]] bool isConnected() const { return m_fd.isOpen(); }
    /// How much was taken.
    std::size_t send(const std::string& bytes) {
        const ssize_t count = ::send(m_fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }
    /// A command that has come.
    std::optional<session::Command> take() {
        look();
        auto message = m_reader.next();
        session::Command command;
        return message && command.ParseFromString(*message) ? std::optional(command) : std::nullopt;
    }
    bool hasEnded() {
        look();
        return m_hasEnded;
    }
    void close() { m_fd.reset(); }

private:
    void look() {
        std::array<std::byte, 4096> buffer{};
        const ssize_t count = ::recv(m_fd.get(), buffer.data(), buffer.size(), 0);
        if (count > 0) {
            static_cast<void>(m_reader.feed(std::span(buffer).first(static_cast<std::size_t>(count))));
        } else if (count == 0 || errno != EAGAIN) {
            m_hasEnded = true;
        }
    }
    UniqueFd m_fd;
    protocol::MessageReader m_reader;
    bool m_hasEnded = false;
};

} // namespace

class TestAgentSession : public QObject {
    Q_OBJECT

private slots:
    void init() {
        QVERIFY(m_folder.isValid());
        m_path = m_folder.filePath("sub/session.sock").toStdString();
        protocol::Token token{};
        tests::fillRandom(token);
        const std::string tokenFile = m_folder.filePath("token").toStdString();
        std::ofstream(tokenFile, std::ios::binary)
            .write(reinterpret_cast<const char*>(token.data()), std::streamsize(token.size()));
        std::array<int, 2> ends{};
        QCOMPARE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        m_agent = ::fork();
        if (m_agent == 0) {
            const std::string number = std::to_string(::dup(ends[1])); // without close-on-exec
            ::setenv("BULKHEAD_SESSION_SOCKET", m_path.c_str(), 1);
            ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--connect-fd", number.c_str(), "--token-file", tokenFile.c_str(),
                    nullptr);
            ::_exit(99);
        }
        ::close(ends[1]);
        m_host = std::make_unique<HostClient>(UniqueFd(ends[0]), token);
        QVERIFY(m_host->begin());
        const auto hello = m_host->hello();
        QVERIFY(hello);
        const auto& features = hello->features();
        QVERIFY(std::find(features.begin(), features.end(), protocol::kFeatureSession) != features.end());
    }
    void cleanup() {
        m_host.reset();
        ::kill(m_agent, SIGKILL);
        ::waitpid(m_agent, nullptr, 0);
    }

    void socketIsForItsUser() {
        struct stat status {};
        QCOMPARE(::stat(m_path.c_str(), &status), 0);
        QCOMPARE(status.st_mode & 07777U, 0660U);
    }

    void passesMessagesBothWays() {
        // The program is there first, as it is when a viewer comes.
        Program program(m_path);
        QVERIFY(program.isConnected());
        program.send(framed(up(8)) + framed(windowCalled(1, "one")));
        const StreamId stream = openSession();
        QCOMPARE(next(stream).up().heads(), 8U);
        QCOMPARE(next(stream).window_changed().title(), std::string("one"));

        session::Command command;
        command.mutable_close_window()->set_window(1);
        m_host->sendMessage(stream, command);
        const auto got = commandOf(program);
        QVERIFY(got);
        QCOMPARE(got->close_window().window(), 1U);
    }

    void theStreamMayComeFirst() {
        const StreamId stream = openSession();
        // Nobody is there to obey; that breaks nothing.
        session::Command command;
        command.mutable_list_windows();
        m_host->sendMessage(stream, command);
        QVERIFY(agentAnswers());
        Program program(m_path);
        program.send(framed(up(3)));
        QCOMPARE(next(stream).up().heads(), 3U);
        QVERIFY(!program.take());
    }

    void tellsThatTheProgramEnded() {
        const StreamId stream = openSession();
        {
            Program program(m_path);
            // Half a message at its end: nobody is to see it.
            program.send(framed(up(2)) + framed(windowCalled(1, "half")).substr(0, 9));
            QCOMPARE(next(stream).up().heads(), 2U);
        }
        QVERIFY(next(stream).has_down());
        Program another(m_path);
        another.send(framed(up(4)));
        QCOMPARE(next(stream).up().heads(), 4U);
    }

    void aNewProgramReplacesTheOldOne() {
        const StreamId stream = openSession();
        Program old(m_path);
        old.send(framed(up(1)));
        QCOMPARE(next(stream).up().heads(), 1U);
        Program young(m_path);
        young.send(framed(up(2)));
        QVERIFY(next(stream).has_down());
        QCOMPARE(next(stream).up().heads(), 2U);
        QVERIFY(m_host->waitUntil([&] { return old.hasEnded(); }));
        QVERIFY(!young.hasEnded());
    }

    void theProgramSaysAllAgainToANewStream() {
        const StreamId first = openSession();
        Program program(m_path);
        program.send(framed(up(1)));
        QCOMPARE(next(first).up().heads(), 1U);
        m_host->send(first, {}, true); // FIN
        QVERIFY(m_host->waitUntil([&] { return program.hasEnded() && m_host->stream(first).finished; }));
        // It connects at once, and waits for the next stream with what it has to say.
        Program again(m_path);
        again.send(framed(up(5)));
        QVERIFY(agentAnswers());
        QVERIFY(!again.hasEnded());
        const StreamId second = openSession();
        QCOMPARE(next(second).up().heads(), 5U);
        m_host->session().resetStream(second);
        QVERIFY(m_host->waitUntil([&] { return again.hasEnded(); }));
    }

    void onlyOneStreamAtATime() {
        const StreamId first = openSession();
        const StreamId second = openSession();
        QVERIFY(m_host->waitUntil([&] { return m_host->stream(second).wasReset; }));
        Program program(m_path);
        program.send(framed(up(7)));
        QCOMPARE(next(first).up().heads(), 7U);
    }

    void aNewSessionOfTheHostBeginsAnew() {
        const StreamId old = openSession();
        Program program(m_path);
        program.send(framed(up(1)));
        QCOMPARE(next(old).up().heads(), 1U);
        QVERIFY(m_host->begin());
        QVERIFY(m_host->hello());
        QVERIFY(m_host->waitUntil([&] { return program.hasEnded(); }));
        Program again(m_path);
        again.send(framed(up(6)));
        QCOMPARE(next(openSession()).up().heads(), 6U);
    }

    void aSlowHostBlocksOnlyTheProgram() {
        const StreamId stream = openSession();
        m_host->stream(stream).consume = false;
        Program program(m_path);
        std::string bytes = framed(up(1));
        constexpr std::uint32_t kMessages = 20'000;
        for (std::uint32_t i = 1; i <= kMessages; ++i) {
            bytes += framed(windowCalled(i, std::string(200, 'x')));
        }
        std::size_t sent = 0;
        std::size_t before = 1;
        while (sent != before) { // until the agent has been seen to take nothing more
            before = sent;
            sent += program.send(bytes.substr(sent));
            QVERIFY(agentAnswers());
            sent += program.send(bytes.substr(sent));
        }
        // The window of the stream, what the agent holds, and the socket's own buffer.
        QVERIFY2(sent < std::size_t{1024} * 1024, qPrintable(QString::number(sent)));
        // When the host goes on, everything arrives, whole and in order.
        m_host->stream(stream).consume = true;
        m_host->session().consumed(stream, m_host->stream(stream).total);
        QCOMPARE(next(stream).up().heads(), 1U);
        for (std::uint32_t i = 1; i <= kMessages; ++i) {
            if (sent < bytes.size()) {
                sent += program.send(bytes.substr(sent, 65536));
            }
            QCOMPARE(next(stream).window_changed().window(), i);
        }
    }

    void aSlowProgramBlocksOnlyTheHostsStream() {
        const StreamId stream = openSession();
        Program program(m_path);
        program.send(framed(up(1)));
        QCOMPARE(next(stream).up().heads(), 1U);
        std::string bytes;
        constexpr std::uint32_t kMessages = 100'000;
        for (std::uint32_t i = 1; i <= kMessages; ++i) {
            session::Command command;
            command.mutable_activate_window()->set_window(i);
            bytes += framed(command);
        }
        m_host->send(stream, bytes);
        std::size_t before = 0;
        while (m_host->stream(stream).toSend.size() != before) {
            before = m_host->stream(stream).toSend.size();
            QVERIFY(agentAnswers());
            QVERIFY(agentAnswers());
        }
        QVERIFY2(before > 0, "all was taken although nobody reads");
        std::uint32_t wanted = 1;
        QVERIFY(m_host->waitUntil([&] {
            while (const auto command = program.take()) {
                if (command->activate_window().window() != wanted) {
                    return true;
                }
                ++wanted;
            }
            return wanted > kMessages;
        }));
        QCOMPARE(wanted, kMessages + 1);
    }

    void nonsenseEndsOnlyWhoSaysIt() {
        const StreamId stream = openSession();
        Program program(m_path);
        program.send(framed(up(1)) + std::string("\xFF\xFF\xFF\x7F", 4));
        QCOMPARE(next(stream).up().heads(), 1U);
        QVERIFY(next(stream).has_down());
        QVERIFY(m_host->waitUntil([&] { return program.hasEnded(); }));
        m_host->send(stream, std::string("\xFF\xFF\xFF\x7F", 4));
        QVERIFY(m_host->waitUntil([&] { return m_host->stream(stream).wasReset; }));
        Program again(m_path);
        again.send(framed(up(2)));
        QCOMPARE(next(openSession()).up().heads(), 2U);
    }

    void strangersAreTurnedAway() {
        QVERIFY2(::getuid() == 0, "only root can be somebody else");
        const StreamId stream = openSession();
        // The file's mode is one lock; the question who it is must hold without it.
        QCOMPARE(::chmod(m_path.c_str(), 0666), 0);
        QCOMPARE(::chmod(m_folder.path().toLocal8Bit().constData(), 0755), 0);
        const pid_t stranger = ::fork();
        if (stranger == 0) {
            if (::setgid(65534) != 0 || ::setuid(65534) != 0) {
                ::_exit(3);
            }
            UniqueFd fd = connectTo(m_path);
            if (!fd) {
                ::_exit(4);
            }
            const std::string bytes = framed(up(9));
            static_cast<void>(!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
            pollfd entry{fd.get(), POLLIN, 0};
            char byte = 0;
            ::poll(&entry, 1, 10'000);
            ::_exit(::recv(fd.get(), &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN ? 0 : 5);
        }
        int status = -1;
        QVERIFY(m_host->waitUntil([&] { return ::waitpid(stranger, &status, WNOHANG) == stranger; }));
        QCOMPARE(WEXITSTATUS(status), 0);
        Program program(m_path);
        program.send(framed(up(1)));
        QCOMPARE(next(stream).up().heads(), 1U); // and not 9
    }

private:
    StreamId openSession() {
        agent::StreamHeader header;
        header.mutable_session();
        return m_host->openWith(header);
    }
    session::Event next(StreamId stream) {
        session::Event event;
        const auto message = m_host->nextMessage(stream, 10'000);
        if (!message || !event.ParseFromString(*message)) {
            return {};
        }
        return event;
    }
    std::optional<session::Command> commandOf(Program& program) {
        std::optional<session::Command> command;
        m_host->waitUntil([&] {
            command = program.take();
            return command.has_value();
        });
        return command;
    }
    bool agentAnswers() {
        agent::Request request;
        request.set_id(++m_requests);
        request.mutable_ping();
        const auto reply = m_host->ask(request);
        return reply && reply->id() == m_requests;
    }

    QTemporaryDir m_folder;
    std::string m_path;
    pid_t m_agent = -1;
    std::unique_ptr<HostClient> m_host;
    std::uint64_t m_requests = 0;
};

QTEST_GUILESS_MAIN(TestAgentSession)
#include "tst_agent_session.moc"

// SPDX-License-Identifier: Apache-2.0
// The host, the real agent, the real session, an X server and a program with windows, all at once.
#include "host_client.hpp"
#include "session_rig.hpp"
#include "x_client.hpp"

#include <QTest>

#include <csignal>
#include <fstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bulkhead;
using namespace bulkhead::tests;
using protocol::StreamId;

class TestSessionAgent : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        m_socket = m_folder.filePath("session.sock").toStdString();
        fillRandom(m_token);
        std::ofstream(m_folder.filePath("token").toStdString(), std::ios::binary)
            .write(reinterpret_cast<const char*>(m_token.data()), std::streamsize(m_token.size()));
        m_server = std::make_unique<XServer>(XServer::Kind::ManyHeads, m_folder.path());
        QVERIFY(!m_server->display().empty());
    }
    void cleanup() {
        m_session.reset();
        endAgent();
    }

    void allTheWay() {
        startAgent();
        StreamId stream = openSession();
        startSession();
        QCOMPARE(next(stream).up().heads(), 4U);
        XClient client(m_server->display());
        client.show({.title = "one", .size = {350, 250}});
        auto window = next(stream).window_changed();
        QCOMPARE(window.title(), std::string("one"));
        QCOMPARE(window.width(), 350U);
        session::Command command;
        command.mutable_resize_window()->set_window(window.window());
        command.mutable_resize_window()->set_width(501);
        command.mutable_resize_window()->set_height(401);
        m_host->sendMessage(stream, command);
        QCOMPARE(next(stream).window_changed().width(), 501U);

        // The session breaks down and comes back: the program has not noticed.
        m_session->kill();
        QVERIFY(next(stream).has_down());
        startSession();
        QCOMPARE(next(stream).up().heads(), 4U);
        QCOMPARE(next(stream).window_changed().title(), std::string("one"));
        QVERIFY(client.isConnected());

        // The host lets go and comes again.
        m_host->session().resetStream(stream);
        stream = openSession();
        QCOMPARE(next(stream).up().heads(), 4U);
        QCOMPARE(next(stream).window_changed().width(), 501U);

        // Another agent takes over.
        endAgent();
        startAgent();
        stream = openSession();
        QCOMPARE(next(stream).up().heads(), 4U);
        window = next(stream).window_changed();
        QCOMPARE(window.title(), std::string("one"));
        // Without its X server there is none.
        m_server->kill();
        QCOMPARE(m_session->end(), 1);
        auto last = next(stream);
        while (last.has_window_gone()) {
            last = next(stream);
        }
        QVERIFY(last.has_down());
    }

private:
    void startAgent() {
        std::array<int, 2> ends{};
        QCOMPARE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
        const std::string tokenFile = m_folder.filePath("token").toStdString();
        m_agent = ::fork();
        if (m_agent == 0) {
            const std::string number = std::to_string(::dup(ends[1])); // without close-on-exec
            ::setenv("BULKHEAD_SESSION_SOCKET", m_socket.c_str(), 1);
            ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--connect-fd", number.c_str(), "--token-file", tokenFile.c_str(),
                    nullptr);
            ::_exit(99);
        }
        ::close(ends[1]);
        m_host = std::make_unique<HostClient>(UniqueFd(ends[0]), m_token);
        QVERIFY(m_host->begin());
        QVERIFY(m_host->hello());
    }
    void endAgent() {
        m_host.reset();
        if (m_agent > 0) {
            ::kill(m_agent, SIGKILL);
            ::waitpid(m_agent, nullptr, 0);
            m_agent = -1;
        }
    }
    void startSession() { m_session = std::make_unique<SessionProcess>(m_server->display(), m_socket, 4); }
    StreamId openSession() {
        agent::StreamHeader header;
        header.mutable_session();
        return m_host->openWith(header);
    }
    session::Event next(StreamId stream) {
        session::Event event;
        const auto message = m_host->nextMessage(stream, 15'000);
        if (!message || !event.ParseFromString(*message)) {
            return {};
        }
        return event;
    }

    QTemporaryDir m_folder;
    std::string m_socket;
    protocol::Token m_token{};
    std::unique_ptr<XServer> m_server;
    std::unique_ptr<SessionProcess> m_session;
    std::unique_ptr<HostClient> m_host;
    pid_t m_agent = -1;
};

QTEST_GUILESS_MAIN(TestSessionAgent)
#include "tst_session_agent.moc"

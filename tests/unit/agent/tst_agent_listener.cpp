// SPDX-License-Identifier: Apache-2.0
// The agent's port as an attacker on the host sees it: the real program, with a Unix socket in the place of AF_VSOCK,
// and next to the host's own connection others that know nothing, replay what they have seen, or say nothing at all.
#include "host_client.hpp"
#include "protocol/handshake.hpp"

#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace bulkhead;
using agent::ExecRequest;
using tests::HostClient;
namespace handshake = protocol::handshake;

namespace {

constexpr int kHandshakeMs = 5000;

class ListeningAgent {
public:
    ListeningAgent() {
        tests::fillRandom(token);
        std::FILE* file = std::fopen(path("token").c_str(), "w");
        std::fwrite(token.data(), 1, token.size(), file);
        std::fclose(file);
        std::array<int, 2> log{};
        if (::pipe2(log.data(), O_CLOEXEC) != 0) {
            qFatal("no pipe");
        }
        m_log.reset(log[0]);
        ::fcntl(m_log.get(), F_SETFL, O_NONBLOCK);
        const UniqueFd writer(log[1]);
        m_pid = ::fork();
        if (m_pid == 0) {
            ::dup2(writer.get(), STDERR_FILENO);
            ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--listen-unix", path("agent.sock").c_str(), "--token-file",
                    path("token").c_str(), nullptr);
            ::_exit(99);
        }
    }
    ~ListeningAgent() {
        ::kill(m_pid, SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
    /// None: the queue of those who wait is full.
    UniqueFd tryConnect() {
        UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string socket = path("agent.sock");
        std::copy(socket.begin(), socket.end(), address.sun_path);
        if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
            fd.reset();
        }
        return fd;
    }
    /// As the daemon does it: until it works.
    UniqueFd connect() {
        UniqueFd fd;
        QElapsedTimer timer;
        timer.start();
        while (!(fd = tryConnect()) && timer.elapsed() < 10'000) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5)); // lint-allow(sleep): as the daemon pauses
        }
        return fd;
    }
    std::unique_ptr<HostClient> host() { return std::make_unique<HostClient>(connect(), token); }
    std::string log() {
        std::array<char, 4096> buffer{};
        ssize_t count = 0;
        while ((count = ::read(m_log.get(), buffer.data(), buffer.size())) > 0) {
            m_logged.append(buffer.data(), static_cast<std::size_t>(count));
        }
        return m_logged;
    }
    [[nodiscard]] bool isAlive() const { return ::waitpid(m_pid, nullptr, WNOHANG) == 0; }
    [[nodiscard]] std::size_t openDescriptors() const {
        return static_cast<std::size_t>(
            QDir("/proc/" + QString::number(m_pid) + "/fd").entryList(QDir::Files | QDir::System).size());
    }
    [[nodiscard]] std::string path(const char* name) const { return m_folder.filePath(name).toStdString(); }

    protocol::Token token{};

private:
    QTemporaryDir m_folder;
    UniqueFd m_log;
    std::string m_logged;
    pid_t m_pid = -1;
};

ExecRequest shell(const std::string& script) {
    ExecRequest request;
    for (const std::string& word : {std::string("sh"), std::string("-c"), script}) {
        request.add_argv(word);
    }
    return request;
}

void sendAll(const UniqueFd& fd, std::span<const std::byte> bytes) {
    static_cast<void>(!::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// Bytes that could begin a new challenge are held back until more comes, which a proof that ends in them would meet
/// one time in 256: a ping follows, as frames follow a real proof.
void sendProof(const UniqueFd& fd, std::span<const std::byte> proof) {
    constexpr std::array<std::byte, 12> kPing{std::byte{0}, std::byte{2}, std::byte{0}, std::byte{1}};
    std::vector<std::byte> bytes(proof.begin(), proof.end());
    bytes.insert(bytes.end(), kPing.begin(), kPing.end());
    sendAll(fd, bytes);
}

/// What comes until the peer closes (then `closed`), or until `ms` have passed.
struct Heard {
    std::vector<std::byte> bytes;
    bool closed = false;
};
Heard listen(const UniqueFd& fd, int ms, std::size_t enough = SIZE_MAX) {
    Heard heard;
    QElapsedTimer timer;
    timer.start();
    while (heard.bytes.size() < enough && timer.elapsed() < ms) {
        pollfd waiting{fd.get(), POLLIN, 0};
        if (::poll(&waiting, 1, static_cast<int>(ms - timer.elapsed())) <= 0) {
            continue;
        }
        std::array<std::byte, 4096> buffer{};
        const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
        if (count > 0) {
            heard.bytes.insert(heard.bytes.end(), buffer.begin(), buffer.begin() + count);
        } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
            heard.closed = true;
            break;
        }
    }
    return heard;
}

protocol::Nonce randomNonce() {
    protocol::Nonce nonce{};
    tests::fillRandom(nonce);
    return nonce;
}

/// A live session that runs cat, and that can be asked whether all is well.
class LiveSession {
public:
    explicit LiveSession(ListeningAgent& agent)
        : m_host(agent.host()) {
        m_isUp = m_host->begin() && m_host->hello();
        m_cat = m_host->start(shell("cat"));
    }
    bool answers() {
        const std::string text = "line " + std::to_string(++m_count) + "\n";
        m_host->send(m_cat.stdio, text);
        m_sent += text;
        return m_isUp && m_host->waitUntil([this] { return m_host->stream(m_cat.stdio).received == m_sent; }, 10'000);
    }
    HostClient& host() { return *m_host; }

private:
    std::unique_ptr<HostClient> m_host;
    HostClient::Program m_cat;
    std::string m_sent;
    int m_count = 0;
    bool m_isUp = false;
};

} // namespace

class TestAgentListener : public QObject {
    Q_OBJECT

private slots:
    void host_getsWhatItGetsOverALine() {
        ListeningAgent agent;
        auto host = agent.host();
        QVERIFY(host->begin());
        QVERIFY(host->hello().has_value());
        const auto ended = host->run(shell("cat; echo err >&2; exit 7"), "in");
        QVERIFY(ended.has_value());
        QCOMPARE(ended->status, 7U);
        QCOMPARE(ended->output, std::string("in"));
        QCOMPARE(ended->errors, std::string("err\n"));
        // And again after it was away.
        host.reset();
        auto again = agent.host();
        QVERIFY(again->begin());
        QVERIFY(again->hello().has_value());
    }

    void strangers_getNothing_data() {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("why");
        const auto row = [](const char* name, std::span<const std::byte> bytes, const char* why) {
            QTest::newRow(name) << QByteArray(reinterpret_cast<const char*>(bytes.data()), qsizetype(bytes.size()))
                                << why;
        };
        protocol::Token other{};
        tests::fillRandom(other);
        const auto reset = handshake::makeReset(other, randomNonce());
        row("a token of his own", reset, "wrong challenge");
        const std::string text = "GET / HTTP/1.1\r\nHost: a guest with a name that makes this longer\r\n\r\n";
        row("text", std::as_bytes(std::span(text)), "wrong challenge");
        const std::string zeros(64, '\0');
        row("zeros", std::as_bytes(std::span(zeros)), "wrong challenge");
        const std::string much(200'000, 'x');
        row("much", std::as_bytes(std::span(much)), "wrong challenge");
    }
    void strangers_getNothing() {
        QFETCH(QByteArray, bytes);
        QFETCH(QString, why);
        ListeningAgent agent;
        LiveSession live(agent);
        QVERIFY(live.answers());
        const auto stranger = agent.connect();
        sendAll(stranger, std::as_bytes(std::span(bytes)));
        const auto heard = listen(stranger, kHandshakeMs - 1000);
        QVERIFY(heard.closed); // at once, not by the time limit
        QCOMPARE(heard.bytes.size(), std::size_t{0});
        QTRY_VERIFY2(agent.log().find(why.toStdString()) != std::string::npos, agent.log().c_str());
        QVERIFY(live.answers());
    }

    void wrongProof_isRefused_data() {
        QTest::addColumn<int>("last");
        QTest::newRow("any") << 0x00;
        QTest::newRow("as a challenge begins") << int(handshake::kHostMagic.front());
    }
    void wrongProof_isRefused() {
        QFETCH(int, last);
        // Somebody who has seen the host's reset (it is replayed) gets an answer, which says nothing without the token.
        ListeningAgent agent;
        LiveSession live(agent);
        const auto recorded = handshake::makeReset(agent.token, randomNonce());
        const auto stranger = agent.connect();
        sendAll(stranger, recorded);
        const auto answer = listen(stranger, 2000, handshake::kPacketSize);
        QCOMPARE(answer.bytes.size(), handshake::kPacketSize);
        handshake::Proof guess{};
        tests::fillRandom(guess);
        guess.back() = std::byte(last);
        sendProof(stranger, guess);
        const auto heard = listen(stranger, kHandshakeMs - 1000);
        QVERIFY(heard.closed);
        QCOMPARE(heard.bytes.size(), std::size_t{0});
        QTRY_VERIFY(agent.log().find("wrong or replayed proof") != std::string::npos);
        QVERIFY(live.answers());
    }

    void replayedHandshake_isRefused() {
        ListeningAgent agent;
        // What the host said in a whole, good handshake.
        const auto nonce = randomNonce();
        const auto reset = handshake::makeReset(agent.token, nonce);
        std::vector<std::byte> confirm;
        {
            const auto host = agent.connect();
            sendAll(host, reset);
            const auto answer = listen(host, 2000, handshake::kPacketSize);
            QCOMPARE(answer.bytes.size(), handshake::kPacketSize);
            const auto guest =
                handshake::checkAnswer(agent.token, nonce, std::span(answer.bytes).first<handshake::kPacketSize>());
            QVERIFY(guest.has_value());
            const auto proof = handshake::makeConfirm(agent.token, nonce, *guest);
            confirm.assign(proof.begin(), proof.end());
            // The agent answers the ping, so this proof was a good one.
            sendProof(host, confirm);
            QVERIFY(!listen(host, 2000, 1).bytes.empty());
        }
        LiveSession live(agent);
        const auto stranger = agent.connect();
        sendAll(stranger, reset);
        const auto answer = listen(stranger, 2000, handshake::kPacketSize);
        QCOMPARE(answer.bytes.size(), handshake::kPacketSize);
        sendProof(stranger, confirm);
        const auto heard = listen(stranger, kHandshakeMs - 1000);
        QVERIFY(heard.closed);
        QCOMPARE(heard.bytes.size(), std::size_t{0});
        QTRY_VERIFY(agent.log().find("wrong or replayed proof") != std::string::npos);
        QVERIFY(live.answers());
    }

    void unfinishedHandshake_isDropped_data() {
        QTest::addColumn<int>("bytes");
        QTest::newRow("silent") << 0;
        QTest::newRow("half a reset") << 40;
        QTest::newRow("a replayed reset") << int(handshake::kPacketSize);
    }
    void unfinishedHandshake_isDropped() {
        QFETCH(int, bytes);
        ListeningAgent agent;
        LiveSession live(agent);
        QVERIFY(live.answers());
        const auto reset = handshake::makeReset(agent.token, randomNonce());
        const auto stranger = agent.connect();
        QElapsedTimer timer;
        timer.start();
        sendAll(stranger, std::span(reset).first(std::size_t(bytes)));
        QVERIFY(live.answers());
        const auto heard = listen(stranger, 4 * kHandshakeMs);
        QVERIFY(heard.closed);
        QVERIFY2(timer.elapsed() >= kHandshakeMs - 500, qPrintable(QString::number(timer.elapsed())));
        QTRY_VERIFY(agent.log().find("no proof in time") != std::string::npos);
        QVERIFY(live.answers());
    }

    void resetsWithoutEnd_areTooMuch() {
        // Each is right, so that none is a wrong challenge; but nobody needs that many.
        ListeningAgent agent;
        const auto reset = handshake::makeReset(agent.token, randomNonce());
        const auto stranger = agent.connect();
        for (int i = 0; i < 40; ++i) {
            sendAll(stranger, reset);
        }
        QVERIFY(listen(stranger, kHandshakeMs - 1000).closed);
        QTRY_VERIFY(agent.log().find("too many bytes") != std::string::npos);
    }

    void takeover_onlyAfterProof() {
        ListeningAgent agent;
        LiveSession live(agent);
        QVERIFY(live.answers());
        const auto nonce = randomNonce();
        const auto next = agent.connect();
        sendAll(next, handshake::makeReset(agent.token, nonce));
        const auto answer = listen(next, 2000, handshake::kPacketSize);
        QCOMPARE(answer.bytes.size(), handshake::kPacketSize);
        QVERIFY(live.answers()); // a reset alone takes nothing from it
        const auto guest =
            handshake::checkAnswer(agent.token, nonce, std::span(answer.bytes).first<handshake::kPacketSize>());
        const auto proof = handshake::makeConfirm(agent.token, nonce, *guest);
        sendAll(next, std::span(proof).first(31));
        QVERIFY(live.answers());
        sendProof(next, std::span(proof).last(1));
        QVERIFY(live.host().waitUntil([&] { return live.host().transportEnded(); }, 10'000) ||
                live.host().transportEnded());
    }

    // The programs wait in a builtin: dash forgets a signal that comes while it starts a command.
    void takeover_hangsUpTheProgramsOfTheOneBefore() {
        ListeningAgent agent;
        auto first = agent.host();
        QVERIFY(first->begin() && first->hello());
        const std::string mark = agent.path("hung-up");
        const auto program =
            first->start(shell("trap 'echo hup > " + mark + "; exit' HUP; sleep 1000 & echo ready; wait"));
        QVERIFY(first->waitUntil([&] { return first->stream(program.stdio).received == "ready\n"; }));
        auto second = agent.host();
        QVERIFY(second->begin() && second->hello());
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(QString::fromStdString(mark)), 10'000);
        QCOMPARE(second->run(shell("echo still here"))->output, std::string("still here\n"));
    }

    void lostConnection_hangsUpItsPrograms() {
        ListeningAgent agent;
        auto host = agent.host();
        QVERIFY(host->begin() && host->hello());
        const std::string mark = agent.path("hung-up");
        const auto program =
            host->start(shell("trap 'echo hup > " + mark + "; exit' HUP; sleep 1000 & echo ready; wait"));
        QVERIFY(host->waitUntil([&] { return host->stream(program.stdio).received == "ready\n"; }));
        host.reset();
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(QString::fromStdString(mark)), 10'000);
    }

    void flood_doesNotShutTheHostOut() {
        ListeningAgent agent;
        LiveSession live(agent);
        QVERIFY(live.answers());
        // Silent connections, as many as the kernel takes, made anew as soon as they are thrown out.
        std::atomic<bool> stop{false};
        std::atomic<int> made{0};
        std::jthread attacker([&] {
            std::vector<UniqueFd> held;
            while (!stop) {
                if (auto fd = agent.tryConnect()) {
                    held.push_back(std::move(fd));
                    ++made;
                } else {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // lint-allow(sleep): not to spin
                }
                if (held.size() > 200) {
                    held.erase(held.begin(), held.begin() + 100);
                }
            }
        });
        QTRY_VERIFY_WITH_TIMEOUT(made > 20, 10'000);
        for (int i = 0; i < 20; ++i) {
            QVERIFY(live.answers());
        }
        // Few of them wait at once, whatever was made.
        QVERIFY2(agent.openDescriptors() < 40, qPrintable(QString::number(agent.openDescriptors())));
        // And the host gets in beside them, by trying again as the daemon does.
        QElapsedTimer timer;
        timer.start();
        bool gotIn = false;
        while (!gotIn && timer.elapsed() < 30'000) {
            HostClient host(agent.connect(), agent.token);
            gotIn = host.begin(3000) && host.hello();
        }
        stop = true;
        QVERIFY(gotIn);
        QVERIFY(agent.isAlive());
        // The log has some of it, not a line for each.
        const auto lines = QString::fromStdString(agent.log()).count('\n');
        QVERIFY2(lines > 0 && lines < 20, qPrintable(QString::number(lines)));
    }

    void repeatedWrongProofs_areLoggedAFewTimes() {
        ListeningAgent agent;
        protocol::Token other{};
        for (int i = 0; i < 30; ++i) {
            const auto stranger = agent.connect();
            sendAll(stranger, handshake::makeReset(other, randomNonce()));
            QVERIFY(listen(stranger, kHandshakeMs - 1000).closed);
        }
        const auto lines = QString::fromStdString(agent.log()).count("refused a connection");
        QVERIFY2(lines > 0 && lines <= 10, qPrintable(QString::number(lines)));
    }
};

QTEST_GUILESS_MAIN(TestAgentListener)
#include "tst_agent_listener.moc"

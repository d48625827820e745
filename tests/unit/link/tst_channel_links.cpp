// SPDX-License-Identifier: Apache-2.0
// The daemon's side of real bulkhead-channel processes, with the real agent as the guest (an ordinary process that
// listens on a Unix socket): what is lost, what is made anew, and what is not.
#include <QTemporaryDir>
#include <QTest>

#include "channel/records.hpp"
#include "link/channel_links.hpp"
#include "process/child_reaper.hpp"
#include "process/poller.hpp"
#include "protocol/handshake.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#ifndef Q_MOC_RUN
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace bulkhead;
using namespace std::chrono_literals;

namespace {

class Events final : public core::GuestLinkEvents {
public:
    void onExecFinished(const InstanceId&, std::uint64_t, unsigned) override { ++finished; }
    void onWindowsChanged(const InstanceId&, bool) override {}
    void onLinkLost(const InstanceId&, const core::LinkLoss& loss) override {
        const std::lock_guard lock(m_mutex);
        m_losses.push_back(loss);
    }
    std::vector<core::LinkLoss> losses() {
        const std::lock_guard lock(m_mutex);
        return m_losses;
    }
    std::atomic<int> finished{0};

private:
    std::mutex m_mutex;
    std::vector<core::LinkLoss> m_losses;
};

sockaddr_un addressOf(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    return address;
}

/// A daemon's links, and a guest at FOLDER/agent.sock.
struct World {
    explicit World(QTemporaryDir& place)
        : folder(place.path().toStdString()) {
        spec.instance = randomId<InstanceId>();
        spec.agentSocket = folder + "/agent.sock";
        spec.channelUid = ::getuid();
        static_cast<void>(!::getrandom(spec.token.data(), spec.token.size(), 0));
        std::ofstream(folder + "/token", std::ios::binary)
            .write(reinterpret_cast<const char*>(spec.token.data()), static_cast<std::streamsize>(spec.token.size()));
        links = makeLinks();
    }
    ~World() {
        links->close(spec.instance);
        endAgent();
        // The next test takes the only one for its own.
        while (channelPid() > 0) {
            std::this_thread::sleep_for(2ms); // lint-allow(sleep): an adopted one's end is told to nobody
        }
    }
    std::unique_ptr<link::ChannelLinks> makeLinks() {
        return std::make_unique<link::ChannelLinks>(
            link::ChannelLinks::Places{BULKHEAD_CHANNEL_PROGRAM, folder + "/channels"}, poller, reaper, events);
    }
    void startAgent() {
        agent = ::fork();
        if (agent == 0) {
            ::execl(BULKHEAD_AGENT, BULKHEAD_AGENT, "--listen-unix", spec.agentSocket.c_str(), "--token-file",
                    (folder + "/token").c_str(), nullptr);
            ::_exit(99);
        }
        const auto until = std::chrono::steady_clock::now() + 10s;
        while (!canConnect() && std::chrono::steady_clock::now() < until) {
            std::this_thread::sleep_for(2ms); // lint-allow(sleep): nothing tells when a socket listens
        }
    }
    void endAgent() {
        if (agent > 0) {
            ::kill(agent, SIGKILL);
            ::waitpid(std::exchange(agent, -1), nullptr, 0);
        }
    }
    [[nodiscard]] bool canConnect() const {
        const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const auto address = addressOf(spec.agentSocket.string());
        return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    /// -1: there is none.
    [[nodiscard]] static pid_t channelPid() {
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::ifstream file(task.path() / "children");
            for (pid_t pid = 0; file >> pid;) {
                std::string line;
                std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/stat"), line);
                // Those of an earlier test may be collected late.
                if (line.find("(bulkhead-channe) ") != std::string::npos &&
                    line.find("(bulkhead-channe) Z") == std::string::npos) {
                    return pid;
                }
            }
        }
        return -1;
    }
    [[nodiscard]] QString output(const std::string& script) const {
        core::ExecRequest request;
        request.argv = {"sh", "-c", script};
        auto streams = links->exec(spec.instance, request);
        if (!streams) {
            return "refused: " + QString::fromStdString(streams.error().message);
        }
        std::string text;
        std::array<char, 1024> buffer{};
        pollfd waiting{streams->output.get(), POLLIN, 0};
        while (::poll(&waiting, 1, 10'000) > 0) {
            const ssize_t count = ::read(streams->output.get(), buffer.data(), buffer.size());
            if (count <= 0) {
                break;
            }
            text.append(buffer.data(), static_cast<std::size_t>(count));
        }
        return QString::fromStdString(text);
    }

    std::string folder;
    core::GuestLinkSpec spec;
    Events events;
    process::Poller poller;
    process::ChildReaper reaper{poller};
    std::unique_ptr<link::ChannelLinks> links;
    pid_t agent = -1;
};

} // namespace

class TestChannelLinks : public QObject {
    Q_OBJECT

private slots:
    void openAndClose_leaveNothing() {
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        const auto opened = world.links->open(world.spec, 20s, {});
        QVERIFY2(opened, opened ? "" : opened.error().message.c_str());
        QCOMPARE(world.output("echo hello"), QString("hello\n"));
        QVERIFY(world.links->status(world.spec.instance).has_value());
        world.links->close(world.spec.instance);
        QVERIFY(QDir(folder.path() + "/channels").isEmpty());
        QTRY_COMPARE(world.channelPid(), -1);
        QCOMPARE(world.links->reopen(world.spec.instance, 5s).error().code, ErrorCode::NotFound);
        QVERIFY(world.events.losses().empty());
    }

    void clock_isAskedOfTheGuest() {
        QTemporaryDir folder;
        World world(folder);
        QCOMPARE(world.links->setToHosts(world.spec.instance).error().code, ErrorCode::Unavailable);
        world.startAgent();
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        // This guest is a process that may not set any clock, and says so: it was asked, and the answer came.
        const auto set = world.links->setToHosts(world.spec.instance);
        QVERIFY(!set);
        QVERIFY2(set.error().code == ErrorCode::GuestFailure, set.error().message.c_str());
        QVERIFY(world.events.losses().empty());
    }

    void killedChannelProcess_canBeMadeAnew_data() {
        QTest::addColumn<bool>("byALaterDaemon");
        QTest::newRow("by the same daemon") << false;
        QTest::newRow("by a later daemon") << true;
    }
    void killedChannelProcess_canBeMadeAnew() {
        QFETCH(bool, byALaterDaemon);
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        const pid_t first = world.channelPid();
        QVERIFY(first > 0);
        core::ExecRequest sleeper;
        sleeper.argv = {"sleep", "1000"};
        const auto streams = world.links->exec(world.spec.instance, sleeper);
        QVERIFY(streams.has_value());
        if (byALaterDaemon) {
            world.links = world.makeLinks();
        }
        ::kill(first, SIGKILL);
        if (byALaterDaemon) {
            QTRY_VERIFY(!world.links->adopt(world.spec.instance));
        } else {
            QTRY_COMPARE(world.events.losses().size(), std::size_t{1});
            QVERIFY(!world.events.losses().front().isViolation);
            // Those that ran when it was lost.
            QCOMPARE(world.links->runningExecs(world.spec.instance), 1U);
        }
        const auto reopened = world.links->reopen(world.spec.instance, 20s);
        QVERIFY2(reopened, reopened ? "" : reopened.error().message.c_str());
        QCOMPARE(world.links->runningExecs(world.spec.instance), 0U);
        QCOMPARE(world.output("echo again"), QString("again\n"));
        QVERIFY(world.channelPid() != first);
    }

    void pausedGuest_keepsItsLink_data() {
        QTest::addColumn<bool>("ofMemory");
        QTest::newRow("memory") << true;
        QTest::newRow("disks") << false;
    }
    void pausedGuest_keepsItsLink() {
        QFETCH(bool, ofMemory);
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        const pid_t channel = world.channelPid();
        core::ExecRequest counter;
        counter.argv = {"sh", "-c", "while read x; do echo $x; done"};
        auto streams = world.links->exec(world.spec.instance, counter);
        QVERIFY(streams.has_value());
        const auto frozen = world.links->freeze(world.spec.instance, {.ofMemory = ofMemory});
        QVERIFY2(frozen, frozen ? "" : frozen.error().message.c_str());
        ::kill(world.agent, SIGSTOP);
        // Far more than the line takes: it waits.
        std::string sent;
        for (int i = 0; i < 200'000; ++i) {
            sent += std::to_string(i) + "\n";
        }
        std::jthread writer([&] {
            for (std::size_t at = 0; at < sent.size();) {
                const ssize_t count = ::send(streams->input.get(), sent.data() + at, sent.size() - at, MSG_NOSIGNAL);
                if (count <= 0) {
                    return;
                }
                at += std::size_t(count);
            }
            ::shutdown(streams->input.get(), SHUT_WR);
        });
        std::this_thread::sleep_for(2500ms); // lint-allow(sleep): a pause of its guest, which is what this is about
        ::kill(world.agent, SIGCONT);
        const auto thawed = world.links->thaw(world.spec.instance);
        QVERIFY2(thawed, thawed ? "" : thawed.error().message.c_str());
        std::string got;
        std::array<char, 65536> buffer{};
        pollfd waiting{streams->output.get(), POLLIN, 0};
        while (::poll(&waiting, 1, 10'000) > 0) {
            const ssize_t count = ::read(streams->output.get(), buffer.data(), buffer.size());
            if (count <= 0) {
                break;
            }
            got.append(buffer.data(), std::size_t(count));
        }
        QCOMPARE(got.size(), sent.size());
        QVERIFY(got == sent);
        QVERIFY(world.events.losses().empty());
        QCOMPARE(world.channelPid(), channel);
    }
    void programsOfAPicturedGuest_surviveAnotherHost_data() {
        QTest::addColumn<bool>("isPictured");
        QTest::newRow("begun from a picture") << true;
        QTest::newRow("not") << false;
    }
    void programsOfAPicturedGuest_surviveAnotherHost() {
        QFETCH(bool, isPictured);
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        world.spec.hostname = "work";
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        core::ExecRequest sleeper;
        sleeper.argv = {"sh", "-c", "echo $$; exec sleep 1000"};
        const auto streams = world.links->exec(world.spec.instance, sleeper);
        QVERIFY(streams.has_value());
        std::array<char, 32> text{};
        pollfd waiting{streams->output.get(), POLLIN, 0};
        QCOMPARE(::poll(&waiting, 1, 10'000), 1);
        QVERIFY(::read(streams->output.get(), text.data(), text.size() - 1) > 0);
        const std::string process = "/proc/" + std::to_string(std::stoi(text.data()));
        if (isPictured) {
            QVERIFY(world.links->freeze(world.spec.instance, {.ofMemory = true}).has_value());
        }
        // The child's host is another one, which has never met this guest.
        world.links->close(world.spec.instance);
        QTRY_COMPARE(world.channelPid(), -1);
        world.spec.instance = randomId<InstanceId>();
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        QCOMPARE(world.output("echo hello"), QString("hello\n"));
        QVERIFY(world.links->thaw(world.spec.instance).has_value()); // nothing is frozen
        QTRY_COMPARE(std::filesystem::exists(process), isPictured);
        if (isPictured) {
            ::kill(std::stoi(text.data()), SIGKILL);
            QTRY_VERIFY(!std::filesystem::exists(process));
        }
    }
    void withoutALink_thereIsNoPicture() {
        QTemporaryDir folder;
        World world(folder);
        QCOMPARE(world.links->freeze(world.spec.instance, {}).error().code, ErrorCode::Unavailable);
        QCOMPARE(world.links->thaw(world.spec.instance).error().code, ErrorCode::Unavailable);
    }
    void hostname_thatIsNone_isNoFailure() {
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        world.spec.hostname = "not a name\n";
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        QCOMPARE(world.output("echo hello"), QString("hello\n"));
        QVERIFY(world.events.losses().empty());
    }

    void crashedChannelProcess_isNotMadeAnew_data() {
        QTest::addColumn<int>("signal");
        for (const int number : {SIGSYS, SIGABRT, SIGILL}) {
            QTest::newRow(::strsignal(number)) << number;
        }
#ifndef __SANITIZE_ADDRESS__ // which takes these itself, and exits
        for (const int number : {SIGSEGV, SIGBUS}) {
            QTest::newRow(::strsignal(number)) << number;
        }
#endif
    }
    void crashedChannelProcess_isNotMadeAnew() {
        QFETCH(int, signal);
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        ::kill(world.channelPid(), signal);
        QTRY_COMPARE(world.events.losses().size(), std::size_t{1});
        QTRY_COMPARE(world.channelPid(), -1);
        // The reaper's word comes a moment after the socket's end; the daemon waits longer for it.
        QTest::qWait(100); // lint-allow(sleep): the word is not told to anybody
        const auto reopened = world.links->reopen(world.spec.instance, 5s);
        QCOMPARE(reopened.error().code, ErrorCode::GuestFailure);
        QVERIFY2(reopened.error().message.find("not spoken to again") != std::string::npos,
                 reopened.error().message.c_str());
    }

    void guestThatGoes_isTold() {
        QTemporaryDir folder;
        World world(folder);
        world.startAgent();
        QVERIFY(world.links->open(world.spec, 20s, {}).has_value());
        world.endAgent();
        QTRY_COMPARE(world.events.losses().size(), std::size_t{1});
        QVERIFY(!world.events.losses().front().isViolation);
        QCOMPARE(world.links->reopen(world.spec.instance, 2s).error().code, ErrorCode::NotFound);
    }

    void impostor_isNeverTheGuest() {
        // Somebody else sits at the guest's address. It knows everything but the token: it sends a well-formed answer
        // for each reset.
        QTemporaryDir folder;
        World world(folder);
        const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const auto address = addressOf(world.spec.agentSocket.string());
        QCOMPARE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        QCOMPARE(::listen(listener.get(), 4), 0);
        std::atomic<int> resets{0};
        std::jthread impostor([&](const std::stop_token& stop) {
            pollfd waiting{listener.get(), POLLIN, 0};
            if (::poll(&waiting, 1, 10'000) <= 0) {
                return;
            }
            const UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            while (!stop.stop_requested()) {
                protocol::handshake::Packet reset{};
                pollfd more{fd.get(), POLLIN, 0};
                if (::poll(&more, 1, 50) <= 0) {
                    continue;
                }
                if (::recv(fd.get(), reset.data(), reset.size(), MSG_WAITALL) != ssize_t(reset.size())) {
                    return;
                }
                ++resets;
                protocol::Nonce host{};
                std::copy_n(reset.begin() + protocol::handshake::kMagicSize, host.size(), host.begin());
                protocol::Token guess{};
                const auto answer = protocol::handshake::makeAnswer(guess, host, host);
                static_cast<void>(!::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
            }
        });
        QCOMPARE(world.links->open(world.spec, 2500ms, {}).error().code, ErrorCode::TimedOut);
        QVERIFY(resets >= 2);
        core::ExecRequest request;
        request.argv = {"true"};
        QVERIFY(!world.links->exec(world.spec.instance, request));
        QVERIFY(world.events.losses().empty());
    }

    void start_canBeCancelled() {
        QTemporaryDir folder;
        World world(folder);
        const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const auto address = addressOf(world.spec.agentSocket.string());
        QCOMPARE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        QCOMPARE(::listen(listener.get(), 4), 0);
        std::stop_source stop;
        std::jthread later([&stop] {
            std::this_thread::sleep_for(100ms); // lint-allow(sleep): it is to come in the middle
            stop.request_stop();
        });
        QCOMPARE(world.links->open(world.spec, 60s, stop.get_token()).error().code, ErrorCode::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestChannelLinks)
#include "tst_channel_links.moc"

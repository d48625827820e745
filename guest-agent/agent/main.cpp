// SPDX-License-Identifier: Apache-2.0
// bulkhead-agent: the first process of a domain (as /init), which becomes systemd in some; there with --unit a service.
// With --connect-fd an ordinary process for tests. `inspect` and `facts` look into disks and at the machine (inspect/).
#include "agent/accounts.hpp"
#include "agent/boot.hpp"
#include "agent/connections.hpp"
#include "agent/guest_system.hpp"
#include "agent/session_bridge.hpp"
#include "agent/small_file.hpp"
#include "agent/transport.hpp"
#include "inspect/inspect.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <optional>
#include <span>
#include <string>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <system_error>
#include <termios.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {
namespace {

void say(const std::string& text) {
    const std::string line = "bulkhead-agent: " + text + "\n";
    static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

void fillRandom(std::span<std::byte> buffer) {
    std::size_t have = 0;
    while (have < buffer.size()) {
        const ssize_t count = ::getrandom(buffer.data() + have, buffer.size() - have, 0);
        if (count < 0 && errno != EINTR) {
            throw std::system_error(errno, std::generic_category(), "getrandom");
        }
        have += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
}

/// An ordinary process (tests): nothing outside of it changes.
class ProcessSystem final : public System {
public:
    [[nodiscard]] bool canChangeAccount() const override { return false; }
    int setClock(std::int64_t) override { return EPERM; }
    int setTimeZone(const std::string&) override { return EPERM; }
    int quiesce() override { return 0; }
    int rejuvenate(const RejuvenateRequest&) override { return EPERM; }
    int settleDisks(bool) override { return 0; }
    void releaseDisks() override {}
    int setHostname(const std::string&) override { return EPERM; }
    void powerOff(std::chrono::milliseconds) override {}
};

UniqueFd watchForChildren() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// What the agent runs on, and what it does besides.
struct Duties {
    System& system;
    std::function<void()> lateWork;                 ///< once, when the first session has got its first answers
    std::function<void(const std::string&)> report; ///< lines for whoever looks into the guest
    protocol::Session::TokenSource tokenSource;     ///< where the host has put its token for this machine
};

/// Where bulkhead-session connects: of a machine in its usual place, for the domain's user; of an ordinary process
/// where its environment says, for whoever runs it.
Result<SessionSocket> openSessionSocket(const System& system) {
    if (!system.canChangeAccount()) {
        const char* const path = std::getenv("BULKHEAD_SESSION_SOCKET");
        return path == nullptr ? fail(ErrorCode::NotFound, "No socket for a session is named")
                               : listenForSession(path, ::getuid(), ::getgid());
    }
    const auto user = systemAccount("user");
    return listenForSession("/run/bulkhead/session.sock", user ? user->uid : 0, user ? user->gid : 0);
}

/// Serves until the line ends or a shutdown was asked for; then its grace.
std::optional<std::chrono::milliseconds> serve(boot::Channel channel, bool isSerial, const protocol::Token& token,
                                               const Duties& duties) {
    EventLoop loop;
    const UniqueFd children = watchForChildren();
    std::optional<SessionBridge> bridge;
    if (auto socket = openSessionSocket(duties.system)) {
        bridge.emplace(loop, std::move(*socket));
    } else if (socket.error().code != ErrorCode::NotFound) {
        duties.report("no window of this domain can be shown: " + socket.error().message);
    }
    bool first = true;
    Connections host({.loop = loop,
                      .system = duties.system,
                      .random = fillRandom,
                      .onReady =
                          [&] {
                              if (std::exchange(first, false)) {
                                  loop.after(std::chrono::milliseconds(100), duties.lateWork);
                              }
                          },
                      .report = duties.report,
                      .tokenSource = duties.tokenSource,
                      .bridge = bridge ? &*bridge : nullptr},
                     token);
    if (auto* const listener = std::get_if<Listener>(&channel)) {
        host.listen(std::move(*listener));
    } else {
        UniqueFd& line = std::get<UniqueFd>(channel);
        host.useLine(isSerial ? makeSerialTransport(std::move(line)) : makeSocketTransport(std::move(line)));
    }
    loop.watch(children.get(), EPOLLIN, [&](std::uint32_t) {
        signalfd_siginfo info{};
        while (::read(children.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        }
        host.reap();
    });
    bool leaving = false;
    loop.atEndOfRound([&] {
        const bool more = host.pump();
        if (host.isOver()) {
            loop.quit();
            return false;
        }
        if (host.shutdownWanted() && !leaving) {
            if (host.isFlushed()) {
                loop.quit();
                return false;
            }
            // A host that does not take the answer does not stop the shutdown it asked for.
            leaving = true;
            loop.after(std::chrono::milliseconds(500), [&loop] { loop.quit(); });
        } else if (leaving && host.isFlushed()) {
            loop.quit();
        }
        return more;
    });
    loop.run();
    host.dropAll();
    return host.shutdownWanted();
}

Result<protocol::Token> tokenFromFile(const std::string& path) {
    const auto text = readSmallFile(path, 4096);
    if (!text || text->size() != protocol::kTokenSize) {
        return fail(ErrorCode::InvalidArgument, "The token file " + path + " does not hold 32 bytes");
    }
    protocol::Token token;
    std::memcpy(token.data(), text->data(), token.size());
    return token;
}

int runAsProcess(Result<boot::Channel> channel, const std::string& tokenFile) {
    const auto token = tokenFromFile(tokenFile);
    if (!token || !channel) {
        say(token ? channel.error().message : token.error().message);
        return 2;
    }
    ProcessSystem system;
    serve(std::move(*channel), false, *token, {.system = system, .lateWork = [] {}, .report = say, .tokenSource = {}});
    return 0;
}

/// Nothing can be done without the channel: as the first process power off, so that the host sees a machine that ended,
/// and why on its console.
[[noreturn]] void giveUp(const std::string& why) {
    say("cannot start the domain: " + why);
    if (::getpid() == 1) {
        ::sync();
        ::reboot(RB_POWER_OFF);
    }
    ::_exit(1);
}

/// The host asks whether its acceleration boots a stock kernel to user space (daemon/hypervisor/acceleration_probe):
/// that this program runs is the answer.
[[noreturn]] void answerSelfTest() {
    const UniqueFd console(::open("/dev/ttyS0", O_WRONLY | O_CLOEXEC | O_NOCTTY));
    constexpr std::string_view kAnswer = "BULKHEAD-SELFTEST-OK\n";
    static_cast<void>(!::write(console.get(), kAnswer.data(), kAnswer.size()));
    ::tcdrain(console.get());
    ::reboot(RB_POWER_OFF);
    ::_exit(1);
}

/// Serves the host until it wants the machine to end, and ends it.
template <typename Machine> [[noreturn]] void serveMachine(const std::function<void()>& lateWork) {
    auto token = boot::readToken();
    if (!token) {
        giveUp(token.error().message);
    }
    auto channel = boot::openChannel();
    if (!channel) {
        giveUp(channel.error().message);
    }
    // The domain is lost without the agent; its children get the ordinary score back.
    writeKernelFile("/proc/self/oom_score_adj", "-1000");
    // With the kernel's time stamp, for whoever measures a start (dmesg).
    writeKernelFile("/dev/kmsg", "<6>bulkhead-agent: listens\n");
    Machine system;
    const auto grace = serve(
        std::move(*channel), true, *token,
        {.system = system,
         .lateWork = lateWork,
         .report = [](const std::string& text) { writeKernelFile("/dev/kmsg", "<4>bulkhead-agent: " + text + "\n"); },
         .tokenSource = []() -> std::optional<protocol::Token> {
             const auto now = boot::readToken();
             return now ? std::optional(*now) : std::nullopt;
         }});
    ::explicit_bzero(token->data(), token->size());
    system.powerOff(grace.value_or(std::chrono::milliseconds(0)));
    ::_exit(0);
}

[[noreturn]] void runAsInit() {
    if (const auto done = boot::prepareKernel(); !done) {
        giveUp(done.error().message);
    }
    if (boot::isSelfTest()) {
        answerSelfTest();
    }
    const bool handsOver = boot::handsOver();
    if (const auto done = boot::enterSystem(); !done) {
        giveUp(done.error().message);
    }
    if (handsOver) {
        giveUp(boot::handOver().error().message);
    }
    if (const auto done = boot::prepareSystem(); !done) {
        giveUp(done.error().message);
    }
    serveMachine<GuestSystem>(boot::loadLateModules);
}

/// One of systemd's services. Its failure ends the machine, see bulkhead-agent.service.
[[noreturn]] void runAsUnit() {
    serveMachine<UnitSystem>([] {});
}

int usage() {
    say("usage: bulkhead-agent --connect-fd N|--listen-unix PATH --token-file FILE, or --unit as a service "
        "(or, as the first process, nothing); bulkhead-agent inspect [--deep]|facts");
    return 2;
}

int run(std::span<char*> arguments) {
    if (::getpid() == 1) {
        ::reboot(RB_DISABLE_CAD);
        runAsInit();
    }
    boot::openStandardDescriptors();
    const std::string_view word = arguments.size() > 1 ? arguments[1] : "";
    if (word == "--unit" && arguments.size() == 2) {
        runAsUnit();
    }
    if (word == "facts" && arguments.size() == 2) {
        return inspect::reportFacts(STDOUT_FILENO);
    }
    const bool isDeep = arguments.size() == 3 && std::string_view(arguments[2]) == "--deep";
    if (word == "inspect" && (arguments.size() == 2 || isDeep)) {
        return inspect::inspectDisks(isDeep, STDOUT_FILENO);
    }
    if (arguments.size() != 5 || std::string_view(arguments[3]) != "--token-file") {
        return usage();
    }
    if (std::string_view(arguments[1]) == "--listen-unix") {
        return runAsProcess(
            listenUnix(arguments[2]).map([](Listener&& listener) { return boot::Channel(std::move(listener)); }),
            arguments[4]);
    }
    if (std::string_view(arguments[1]) != "--connect-fd") {
        return usage();
    }
    const std::string_view number = arguments[2];
    int fd = -1;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), fd);
    if (error != std::errc{} || end != number.data() + number.size() || fd <= STDERR_FILENO) {
        return usage();
    }
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return runAsProcess(boot::Channel(UniqueFd(fd)), arguments[4]);
}

} // namespace
} // namespace bulkhead::agent

int main(int argc, char** argv) {
    try {
        return bulkhead::agent::run(std::span(argv, static_cast<std::size_t>(argc)));
    } catch (const std::exception& fault) {
        bulkhead::agent::say(std::string("fault: ") + fault.what());
        if (::getpid() == 1) {
            ::sync();
            ::reboot(RB_POWER_OFF);
        }
        return 1;
    }
}

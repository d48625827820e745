// SPDX-License-Identifier: Apache-2.0
#include "link/channel_links.hpp"

#include "base/log.hpp"
#include "link/guest_socket.hpp"
#include "link/host_time_zone.hpp"
#include "link/unix_socket.hpp"
#include "process/child_reaper.hpp"
#include "process/poller.hpp"
#include "process/spawn.hpp"

#include "protocol/agent.pb.h"
#include "protocol/limits.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace bulkhead::link {
namespace {

using namespace std::chrono_literals;
using channel::FromChannelKind;
using channel::ToChannel;
using channel::ToChannelKind;

constexpr auto kAnswerTimeout = 10s;
constexpr auto kLongAnswerTimeout = 65s; ///< longer than the channel process waits for the guest
constexpr std::size_t kEntropyBytes = 64;
constexpr auto kRetryPause = 100ms;

std::chrono::milliseconds leftUntil(std::chrono::steady_clock::time_point deadline) {
    return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()));
}

/// Not what an administrator or a full memory does to it (SIGKILL, SIGTERM): the marks of an attack that failed, or of
/// one that succeeded and then met the system call filter.
bool isCrash(const process::ExitStatus& status) {
    switch (status.signal) {
    case SIGSYS:
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGTRAP:
    case SIGABRT:
        return true;
    default:
        return false;
    }
}

std::int64_t realtimeNs() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// A pipe that holds the token and is at its end behind it.
Result<UniqueFd> tokenPipe(const core::GuestToken& token) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return failErrno("pipe", errno);
    }
    UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    if (::write(writer.get(), token.data(), token.size()) != static_cast<ssize_t>(token.size())) {
        return failErrno("writing the token", errno);
    }
    return reader;
}

} // namespace

ChannelLinks::ChannelLinks(Places places, process::Poller& poller, process::ChildReaper& reaper,
                           core::GuestLinkEvents& events)
    : m_places(std::move(places))
    , m_records(m_places.sockets)
    , m_poller(poller)
    , m_reaper(reaper)
    , m_events(events) {
    std::filesystem::create_directories(m_places.sockets);
    std::filesystem::permissions(m_places.sockets, std::filesystem::perms::owner_all);
}

ChannelLinks::~ChannelLinks() = default;

std::filesystem::path ChannelLinks::socketPath(const InstanceId& instance) const {
    return m_places.sockets / (instance.text() + ".sock");
}

Result<UniqueFd> ChannelLinks::connectGuest(const core::GuestLinkSpec& spec, Deadline deadline,
                                            const std::stop_token& cancel) {
    switch (spec.transport) {
    case core::Transport::VirtioSerial:
        return connectUnix(spec.agentSocket, SOCK_STREAM);
    case core::Transport::Vsock:
        if (!spec.cid) {
            return fail(ErrorCode::HostFailure, "the instance has no AF_VSOCK address");
        }
        return connectWhenReady(
            [cid = *spec.cid](std::chrono::milliseconds atMost, const std::stop_token& stop) {
                return connectVsockOnce(cid, protocol::kVsockPort, atMost, stop);
            },
            leftUntil(deadline), cancel);
    }
    return fail(ErrorCode::HostFailure, "unknown transport");
}

Status ChannelLinks::startProcess(const core::GuestLinkSpec& spec, const UniqueFd& guest) {
    auto control = listenSeqPacket(socketPath(spec.instance));
    if (!control) {
        return fail(control.error());
    }
    auto token = tokenPipe(spec.token);
    if (!token) {
        return fail(token.error());
    }
    process::ProcessSpec program;
    program.program = m_places.program;
    program.arguments = {spec.instance.text()};
    program.identity = process::Identity{spec.channelUid, spec.channelUid};
    program.descriptors = {{.child = STDERR_FILENO, .ours = STDERR_FILENO},
                           {.child = channel::kGuestFd, .ours = guest.get()},
                           {.child = channel::kControlListenFd, .ours = control->get()},
                           {.child = channel::kTokenFd, .ours = token->get()}};
    program.newSession = true;
    auto child = process::spawn(program);
    if (!child) {
        return fail(child.error().in("starting the channel process"));
    }
    return m_reaper.keep(
        std::move(*child), [this, instance = spec.instance](std::optional<process::ExitStatus> status) {
            if (!status || status->isSuccess()) {
                return;
            }
            log::error("a channel process failed", {{"INSTANCE", instance.text()}, {"STATUS", status->text()}});
            if (isCrash(*status)) {
                const std::lock_guard lock(m_mutex);
                m_crashed[instance] = status->text();
            }
        });
}

Result<ChannelLinks::Link> ChannelLinks::connect(const InstanceId& instance) {
    auto socket = connectUnix(socketPath(instance), SOCK_SEQPACKET);
    if (!socket) {
        return fail(socket.error());
    }
    Link link;
    link.isLive = std::make_shared<std::atomic<bool>>(false);
    ChannelConnection::Events events;
    events.execFinished = [this, instance](std::uint64_t exec, unsigned remaining) {
        m_events.onExecFinished(instance, exec, remaining);
    };
    events.windowsChanged = [this, instance](bool areOpen) { m_events.onWindowsChanged(instance, areOpen); };
    events.lost = [this, instance, isLive = link.isLive](const core::LinkLoss& loss) {
        if (*isLive) {
            if (loss.isViolation) {
                m_records.forget(instance); // so that a later daemon does not speak to it again either
            }
            m_events.onLinkLost(instance, loss);
        }
    };
    link.connection = std::make_shared<ChannelConnection>(std::move(*socket), m_poller, std::move(events));
    const std::lock_guard lock(m_mutex);
    m_links[instance] = link;
    return link;
}

/// Over vsock the first try may fail though all is well: any process of this host can connect to the agent's port, and
/// the agent, which lets few wait at once, drops the ones that have not proved themselves.
Status ChannelLinks::establish(const core::GuestLinkSpec& spec, std::chrono::milliseconds timeout,
                               const std::stop_token& cancel) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (true) {
        const auto guest = connectGuest(spec, deadline, cancel);
        if (!guest) {
            return fail(guest.error());
        }
        if (auto started = startProcess(spec, *guest); !started) {
            return started;
        }
        auto link = connect(spec.instance);
        if (!link) {
            return fail(link.error());
        }
        auto ready = link->connection->waitReady(leftUntil(deadline), cancel);
        if (ready) {
            *link->isLive = true;
            link->connection->setClock();
            if (!spec.hostname.empty()) {
                link->connection->setHostname(spec.hostname);
            }
        }
        // Also when it was lost just before it was live, since then no event tells of it.
        const auto loss = link->connection->loss();
        if (ready && !loss) {
            return {};
        }
        endProcess(spec.instance);
        if (!loss || loss->isViolation || spec.transport != core::Transport::Vsock || cancel.stop_requested() ||
            leftUntil(deadline) <= kRetryPause) {
            return loss ? fail(ErrorCode::GuestFailure, loss->reason) : ready;
        }
        log::notice("the connection to a guest was closed before it had proved itself; trying again",
                    {{"INSTANCE", spec.instance.text()}});
        std::this_thread::sleep_for(kRetryPause);
    }
}

Status ChannelLinks::open(const core::GuestLinkSpec& spec, std::chrono::milliseconds timeout, std::stop_token cancel) {
    if (auto kept = m_records.keep(spec); !kept) {
        return kept;
    }
    return establish(spec, timeout, cancel);
}

Status ChannelLinks::reopen(const InstanceId& instance, std::chrono::milliseconds timeout) {
    auto spec = m_records.read(instance);
    if (!spec) {
        return fail(spec.error());
    }
    {
        const std::lock_guard lock(m_mutex);
        if (const auto crashed = m_crashed.find(instance); crashed != m_crashed.end()) {
            return fail(ErrorCode::GuestFailure, "the channel process was " + crashed->second +
                                                     ", which the guest may have brought about; it is not spoken to "
                                                     "again");
        }
    }
    endProcess(instance);
    auto opened = establish(*spec, timeout, {});
    ::explicit_bzero(spec->token.data(), spec->token.size());
    return opened;
}

Result<core::AdoptedGuest> ChannelLinks::adopt(const InstanceId& instance) {
    auto link = connect(instance);
    if (!link) {
        return fail(link.error());
    }
    auto guest = link->connection->waitHello(kAnswerTimeout);
    if (!guest) {
        return guest;
    }
    *link->isLive = true;
    link->connection->setClock();
    if (const auto loss = link->connection->loss()) {
        return fail(ErrorCode::GuestFailure, loss->reason);
    }
    return guest;
}

Result<ChannelLinks::Connection> ChannelLinks::find(const InstanceId& instance) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_links.find(instance);
    if (found == m_links.end()) {
        return fail(ErrorCode::Unavailable, "there is no channel to this domain's guest");
    }
    return found->second.connection;
}

Result<core::ExecStreams> ChannelLinks::exec(const InstanceId& instance, const core::ExecRequest& request) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    agent::ExecRequest message;
    for (const auto& word : request.argv) {
        message.add_argv(word);
    }
    for (const auto& variable : request.environment) {
        message.add_environment(variable);
    }
    message.set_cwd(request.cwd);
    message.set_user(request.user);
    message.set_terminal(request.terminal);
    if (request.terminal) {
        message.mutable_window()->set_rows(request.rows);
        message.mutable_window()->set_columns(request.columns);
        message.set_term(request.term);
    }
    message.set_limit_processes(request.limitProcesses);
    const ToChannel record{.kind = ToChannelKind::Exec, .argument = static_cast<std::int64_t>(request.timeoutMs)};
    auto answer = (*connection)->ask(record, message.SerializeAsString(), kAnswerTimeout);
    if (!answer) {
        return fail(answer.error());
    }
    if (answer->record.kind != FromChannelKind::ExecAccepted || answer->descriptors.size() != 4) {
        return fail(ErrorCode::HostFailure, "the channel process gave a wrong answer");
    }
    core::ExecStreams streams;
    streams.id = answer->record.value[0];
    streams.control = std::move(answer->descriptors[0]);
    streams.input = std::move(answer->descriptors[1]);
    streams.output = std::move(answer->descriptors[2]);
    streams.error = std::move(answer->descriptors[3]);
    return streams;
}

Result<UniqueFd> ChannelLinks::openSession(const InstanceId& instance) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    auto answer = (*connection)->ask({.kind = ToChannelKind::OpenSession}, {}, kAnswerTimeout);
    if (!answer) {
        return answer.error().code == ErrorCode::InvalidArgument
                   ? fail(ErrorCode::WrongState, "its template has no desktop, so there are no windows")
                   : fail(answer.error());
    }
    if (answer->record.kind != FromChannelKind::SessionOpened || answer->descriptors.size() != 1) {
        return fail(ErrorCode::HostFailure, "the channel process gave a wrong answer");
    }
    return std::move(answer->descriptors[0]);
}

Result<core::GuestStatus> ChannelLinks::status(const InstanceId& instance) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const auto answer = (*connection)->ask({.kind = ToChannelKind::Status}, {}, kAnswerTimeout);
    if (!answer) {
        return fail(answer.error());
    }
    const auto& value = answer->record.value;
    return core::GuestStatus{.uptimeMs = value[0],
                             .memoryTotal = value[1],
                             .memoryAvailable = value[2],
                             .processes = value[3],
                             .systemTotal = value[4],
                             .systemAvailable = value[5],
                             .homeTotal = value[6],
                             .homeAvailable = value[7]};
}

Status ChannelLinks::setToHosts(const InstanceId& instance) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const auto answer =
        (*connection)->ask({.kind = ToChannelKind::SetClock, .argument = realtimeNs()}, hostTimeZone(), kAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

Status ChannelLinks::shutdown(const InstanceId& instance, std::chrono::milliseconds grace) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const auto answer =
        (*connection)->ask({.kind = ToChannelKind::Shutdown, .argument = grace.count()}, {}, kAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

Status ChannelLinks::quiesce(const InstanceId& instance) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const auto answer = (*connection)->ask({.kind = ToChannelKind::Quiesce}, {}, kLongAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

Status ChannelLinks::rejuvenate(const InstanceId& instance, const core::Rejuvenation& how) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    std::string entropy(kEntropyBytes, '\0');
    if (::getrandom(entropy.data(), entropy.size(), 0) != static_cast<ssize_t>(entropy.size())) {
        return failErrno("random numbers for a guest", errno);
    }
    agent::RejuvenateRequest request;
    request.set_entropy(entropy);
    request.set_realtime_ns(realtimeNs());
    request.set_mount_home(how.mountsHome);
    const auto answer =
        (*connection)->ask({.kind = ToChannelKind::Rejuvenate}, request.SerializeAsString(), kLongAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

Status ChannelLinks::freeze(const InstanceId& instance, const core::Picture& picture) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const ToChannel record{.kind = ToChannelKind::Freeze, .argument = picture.ofMemory ? 1 : 0};
    const auto answer = (*connection)->ask(record, {}, kLongAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

Status ChannelLinks::thaw(const InstanceId& instance) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const auto answer =
        (*connection)->ask({.kind = ToChannelKind::Thaw, .argument = realtimeNs()}, {}, kLongAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

void ChannelLinks::close(const InstanceId& instance) {
    endProcess(instance);
    m_records.forget(instance);
    const std::lock_guard lock(m_mutex);
    m_crashed.erase(instance);
}

void ChannelLinks::endProcess(const InstanceId& instance) {
    Connection connection;
    {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_links.find(instance); found != m_links.end()) {
            // From here on its end is no event.
            *found->second.isLive = false;
            connection = std::move(found->second.connection);
            m_links.erase(found);
        }
    }
    if (!connection) {
        // A process that an earlier daemon started and that was never adopted (an undone start).
        if (auto socket = connectUnix(socketPath(instance), SOCK_SEQPACKET); socket) {
            const ToChannel record{.kind = ToChannelKind::Close};
            [[maybe_unused]] const auto sent = ::send(socket->get(), &record, sizeof record, MSG_NOSIGNAL);
        }
    } else {
        connection->askToClose();
    }
    std::error_code ignored; // absence is fine
    std::filesystem::remove(socketPath(instance), ignored);
}

core::GuestUse ChannelLinks::useOf(const InstanceId& instance) {
    const auto connection = find(instance);
    return connection ? (*connection)->use() : core::GuestUse();
}

unsigned ChannelLinks::runningExecs(const InstanceId& instance) {
    const auto connection = find(instance);
    return connection ? (*connection)->runningExecs() : 0;
}

} // namespace bulkhead::link

// SPDX-License-Identifier: Apache-2.0
#include "link/channel_links.hpp"

#include "base/log.hpp"
#include "link/unix_socket.hpp"
#include "process/child_reaper.hpp"
#include "process/poller.hpp"
#include "process/spawn.hpp"

#include "protocol/agent.pb.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::link {
namespace {

using namespace std::chrono_literals;
using channel::FromChannelKind;
using channel::ToChannel;
using channel::ToChannelKind;

constexpr auto kAnswerTimeout = 10s;

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

Status ChannelLinks::startProcess(const core::GuestLinkSpec& spec) {
    auto guest = connectUnix(spec.agentSocket, SOCK_STREAM);
    if (!guest) {
        return fail(guest.error());
    }
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
                           {.child = channel::kGuestFd, .ours = guest->get()},
                           {.child = channel::kControlListenFd, .ours = control->get()},
                           {.child = channel::kTokenFd, .ours = token->get()}};
    program.newSession = true;
    auto child = process::spawn(program);
    if (!child) {
        return fail(child.error().in("starting the channel process"));
    }
    return m_reaper.keep(std::move(*child), [instance = spec.instance](std::optional<process::ExitStatus> status) {
        if (status && !status->isSuccess()) {
            log::error("a channel process failed", {{"INSTANCE", instance.text()}, {"STATUS", status->text()}});
        }
    });
}

Result<ChannelLinks::Connection> ChannelLinks::connect(const InstanceId& instance) {
    auto socket = connectUnix(socketPath(instance), SOCK_SEQPACKET);
    if (!socket) {
        return fail(socket.error());
    }
    ChannelConnection::Events events;
    events.execFinished = [this, instance](std::uint64_t exec, unsigned remaining) {
        m_events.onExecFinished(instance, exec, remaining);
    };
    events.lost = [this, instance](const std::string& reason) {
        // The end of a link that was closed is no loss.
        if (find(instance)) {
            m_events.onLinkLost(instance, reason);
        }
    };
    auto connection = std::make_shared<ChannelConnection>(std::move(*socket), m_poller, std::move(events));
    const std::lock_guard lock(m_mutex);
    m_connections[instance] = connection;
    return connection;
}

Status ChannelLinks::open(const core::GuestLinkSpec& spec, std::chrono::milliseconds timeout, std::stop_token cancel) {
    if (auto started = startProcess(spec); !started) {
        return started;
    }
    auto connection = connect(spec.instance);
    if (!connection) {
        return fail(connection.error());
    }
    return (*connection)->waitReady(timeout, std::move(cancel));
}

Result<unsigned> ChannelLinks::adopt(const InstanceId& instance) {
    auto connection = connect(instance);
    if (!connection) {
        return fail(connection.error());
    }
    return (*connection)->waitHello(kAnswerTimeout);
}

Result<ChannelLinks::Connection> ChannelLinks::find(const InstanceId& instance) {
    const std::lock_guard lock(m_mutex);
    const auto found = m_connections.find(instance);
    if (found == m_connections.end()) {
        return fail(ErrorCode::Unavailable, "there is no channel to this domain's guest");
    }
    return found->second;
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

Status ChannelLinks::shutdown(const InstanceId& instance, std::chrono::milliseconds grace) {
    auto connection = find(instance);
    if (!connection) {
        return fail(connection.error());
    }
    const auto answer =
        (*connection)->ask({.kind = ToChannelKind::Shutdown, .argument = grace.count()}, {}, kAnswerTimeout);
    return answer ? Status{} : fail(answer.error());
}

void ChannelLinks::close(const InstanceId& instance) {
    Connection connection;
    {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_connections.find(instance); found != m_connections.end()) {
            connection = std::move(found->second);
            m_connections.erase(found);
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

unsigned ChannelLinks::runningExecs(const InstanceId& instance) {
    const auto connection = find(instance);
    return connection ? (*connection)->runningExecs() : 0;
}

} // namespace bulkhead::link

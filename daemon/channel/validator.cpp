// SPDX-License-Identifier: Apache-2.0
#include "channel/validator.hpp"

#include "protocol/agent.pb.h"
#include "protocol/limits.hpp"

#include <algorithm>

namespace bulkhead::channel {

namespace {

using exec_stream::ClientEventKind;

constexpr std::uint32_t kMaxPid = 1U << 22; // the kernel's own limit
constexpr std::uint32_t kMaxSignal = 64;
constexpr std::int32_t kMaxErrno = 4095;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;
constexpr std::uint64_t kMaxUptimeMs = std::uint64_t{1} << 42; // more than a century
constexpr std::size_t kMaxVersionText = 64;

tl::unexpected<protocol::Violation> bad() {
    return tl::unexpected(protocol::Violation::BadMessage);
}

bool isErrno(std::int32_t number) {
    return number >= 0 && number <= kMaxErrno;
}

bool isFeatureName(const std::string& name) {
    return !name.empty() && name.size() <= protocol::kMaxFeatureName && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

Checked<ExecNews> endOf(const agent::ExecExited& exited) {
    if (exited.signal() == 0) {
        if (exited.status() > 255 || exited.core_dumped()) {
            return bad();
        }
        return ProgramEnded{ClientEventKind::Exited, exited.status(), 0};
    }
    if (exited.signal() > kMaxSignal || exited.status() != 0) {
        return bad();
    }
    return ProgramEnded{ClientEventKind::Signalled, exited.signal(), exited.core_dumped() ? 1 : 0};
}

Checked<GuestHello> helloOf(const agent::Hello& hello) {
    const auto& features = hello.features();
    if (hello.version() != protocol::kProtocolVersion ||
        static_cast<std::size_t>(features.size()) > protocol::kMaxFeatures ||
        !std::ranges::all_of(features, isFeatureName) || hello.agent_version().size() > kMaxVersionText) {
        return bad();
    }
    return GuestHello{{features.begin(), features.end()}, hello.agent_version()};
}

Checked<GuestStatus> statusOf(const agent::StatusReply& status) {
    const auto isUse = [](std::uint64_t total, std::uint64_t available) {
        return total <= kMaxBytes && available <= total;
    };
    if (status.uptime_ms() > kMaxUptimeMs || status.processes() > kMaxPid ||
        !isUse(status.memory_total(), status.memory_available()) ||
        !isUse(status.system().total(), status.system().available()) ||
        !isUse(status.home().total(), status.home().available())) {
        return bad();
    }
    return GuestStatus{.uptimeMs = status.uptime_ms(),
                       .memoryTotal = status.memory_total(),
                       .memoryAvailable = status.memory_available(),
                       .processes = status.processes(),
                       .systemTotal = status.system().total(),
                       .systemAvailable = status.system().available(),
                       .homeTotal = status.home().total(),
                       .homeAvailable = status.home().available()};
}

Checked<ExecNews> execNewsOf(const std::string& bytes) {
    agent::ExecEvent event;
    if (!event.ParseFromString(bytes)) {
        return bad();
    }
    switch (event.kind_case()) {
    case agent::ExecEvent::kStarted:
        if (event.started().pid() == 0 || event.started().pid() > kMaxPid) {
            return bad();
        }
        return ProgramStarted{event.started().pid()};
    case agent::ExecEvent::kExited:
        return endOf(event.exited());
    case agent::ExecEvent::kFailed:
        if (!agent::ExecFailed::Reason_IsValid(event.failed().reason()) || !isErrno(event.failed().error_number())) {
            return bad();
        }
        return ProgramEnded{ClientEventKind::Failed, static_cast<std::uint32_t>(event.failed().reason()),
                            event.failed().error_number()};
    case agent::ExecEvent::KIND_NOT_SET:
        break;
    }
    return bad();
}

Checked<GuestReply> replyOf(const std::string& bytes) {
    agent::Reply reply;
    if (!reply.ParseFromString(bytes) || !isErrno(reply.error_number())) {
        return bad();
    }
    const bool hasBody = reply.kind_case() != agent::Reply::KIND_NOT_SET;
    if (hasBody != (reply.error_number() == 0)) {
        return bad();
    }
    GuestReply checked{.id = reply.id(), .errorNumber = reply.error_number(), .body = {}};
    switch (reply.kind_case()) {
    case agent::Reply::kHello: {
        auto hello = helloOf(reply.hello());
        if (!hello || reply.id() != 0) {
            return bad();
        }
        checked.body = std::move(*hello);
        break;
    }
    case agent::Reply::kStatus: {
        const auto status = statusOf(reply.status());
        if (!status) {
            return bad();
        }
        checked.body = *status;
        break;
    }
    case agent::Reply::kDone:
        checked.body = GuestDone{};
        break;
    case agent::Reply::KIND_NOT_SET:
        break;
    }
    return checked;
}

} // namespace

Checked<ExecNews> checkExecEvent(const GuestMessage& message) {
    return message.validate(execNewsOf);
}
Checked<GuestReply> checkReply(const GuestMessage& message) {
    return message.validate(replyOf);
}

} // namespace bulkhead::channel

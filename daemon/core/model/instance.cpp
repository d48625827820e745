// SPDX-License-Identifier: Apache-2.0
#include "core/model/instance.hpp"

#include "base/escaping.hpp"
#include "core/model/exec_check.hpp"
#include "core/model/finding.hpp"
#include "core/model/template.hpp"

namespace bulkhead::core {

std::string_view nameOf(Acceleration acceleration) {
    switch (acceleration) {
    case Acceleration::Kvm:
        return "kvm";
    case Acceleration::Emulation:
        return "emulation";
    }
    return "unknown";
}

std::string_view nameOf(Transport transport) {
    switch (transport) {
    case Transport::VirtioSerial:
        return "virtio-serial";
    case Transport::Vsock:
        return "vsock";
    }
    return "unknown";
}

std::string_view nameOf(Audio audio) {
    switch (audio) {
    case Audio::Off:
        return "off";
    case Audio::Out:
        return "out";
    }
    return "unknown";
}

std::optional<Audio> audioFrom(std::string_view name) {
    for (const auto audio : {Audio::Off, Audio::Out}) {
        if (nameOf(audio) == name) {
            return audio;
        }
    }
    return std::nullopt;
}

std::string_view nameOf(DiskFormat format) {
    switch (format) {
    case DiskFormat::Raw:
        return "raw";
    case DiskFormat::Qcow2:
        return "qcow2";
    }
    return "unknown";
}

std::string_view nameOf(InstancePhase phase) {
    switch (phase) {
    case InstancePhase::Starting:
        return "starting";
    case InstancePhase::Running:
        return "running";
    case InstancePhase::Stopping:
        return "stopping";
    }
    return "unknown";
}

std::string_view nameOf(FindingStatus status) {
    switch (status) {
    case FindingStatus::Ok:
        return "ok";
    case FindingStatus::Warning:
        return "warning";
    case FindingStatus::Problem:
        return "problem";
    }
    return "unknown";
}

Status checkExecRequest(const ExecRequest& request) {
    const auto bad = [](std::string text) { return fail(ErrorCode::InvalidArgument, std::move(text)); };
    const auto hasNul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    if (request.argv.empty() || request.argv.front().empty()) {
        return bad("no command given");
    }
    if (request.argv.size() > kMaxArguments) {
        return bad("the command has " + std::to_string(request.argv.size()) + " words; at most " +
                   std::to_string(kMaxArguments) + " are possible");
    }
    if (request.environment.size() > kMaxEnvironment) {
        return bad("over " + std::to_string(kMaxEnvironment) + " environment variables");
    }
    std::size_t size = request.cwd.size() + request.user.size() + request.term.size();
    for (const auto& word : request.argv) {
        size += word.size() + 4;
        if (hasNul(word)) {
            return bad("the command holds a NUL character");
        }
    }
    for (const auto& variable : request.environment) {
        size += variable.size() + 4;
        const auto equals = variable.find('=');
        if (equals == std::string::npos || equals == 0 || hasNul(variable)) {
            return bad("\"" + escapeUntrusted(variable, 40) + "\" is not NAME=VALUE");
        }
    }
    if (size > kMaxExecBytes) {
        return bad("command and environment are " + std::to_string(size) + " bytes long; at most " +
                   std::to_string(kMaxExecBytes) + " are possible. Put long input on standard input instead");
    }
    constexpr std::size_t kMaxUserName = 32;
    if (request.user.size() > kMaxUserName) {
        return bad("the user name is too long");
    }
    if (!request.cwd.empty() && request.cwd.front() != '/') {
        return bad("the directory \"" + escapeUntrusted(request.cwd, 80) +
                   "\" must begin with / (it is a path in the guest)");
    }
    constexpr std::uint32_t kMaxWindow = 10000;
    if (request.rows > kMaxWindow || request.columns > kMaxWindow) {
        return bad("the window is larger than 10000 rows or columns");
    }
    return {};
}

std::string_view nameOf(TemplateInit init) {
    switch (init) {
    case TemplateInit::Agent:
        return "agent";
    case TemplateInit::Systemd:
        return "systemd";
    }
    return "unknown";
}

std::optional<TemplateInit> templateInitFrom(std::string_view name) {
    for (const auto init : {TemplateInit::Agent, TemplateInit::Systemd}) {
        if (nameOf(init) == name) {
            return init;
        }
    }
    return std::nullopt;
}

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#include "core/model/domain.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <array>

namespace bulkhead::core {
namespace {

constexpr std::size_t kMaxNameLength = 31;
constexpr std::string_view kDisposablePrefix = "disp-";

bool isSimpleName(std::string_view name) {
    const auto isLower = [](char c) { return c >= 'a' && c <= 'z'; };
    const auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
    return !name.empty() && name.size() <= kMaxNameLength && isLower(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return isLower(c) || isDigit(c) || c == '-'; });
}

} // namespace

std::string_view nameOf(DomainKind kind) {
    switch (kind) {
    case DomainKind::App:
        return "app";
    case DomainKind::Disposable:
        return "disposable";
    case DomainKind::Standalone:
        return "standalone";
    }
    return "unknown";
}

std::string_view nameOf(DomainState state) {
    switch (state) {
    case DomainState::Stopped:
        return "stopped";
    case DomainState::Starting:
        return "starting";
    case DomainState::Running:
        return "running";
    case DomainState::Paused:
        return "paused";
    case DomainState::Suspended:
        return "suspended";
    case DomainState::Stopping:
        return "stopping";
    case DomainState::Failed:
        return "failed";
    }
    return "unknown";
}

std::string_view nameOf(DomainEvent event) {
    switch (event) {
    case DomainEvent::StartRequested:
        return "start requested";
    case DomainEvent::AgentReady:
        return "agent ready";
    case DomainEvent::StartFailed:
        return "start failed";
    case DomainEvent::StartCancelled:
        return "start cancelled";
    case DomainEvent::FailureDismissed:
        return "failure dismissed";
    case DomainEvent::StopRequested:
        return "stop requested";
    case DomainEvent::EmulatorGone:
        return "emulator gone";
    case DomainEvent::ChannelLost:
        return "channel lost";
    case DomainEvent::PauseRequested:
        return "pause requested";
    case DomainEvent::ResumeRequested:
        return "resume requested";
    case DomainEvent::MemoryKept:
        return "memory kept";
    case DomainEvent::MemoryDropped:
        return "memory dropped";
    }
    return "unknown";
}

Status checkSimpleName(std::string_view what, std::string_view name) {
    if (isSimpleName(name)) {
        return {};
    }
    const std::string shown = escapeUntrusted(name, 40);
    return fail(ErrorCode::InvalidArgument,
                "\"" + shown + "\" is not a " + std::string(what) +
                    " name; use a lower-case letter, then up to 30 lower-case letters, digits or dashes");
}

Status checkDomainName(std::string_view name) {
    if (auto simple = checkSimpleName("domain", name); !simple) {
        return simple;
    }
    constexpr std::array<std::string_view, 3> kReserved{"host", "dom0", "now"};
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + std::string(name) + "\" is a reserved word; choose another name");
    }
    if (name.starts_with(kDisposablePrefix)) {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + std::string(name) + "\": names that begin with disp- belong to disposables");
    }
    return {};
}

std::string disposableName(const DomainId& id) {
    return std::string(kDisposablePrefix) + id.compact().substr(0, 8);
}

std::optional<DomainState> nextState(DomainState state, DomainEvent event) {
    using S = DomainState;
    using E = DomainEvent;
    switch (event) {
    case E::StartRequested:
        return state == S::Stopped || state == S::Failed || state == S::Suspended ? std::optional(S::Starting)
                                                                                  : std::nullopt;
    case E::AgentReady:
        return state == S::Starting ? std::optional(S::Running) : std::nullopt;
    case E::StartFailed:
        return state == S::Starting ? std::optional(S::Failed) : std::nullopt;
    case E::StartCancelled:
        return state == S::Starting ? std::optional(S::Stopped) : std::nullopt;
    case E::FailureDismissed:
        return state == S::Failed ? std::optional(S::Stopped) : std::nullopt;
    case E::StopRequested:
        return state == S::Running || state == S::Paused ? std::optional(S::Stopping) : std::nullopt;
    case E::EmulatorGone:
        switch (state) {
        case S::Stopping:
            return S::Stopped;
        case S::Starting:
        case S::Running:
        case S::Paused:
            return S::Failed;
        case S::Stopped:
        case S::Suspended:
        case S::Failed:
            return std::nullopt;
        }
        return std::nullopt;
    case E::ChannelLost:
        // The emulator is cut as well (LifecycleService): what cannot be spoken to cannot be judged.
        return state == S::Running || state == S::Paused ? std::optional(S::Failed) : std::nullopt;
    case E::PauseRequested:
        return state == S::Running ? std::optional(S::Paused) : std::nullopt;
    case E::ResumeRequested:
        return state == S::Paused ? std::optional(S::Running) : std::nullopt;
    case E::MemoryKept:
        return state == S::Stopped || state == S::Failed ? std::optional(S::Suspended) : std::nullopt;
    case E::MemoryDropped:
        return state == S::Suspended ? std::optional(S::Stopped) : std::nullopt;
    }
    return std::nullopt;
}

bool hasEmulator(DomainState state) {
    switch (state) {
    case DomainState::Starting:
    case DomainState::Running:
    case DomainState::Paused:
    case DomainState::Stopping:
        return true;
    case DomainState::Stopped:
    case DomainState::Suspended:
    case DomainState::Failed:
        return false;
    }
    return false;
}

} // namespace bulkhead::core

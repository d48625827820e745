// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/untrusted.hpp"
#include "dbus/interfaces/exec_stream.hpp"
#include "protocol/session.hpp"

#include <cstdint>
#include <string>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

/// The only way from the guest's messages to values that the rest of the program uses. Rejects, never repairs.
namespace bulkhead::channel {

/// Bytes of one message, as they came.
using GuestMessage = Untrusted<std::string>;
template <class T> using Checked = tl::expected<T, protocol::Violation>;

struct ProgramStarted {
    std::uint32_t pid;
};
/// How a command ended, as the client is told: Exited, Signalled or Failed.
struct ProgramEnded {
    exec_stream::ClientEventKind kind;
    std::uint32_t a;
    std::int32_t b;
};
using ExecNews = std::variant<ProgramStarted, ProgramEnded>;

struct GuestHello {
    std::vector<std::string> features;
    std::string agentVersion; ///< guest text: escape before it is shown
};
struct GuestStatus {
    std::uint64_t uptimeMs;
    std::uint64_t memoryTotal; ///< bytes, as all below
    std::uint64_t memoryAvailable;
    std::uint64_t processes;
    std::uint64_t systemTotal;
    std::uint64_t systemAvailable;
    std::uint64_t homeTotal;
    std::uint64_t homeAvailable;
};
struct GuestDone {};
struct GuestReply {
    std::uint64_t id;
    std::int32_t errorNumber; ///< 0 exactly when there is a body
    std::variant<std::monostate, GuestHello, GuestStatus, GuestDone> body;
};

[[nodiscard]] Checked<ExecNews> checkExecEvent(const GuestMessage& message);
[[nodiscard]] Checked<GuestReply> checkReply(const GuestMessage& message);

} // namespace bulkhead::channel

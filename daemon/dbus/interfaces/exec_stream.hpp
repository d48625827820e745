// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// What travels over the `control` descriptor of org.bulkhead1.Domain.Exec: fixed records, one per SOCK_SEQPACKET
/// packet, in native byte order, between bulkhead-channel and the client. Part of the contract, like the XML beside it.
namespace bulkhead::exec_stream {

// A client gets four descriptors for an exec: `control` (SOCK_SEQPACKET, these records), `input` (write end; shutdown =
// end of file), `output` and `error` (read ends; with a terminal `error` is at its end from the start). All are
// SOCK_STREAM sockets but control. They stay good when the daemon restarts. Closing control before the end hangs the
// program up: SIGHUP, then SIGKILL after 5 s.

/// The longest wall clock limit of an exec (30 days), in milliseconds.
constexpr std::int64_t kLongestTimeoutMs = std::int64_t{30} * 24 * 3600 * 1000;

enum class ClientRequestKind : std::uint32_t { Signal = 1, WindowSize = 2 };
struct ClientRequest {
    ClientRequestKind kind{};
    std::uint32_t a = 0; ///< signal number, or rows
    std::uint32_t b = 0; ///< columns
};

enum class ClientEventKind : std::uint32_t {
    Started = 1,   ///< a = pid in the guest
    Exited = 2,    ///< a = status 0..255
    Signalled = 3, ///< a = signal number, b = 1 if a core was dumped
    Failed = 4,    ///< a = bulkhead.agent.ExecFailed.Reason, b = errno of the guest
    TimedOut = 5,  ///< the wall clock limit was reached and the program killed
    Lost = 6,      ///< the guest is gone: a = LostReason, b = Violation
};
struct ClientEvent {
    ClientEventKind kind{};
    std::uint32_t a = 0;
    std::int32_t b = 0;
};

static_assert(sizeof(ClientRequest) == 12 && sizeof(ClientEvent) == 12);

} // namespace bulkhead::exec_stream

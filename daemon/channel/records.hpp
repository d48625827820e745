// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

/// Fixed records between bulkheadd and bulkhead-channel (those of the clients: dbus/interfaces/exec_stream.hpp). All
/// travel over SOCK_SEQPACKET Unix sockets on one machine, one record per packet, in native byte order. The daemon sees
/// nothing else of a guest. A packet whose size is not that of its record ends the connection.
namespace bulkhead::channel {

// ---- daemon <-> bulkhead-channel -----------------------------------------------------------------------------------
// The daemon binds and listens at <runtime>/channels/<instance>.sock (root only), hands the listening descriptor to
// the channel process, and connects. After a daemon restart it connects again: the channel process lives on. One
// daemon connection at a time; a new one replaces the old. Peers other than uid 0 (or the uid that started the process)
// are dropped.

enum class ToChannelKind : std::uint32_t {
    Exec = 1,         ///< followed in the same packet by a serialised bulkhead.agent.ExecRequest (exec_id ignored)
    Status = 2,       ///< answered by FromChannelKind::Status
    Shutdown = 3,     ///< orderly power off; `argument` = grace in milliseconds
    SetClock = 4,     ///< `argument` = CLOCK_REALTIME in nanoseconds; the name of a time zone may follow in the packet
    Close = 5,        ///< end the process
    OpenSession = 6,  ///< a session stream for a client (dbus/interfaces/session_stream.hpp)
    Quiesce = 7,      ///< before a picture of the guest's memory is taken
    Rejuvenate = 8,   ///< followed in the same packet by a serialised bulkhead.agent.RejuvenateRequest
    Freeze = 9,       ///< before a picture of the running guest is taken; `argument` = 1: of its memory, too, else 0
    Thaw = 10,        ///< after it; `argument` = CLOCK_REALTIME in nanoseconds
    SetHostname = 11, ///< what the guest is to call itself follows in the same packet
};

struct ToChannel {
    ToChannelKind kind{};
    std::uint32_t reserved = 0;
    std::uint64_t request = 0; ///< echoed in the answer
    std::int64_t argument = 0; ///< Exec: wall clock limit in milliseconds, 0 = none
};

enum class FromChannelKind : std::uint32_t {
    Hello = 1, ///< first on each connection. a = 1 if the session is ready, b = number of running execs, value[0] =
               ///< WindowsState, value[1] = WindowsOpen
    Ready = 2, ///< the guest has proved the token and said hello. a = protocol version
    ExecAccepted = 3, ///< answer to Exec, exec id in `value[0]`, with SCM_RIGHTS: control, input, output, error (4 fds)
    Refused = 4,      ///< answer to every request: a = RefusedReason, b = the guest's errno with GuestError
    ExecFinished =
        5,        ///< exec id in value[0]; a = ClientEventKind, b = status or signal; value[1] = execs that still run
    Status = 6,   ///< value[0..7] = uptime ms, memory total, available, processes, system total, available, home total,
                  ///< available
    Done = 7,     ///< answer to those that have no other
    Windows = 10, ///< a = WindowsState, whenever it changes
    WindowsOpen = 11,  ///< a = WindowsOpen, whenever it changes
    SessionOpened = 9, ///< answer to OpenSession, with SCM_RIGHTS: the client's end (1 descriptor)
    Lost = 8, ///< the guest is gone or broke the protocol; a = LostReason, b = Violation. The process ends after it.
};

/// What the windows of a domain mean for it (channel/window_watch.hpp).
enum class WindowsState : std::uint32_t {
    None = 0,   ///< nothing: there was none yet, or a program came first
    Open = 1,   ///< they carry it
    Closed = 2, ///< they did, and the last one has closed some time ago
};

/// Whether the guest shows any, whoever began them.
enum class WindowsOpen : std::uint32_t {
    Unknown = 0, ///< what a channel process of before says
    None = 1,
    Some = 2,
};

enum class RefusedReason : std::uint32_t {
    NotReady = 1,
    TooMany = 2,
    BadRequest = 3,
    GuestError = 4,
    TimedOut = 5,
    Unsupported = 6, ///< the guest's agent does not name the feature
};
enum class LostReason : std::uint32_t { EndOfFile = 1, Violation = 2, NoAnswer = 3, Internal = 4 };

struct FromChannel {
    FromChannelKind kind{};
    std::uint32_t a = 0;
    std::uint64_t request = 0;
    std::int64_t b = 0;
    std::array<std::uint64_t, 8> value{};
};

static_assert(std::is_trivially_copyable_v<ToChannel> && sizeof(ToChannel) == 24);
static_assert(std::is_trivially_copyable_v<FromChannel> && sizeof(FromChannel) == 88);

// ---- command line of bulkhead-channel ------------------------------------------------------------------------------
// bulkhead-channel INSTANCE, with descriptors: 3 = connected guest stream, 4 = listening control socket,
// 5 = pipe or file with the 32 byte token (read to its end and closed). Standard error = the log. It drops to no
// capabilities and installs its seccomp filter before the first byte of the guest is read. The daemon starts it with
// the uid leased for it.
constexpr int kGuestFd = 3;
constexpr int kControlListenFd = 4;
constexpr int kTokenFd = 5;

} // namespace bulkhead::channel

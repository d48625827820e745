// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dbus/interfaces/diff_stream.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Reads lines of /proc. Names and paths in them are chosen by whoever runs programs.
namespace bulkhead::inspect {

struct ProcessTimes {
    std::uint32_t parent = 0;
    std::uint64_t startTicks = 0; ///< since the machine's start
};
/// /proc/PID/stat, whose second field is a name in brackets that may hold anything.
std::optional<ProcessTimes> parseStat(std::string_view stat);

/// A number in a line "Name:<tab>number …" of /proc/PID/status or /proc/stat ("btime 123").
std::optional<std::uint64_t> numberAfter(std::string_view text, std::string_view word);

struct SocketLine {
    diff_stream::SocketKind kind{};
    std::string address;
    std::uint16_t port = 0;
    std::uint32_t uid = 0;
    std::uint64_t inode = 0;
};
/// A line of /proc/net/{tcp,tcp6,udp,udp6,unix}; none: it is a title, or a socket that waits for nobody.
std::optional<SocketLine> parseSocket(diff_stream::SocketKind kind, std::string_view line);

} // namespace bulkhead::inspect

// SPDX-License-Identifier: Apache-2.0
#include "base/unique_fd.hpp"
#include "inspect/facts_text.hpp"
#include "inspect/inspect.hpp"
#include "inspect/report.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace bulkhead::inspect {

using namespace diff_stream;

namespace {

/// Sockets come first and may take so much of the room; the rest is for processes.
constexpr std::size_t kRoomForSockets = kLongestFacts / 3;
/// For Note, Totals and End.
constexpr std::size_t kRoomForTheEnd = 1024;
constexpr std::size_t kMostSockets = 8192;
constexpr std::size_t kLargestTable = 8 * 1024 * 1024;
constexpr std::size_t kLargestSmallFile = 16 * 1024;

struct CloseFolder {
    void operator()(DIR* folder) const { ::closedir(folder); }
};

/// The beginning of a kernel file; empty: it cannot be read (any more).
std::string beginningOf(const std::string& path, std::size_t most) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    std::string text;
    std::array<char, 16 * 1024> piece{};
    while (fd && text.size() < most) {
        const ssize_t count = ::read(fd.get(), piece.data(), std::min(piece.size(), most - text.size()));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            break;
        }
        text.append(piece.data(), static_cast<std::size_t>(count));
    }
    return text;
}

std::vector<std::uint32_t> processes() {
    std::vector<std::uint32_t> found;
    const std::unique_ptr<DIR, CloseFolder> folder(::opendir("/proc"));
    while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
        const char* const end = entry->d_name + std::strlen(entry->d_name);
        std::uint32_t pid = 0;
        const auto [at, error] = std::from_chars(entry->d_name, end, pid);
        if (error == std::errc{} && at == end) {
            found.push_back(pid);
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

/// False: some are left out.
bool readTable(SocketKind kind, const char* path, std::vector<SocketLine>& sockets) {
    const std::string text = beginningOf(path, kLargestTable);
    bool isWhole = text.size() < kLargestTable;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        if (auto socket = parseSocket(kind, std::string_view(text).substr(at, end - at))) {
            if (sockets.size() >= kMostSockets) {
                return false;
            }
            sockets.push_back(std::move(*socket));
        }
        at = end + 1;
    }
    return isWhole;
}

/// The process that holds each of these sockets; of several the first one.
std::map<std::uint64_t, std::uint32_t> holdersOf(const std::vector<SocketLine>& sockets,
                                                 const std::vector<std::uint32_t>& pids) {
    std::map<std::uint64_t, std::uint32_t> holders;
    for (const SocketLine& socket : sockets) {
        holders[socket.inode] = 0;
    }
    std::size_t left = holders.size();
    for (const std::uint32_t pid : pids) {
        if (left == 0) {
            break;
        }
        const std::string path = "/proc/" + std::to_string(pid) + "/fd";
        const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
        while (const dirent* const entry = folder && left > 0 ? ::readdir(folder.get()) : nullptr) {
            std::array<char, 64> target{};
            const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, target.data(), target.size());
            const std::string_view link(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
            constexpr std::string_view kBegin = "socket:[";
            std::uint64_t inode = 0;
            if (!link.starts_with(kBegin) ||
                std::from_chars(link.data() + kBegin.size(), link.data() + link.size(), inode).ec != std::errc{}) {
                continue;
            }
            const auto found = holders.find(inode);
            if (found != holders.end() && found->second == 0) {
                found->second = pid;
                --left;
            }
        }
    }
    return holders;
}

std::optional<Body> describe(std::uint32_t pid, std::uint64_t startOfMachine, std::uint64_t ticksPerSecond) {
    const std::string folder = "/proc/" + std::to_string(pid);
    const std::string stat = beginningOf(folder + "/stat", kLargestSmallFile);
    const auto times = parseStat(stat);
    const auto uid = numberAfter(beginningOf(folder + "/status", kLargestSmallFile), "Uid:");
    if (!times || !uid) {
        return std::nullopt; // it has ended meanwhile
    }
    // One byte more tells that something was cut.
    std::string command = beginningOf(folder + "/cmdline", kLongestCommand + 1);
    if (command.empty()) { // a thread of the kernel, or one that ended and was not yet waited for
        const std::size_t begin = std::min(stat.find('('), stat.size());
        command = "[" + stat.substr(begin + 1, std::max(stat.rfind(')'), begin + 1) - begin - 1) + "]";
    }
    const bool isCut = command.size() > kLongestCommand;
    const std::uint64_t started = startOfMachine + times->startTicks / ticksPerSecond;
    Body body;
    body.u32(pid)
        .u32(times->parent)
        .u32(static_cast<std::uint32_t>(*uid))
        .i64(static_cast<std::int64_t>(started))
        .u8(isCut ? 1 : 0)
        .text(command, kLongestCommand);
    return body;
}

void reportSockets(const std::vector<std::uint32_t>& pids, Report& report) {
    std::vector<SocketLine> sockets;
    const std::pair<SocketKind, const char*> tables[] = {{SocketKind::Tcp, "/proc/net/tcp"},
                                                         {SocketKind::Tcp6, "/proc/net/tcp6"},
                                                         {SocketKind::Udp, "/proc/net/udp"},
                                                         {SocketKind::Udp6, "/proc/net/udp6"},
                                                         {SocketKind::Unix, "/proc/net/unix"}};
    bool isWhole = true;
    for (const auto& [kind, path] : tables) {
        isWhole = readTable(kind, path, sockets) && isWhole;
    }
    const auto holders = holdersOf(sockets, pids);
    for (const SocketLine& socket : sockets) {
        Body body;
        body.one(socket.kind)
            .text(socket.address, kLongestPath)
            .u16(socket.port)
            .u32(socket.uid)
            .u32(holders.at(socket.inode));
        if (report.size() + kHeaderSize + body.bytes().size() > kRoomForSockets) {
            isWhole = false;
            break;
        }
        report.record(Kind::Socket, body);
    }
    if (!isWhole) {
        report.note(NoteKind::FactsCut, Disk::System, Side::Both, 0, "sockets");
    }
}

} // namespace

int reportFacts(int output) {
    std::signal(SIGPIPE, SIG_IGN); // NOLINT(cert-err33-c): cannot fail for SIGPIPE
    Report report(sinkTo(output), What::Facts, false);
    const auto pids = processes();
    reportSockets(pids, report);
    // The numbers of processors come first in it and may be many.
    const std::uint64_t startOfMachine = numberAfter(beginningOf("/proc/stat", 1024 * 1024), "btime ").value_or(0);
    const long ticks = ::sysconf(_SC_CLK_TCK);
    for (const std::uint32_t pid : pids) {
        const auto body = describe(pid, startOfMachine, ticks > 0 ? static_cast<std::uint64_t>(ticks) : 100);
        if (!body) {
            continue;
        }
        if (report.size() + kHeaderSize + body->bytes().size() + kRoomForTheEnd > kLongestFacts) {
            report.note(NoteKind::FactsCut, Disk::System, Side::Both, 0, "processes");
            break;
        }
        report.record(Kind::Process, *body);
    }
    return report.end() ? 0 : 1;
}

} // namespace bulkhead::inspect

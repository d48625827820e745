// SPDX-License-Identifier: Apache-2.0
#include "inspect/facts_text.hpp"

#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstring>
#include <vector>

namespace bulkhead::inspect {

using diff_stream::SocketKind;

namespace {

/// States of the kernel's table, in hexadecimal.
constexpr std::string_view kListening = "0A";
constexpr std::string_view kUnconnected = "07"; // of udp: takes packets from anybody
constexpr std::uint64_t kAcceptsConnections = 0x10000;

std::vector<std::string_view> wordsOf(std::string_view text, std::size_t most) {
    std::vector<std::string_view> words;
    while (words.size() < most) {
        const std::size_t begin = text.find_first_not_of(" \t");
        if (begin == std::string_view::npos) {
            break;
        }
        text.remove_prefix(begin);
        const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
        words.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return words;
}

template <class Number> std::optional<Number> numberFrom(std::string_view text, int base) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                     : std::nullopt;
}

/// The kernel writes an address as numbers of 32 bits of this machine's order.
std::optional<std::string> addressFrom(std::string_view hexadecimal, bool isSix) {
    std::array<std::uint32_t, 4> parts{};
    const std::size_t count = isSix ? 4 : 1;
    if (hexadecimal.size() != count * 8) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto part = numberFrom<std::uint32_t>(hexadecimal.substr(i * 8, 8), 16);
        if (!part) {
            return std::nullopt;
        }
        parts[i] = *part;
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    return ::inet_ntop(isSix ? AF_INET6 : AF_INET, parts.data(), text.data(), text.size()) == nullptr
               ? std::nullopt
               : std::optional<std::string>(text.data());
}

std::optional<SocketLine> parseUnix(std::string_view line) {
    // Num: RefCount Protocol Flags Type St Inode Path; a path may hold spaces
    const auto words = wordsOf(line, 7);
    if (words.size() != 7) {
        return std::nullopt;
    }
    const auto flags = numberFrom<std::uint64_t>(words[3], 16);
    const auto inode = numberFrom<std::uint64_t>(words[6], 10);
    const std::size_t after = static_cast<std::size_t>(words[6].data() + words[6].size() - line.data());
    if (!flags || (*flags & kAcceptsConnections) == 0 || !inode || after + 1 >= line.size()) {
        return std::nullopt;
    }
    return SocketLine{SocketKind::Unix, std::string(line.substr(after + 1)), 0, 0, *inode};
}

} // namespace

std::optional<ProcessTimes> parseStat(std::string_view stat) {
    const std::size_t end = stat.rfind(')');
    if (end == std::string_view::npos) {
        return std::nullopt;
    }
    while (!stat.empty() && stat.back() == '\n') {
        stat.remove_suffix(1);
    }
    // From the third field on: state, parent, …, the 22nd is the start.
    const auto words = wordsOf(stat.substr(end + 1), 20);
    if (words.size() < 20) {
        return std::nullopt;
    }
    const auto parent = numberFrom<std::uint32_t>(words[1], 10);
    const auto start = numberFrom<std::uint64_t>(words[19], 10);
    return parent && start ? std::optional(ProcessTimes{*parent, *start}) : std::nullopt;
}

std::optional<std::uint64_t> numberAfter(std::string_view text, std::string_view word) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        if (line.starts_with(word)) {
            const auto words = wordsOf(line.substr(word.size()), 1);
            return words.empty() ? std::nullopt : numberFrom<std::uint64_t>(words[0], 10);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::nullopt;
}

std::optional<SocketLine> parseSocket(SocketKind kind, std::string_view line) {
    if (kind == SocketKind::Unix) {
        return parseUnix(line);
    }
    // sl local rem st queues timer retransmits uid timeout inode
    const auto words = wordsOf(line, 10);
    const bool isTcp = kind == SocketKind::Tcp || kind == SocketKind::Tcp6;
    if (words.size() != 10 || words[3] != (isTcp ? kListening : kUnconnected)) {
        return std::nullopt;
    }
    const std::size_t colon = words[1].rfind(':');
    if (colon == std::string_view::npos) {
        return std::nullopt;
    }
    const bool isSix = kind == SocketKind::Tcp6 || kind == SocketKind::Udp6;
    const auto address = addressFrom(words[1].substr(0, colon), isSix);
    const auto port = numberFrom<std::uint16_t>(words[1].substr(colon + 1), 16);
    const auto uid = numberFrom<std::uint32_t>(words[7], 10);
    const auto inode = numberFrom<std::uint64_t>(words[9], 10);
    if (!address || !port || !uid || !inode) {
        return std::nullopt;
    }
    return SocketLine{kind, *address, *port, *uid, *inode};
}

} // namespace bulkhead::inspect

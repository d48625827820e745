// SPDX-License-Identifier: Apache-2.0
#include "agent/accounts.hpp"

#include "agent/small_file.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

namespace bulkhead::agent {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1024} * 1024;

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return value;
}

std::optional<Account> find(std::string_view passwd, const std::function<bool(const Account&)>& matches) {
    for (const std::string_view line : split(passwd, '\n')) {
        const auto fields = split(line, ':');
        if (fields.size() != 7 || fields[0].empty()) {
            continue;
        }
        const auto uid = number(fields[2]);
        const auto gid = number(fields[3]);
        if (!uid || !gid) {
            continue;
        }
        Account account{std::string(fields[0]), *uid, *gid, std::string(fields[5]), std::string(fields[6])};
        if (account.home.empty()) {
            account.home = "/";
        }
        if (account.shell.empty()) {
            account.shell = "/bin/sh";
        }
        if (matches(account)) {
            return account;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<Account> findAccount(std::string_view passwd, std::string_view name) {
    return find(passwd, [name](const Account& account) { return account.name == name; });
}

std::optional<Account> findAccount(std::string_view passwd, uid_t uid) {
    return find(passwd, [uid](const Account& account) { return account.uid == uid; });
}

std::vector<gid_t> groupsOf(std::string_view group, const Account& account) {
    std::vector<gid_t> groups{account.gid};
    for (const std::string_view line : split(group, '\n')) {
        const auto fields = split(line, ':');
        if (fields.size() != 4) {
            continue;
        }
        const auto gid = number(fields[2]);
        const auto members = split(fields[3], ',');
        if (gid && *gid != account.gid && std::find(members.begin(), members.end(), account.name) != members.end()) {
            groups.push_back(*gid);
        }
    }
    return groups;
}

std::optional<Account> systemAccount(std::string_view name) {
    const auto passwd = readSmallFile("/etc/passwd", kMaxFile);
    return passwd ? findAccount(*passwd, name) : std::nullopt;
}

std::optional<Account> systemAccount(uid_t uid) {
    const auto passwd = readSmallFile("/etc/passwd", kMaxFile);
    return passwd ? findAccount(*passwd, uid) : std::nullopt;
}

std::vector<gid_t> systemGroupsOf(const Account& account) {
    const auto group = readSmallFile("/etc/group", kMaxFile);
    return groupsOf(group ? std::string_view(*group) : std::string_view(), account);
}

std::vector<std::string> environmentLines(std::string_view text) {
    std::vector<std::string> lines;
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t equals = line.find('=');
        if (equals != std::string_view::npos && equals > 0 && line.front() != '#' &&
            line.find('\0') == std::string_view::npos) {
            lines.emplace_back(line);
        }
    }
    return lines;
}

std::vector<std::string> sessionEnvironment() {
    const auto text = readSmallFile("/usr/lib/bulkhead/session.env", kMaxFile);
    return text ? environmentLines(*text) : std::vector<std::string>();
}

} // namespace bulkhead::agent

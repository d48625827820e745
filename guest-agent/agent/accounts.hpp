// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::agent {

struct Account {
    std::string name;
    uid_t uid = 0;
    gid_t gid = 0;
    std::string home;
    std::string shell;
};

/// Reads passwd(5) and group(5) text directly: name service modules cannot be used in a static program.
/// The account called `name`. None: there is none, or its line is malformed.
std::optional<Account> findAccount(std::string_view passwd, std::string_view name);
std::optional<Account> findAccount(std::string_view passwd, uid_t uid);
/// All groups that list `account` as a member, and its own.
std::vector<gid_t> groupsOf(std::string_view group, const Account& account);

/// The same, from this machine's /etc.
std::optional<Account> systemAccount(std::string_view name);
std::optional<Account> systemAccount(uid_t uid);
std::vector<gid_t> systemGroupsOf(const Account& account);

/// The lines NAME=VALUE of a text; others are skipped.
std::vector<std::string> environmentLines(std::string_view text);
/// What programs of the domain's user find besides their login's environment: where the X session is. Empty where the
/// template has none (/usr/lib/bulkhead/session.env).
std::vector<std::string> sessionEnvironment();

} // namespace bulkhead::agent

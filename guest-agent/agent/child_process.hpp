// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/accounts.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::agent {

/// What a program is started with.
struct ChildPlan {
    std::vector<std::string> argv;        ///< argv[0] is looked up in PATH of `environment`
    std::vector<std::string> environment; ///< the whole of it, "NAME=value"
    std::string cwd;
    bool cwdMayBeMissing = false;   ///< then "/" (a login without a home)
    std::optional<Account> account; ///< none: as this process, no change
    std::vector<gid_t> groups;
    std::uint64_t limitProcesses = 0; ///< 0: none
    bool terminal = false;
    unsigned short rows = 0;
    unsigned short columns = 0;
};

/// Why a child did not become the program. Sent through the error pipe, so plain data.
struct ChildFailure {
    enum class Stage : std::int32_t { Setup, Directory, Lookup };
    Stage stage = Stage::Setup;
    std::int32_t errorNumber = 0;
};

/// Our ends, non-blocking and close-on-exec. With a terminal `output` is the pty's master, and `input` is its
/// duplicate; `errors` is not open.
struct Child {
    pid_t pid = -1;
    UniqueFd input;
    UniqueFd output;
    UniqueFd errors;
    /// End of file: the program runs. A ChildFailure: it does not.
    UniqueFd report;
};

/// Forks; the child makes its own session, takes the account and becomes the program. Does not wait for it: read
/// `report`. Fails with an errno text when there are no descriptors, ptys or processes.
Result<Child> startChild(const ChildPlan& plan);

/// The environment of a login of `account`, then `extra` over it (a name given twice: the last one counts).
std::vector<std::string> loginEnvironment(const Account& account, const std::vector<std::string>& extra,
                                          const std::optional<std::string>& term);

} // namespace bulkhead::agent

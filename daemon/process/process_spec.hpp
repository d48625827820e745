// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::process {

/// Whom a child runs as. Supplementary groups are always emptied, and there is no way back (real, effective and saved
/// ids are all set).
struct Identity {
    uid_t uid = 0;
    gid_t gid = 0;
    bool operator==(const Identity&) const = default;
};

/// One descriptor that a child gets: our open descriptor `ours` appears in the child as `child`. Not owned.
struct DescriptorMapping {
    int child = -1;
    int ours = -1;
    bool operator==(const DescriptorMapping&) const = default;
};

/// A program to start, as a plain value: nothing is inherited that is not named here. Descriptors 0, 1 and 2 that are
/// not mapped are /dev/null; all others are closed. Signals are at their defaults and unblocked. The child leads a
/// process group of its own.
struct ProcessSpec {
    std::filesystem::path program;        ///< absolute; there is no search path
    std::vector<std::string> arguments;   ///< what follows argv[0], which is the program's path
    std::vector<std::string> environment; ///< NAME=VALUE; empty means an empty environment
    std::optional<Identity> identity;     ///< none: as we are
    std::vector<DescriptorMapping> descriptors;
    std::optional<std::filesystem::path> workingDirectory; ///< entered as the new identity; none: "/"
    bool newSession = false;                               ///< also leaves our session and controlling terminal
    /// Sent to the child when the *thread* that started it ends (prctl(2), PR_SET_PDEATHSIG): for threads that live as
    /// long as the daemon only.
    std::optional<int> deathSignal;
    bool noNewPrivileges = true;
    mode_t umask = 077;
};

/// The base environment for tools: a system search path, C.UTF-8 messages, nothing of ours.
std::vector<std::string> toolEnvironment();

} // namespace bulkhead::process

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "process/process_spec.hpp"

#include <optional>
#include <string>
#include <sys/types.h>

namespace bulkhead::process {

/// How a child ended.
struct ExitStatus {
    int code = 0;   ///< the exit code when `signal` is 0
    int signal = 0; ///< the signal that ended it, or 0

    [[nodiscard]] bool isSuccess() const { return code == 0 && signal == 0; }
    /// "exit status 3", "killed by signal 9 (Killed)".
    [[nodiscard]] std::string text() const;
    bool operator==(const ExitStatus&) const = default;
};

/// A started child. Whoever holds it must see to it that it is reaped: run() does, and ChildReaper does for children
/// that live on. Ending the object does not end the child.
struct Child {
    pid_t pid = -1;
    UniqueFd pidfd; ///< readable when the child has ended
};

/// Starts a program and returns once it has been executed. Safe in a process with threads. The error names the step
/// that failed in the child (change user, enter directory, execute …). InvalidArgument for a spec that makes no sense.
Result<Child> spawn(const ProcessSpec& spec);

/// Collects a child that has ended; none while it still runs.
Result<std::optional<ExitStatus>> reap(const Child& child);

} // namespace bulkhead::process

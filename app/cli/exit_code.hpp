// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

namespace bulkhead::cli {

/// What the program exits with; part of its contract with scripts.
namespace exit_code {
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kDenied = 3;
inline constexpr int kNotFound = 4;
inline constexpr int kNotAuthorized = 5;
// `run` only, which otherwise passes the command's own status on:
inline constexpr int kTimedOut = 124;
inline constexpr int kOurs = 125;
inline constexpr int kNotExecutable = 126;
inline constexpr int kCommandNotFound = 127;
inline constexpr int kSignalBase = 128;
} // namespace exit_code

/// For every verb but run.
int exitCodeFor(const client::Failure& failure);
/// For a failure of ours in run (a mistake of the user's is one too): 125, or 128 plus the signal with which the user
/// ended it.
int runExitCodeFor(const client::Failure& failure);

} // namespace bulkhead::cli

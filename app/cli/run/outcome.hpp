// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/json.hpp"
#include "cli/run/exec_pump.hpp"

#include <optional>
#include <string>

namespace bulkhead::cli {

/// bulkhead.agent.ExecFailed.Reason of agent.proto, which the control stream carries as a number.
enum class ExecFailedReason : std::uint32_t {
    Unknown = 0,
    CommandNotFound = 1,
    CommandNotExecutable = 2,
    NoSuchUser = 3,
    NoSuchDirectory = 4,
    Limit = 5,
    BadRequest = 6,
};
/// LostReason of the channel's records.
enum class LostReason : std::uint32_t { EndOfFile = 1, Violation = 2, NoAnswer = 3, Internal = 4 };

/// What `run` says and exits with in the end.
struct RunOutcome {
    int exitCode = 0;
    std::string kind;                       ///< exited, signalled, timed-out, lost, failed or left
    std::optional<int> status;              ///< of the command, when exited
    std::optional<int> signal;              ///< when signalled or left
    std::optional<client::Failure> failure; ///< ours; never for exited and signalled
    std::string domain;                     ///< empty when there was none yet
};

/// What the command was asked to be, for the words of an outcome.
struct RunSubject {
    std::string domain;
    std::string command;
    std::string user;
    std::string cwd;
    std::string timeout; ///< as text
};

RunOutcome outcomeOf(const PumpEnd& end, const RunSubject& subject);
RunOutcome outcomeOf(const client::Failure& failure, const std::string& domain);
Json jsonOf(const RunOutcome& outcome);

} // namespace bulkhead::cli

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

/// What became of a domain that was to be suspended after the command.
struct KeptDomain {
    std::string domain;
    bool isDisposable = false;
    bool isSuspended = false;
    bool isLeftToDaemon = false; ///< it is going to be suspended
    client::Failure failure;     ///< otherwise: why it is not
    std::string state;           ///< and what can be said of it then, for people
};

/// What `run` and `resume` say and exit with in the end.
struct RunOutcome {
    int exitCode = 0;
    std::string kind;                       ///< exited, signalled, timed-out, lost, failed or left
    std::optional<int> status;              ///< of the command, when exited
    std::optional<int> signal;              ///< when signalled or left
    std::optional<client::Failure> failure; ///< ours; never for exited and signalled
    std::string domain;                     ///< empty when there was none yet
    bool hasBegun = false;                  ///< the domain was given the command
    bool wasLeft = false;                   ///< the command may still be ending
    std::optional<KeptDomain> kept;         ///< with --keep, and after `resume`
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

// SPDX-License-Identifier: Apache-2.0
#include "cli/run/outcome.hpp"

#include "cli/exit_code.hpp"
#include "cli/output/report.hpp"

#include <fmt/format.h>

#include <system_error>

namespace bulkhead::cli {
namespace {

using exec_stream::ClientEvent;
using exec_stream::ClientEventKind;

/// The guest's errno in words. It comes from the guest, so a number that is none says nothing.
std::string becauseOf(std::int32_t errorNumber) {
    return errorNumber > 0 && errorNumber < 4096 ? ": " + std::generic_category().message(errorNumber) : std::string();
}

RunOutcome ours(int exitCode, std::string kind, std::string failureCode, std::string message) {
    RunOutcome outcome;
    outcome.exitCode = exitCode;
    outcome.kind = std::move(kind);
    outcome.failure = client::Failure{std::move(failureCode), std::move(message)};
    return outcome;
}

RunOutcome failedToStart(const ClientEvent& event, const RunSubject& subject) {
    const std::string why = becauseOf(event.b);
    switch (static_cast<ExecFailedReason>(event.a)) {
    case ExecFailedReason::CommandNotFound:
        return ours(exit_code::kCommandNotFound, "failed", "CommandNotFound", subject.command + ": command not found");
    case ExecFailedReason::CommandNotExecutable:
        return ours(exit_code::kNotExecutable, "failed", "CommandNotExecutable",
                    subject.command + ": cannot be executed" + why);
    case ExecFailedReason::NoSuchUser:
        return ours(exit_code::kOurs, "failed", "NoSuchUser",
                    "there is no user '" + (subject.user.empty() ? "user" : subject.user) + "' in the guest");
    case ExecFailedReason::NoSuchDirectory:
        return ours(exit_code::kOurs, "failed", "NoSuchDirectory",
                    "cannot enter " + (subject.cwd.empty() ? "the user's home" : "'" + subject.cwd + "'") +
                        " in the guest" + why);
    case ExecFailedReason::Limit:
        return ours(exit_code::kOurs, "failed", "LimitExceeded", "the guest has no room for another program" + why);
    case ExecFailedReason::BadRequest:
        return ours(exit_code::kOurs, "failed", client::code::kGuestFailure,
                    "the guest's agent does not accept the request" + why);
    case ExecFailedReason::Unknown:
        break;
    }
    return ours(exit_code::kOurs, "failed", client::code::kGuestFailure, "the guest could not start it" + why);
}

std::string lostText(const ClientEvent& event) {
    switch (static_cast<LostReason>(event.a)) {
    case LostReason::Violation:
        return fmt::format("it broke the rules of the channel (violation {}) and was cut off", event.b);
    case LostReason::NoAnswer:
        return "it did not answer any more";
    case LostReason::Internal:
        return "the channel process had a fault of its own";
    case LostReason::EndOfFile:
        break;
    }
    return "the guest died or was powered off";
}

} // namespace

RunOutcome outcomeOf(const PumpEnd& end, const RunSubject& subject) {
    const std::string where = subject.domain.empty() ? "the domain" : "domain " + subject.domain;
    RunOutcome outcome;
    if (end.leftBySignal) {
        outcome = ours(exit_code::kSignalBase + *end.leftBySignal, "left", client::code::kInterrupted,
                       "left the command; it was told to hang up and is killed if it does not within 5 s");
        outcome.signal = end.leftBySignal;
    } else if (end.writeError != 0) {
        outcome = ours(exit_code::kOurs, "failed", "OutputFailed",
                       "cannot write the command's output: " + std::generic_category().message(end.writeError));
    } else if (!end.event) {
        outcome = ours(exit_code::kOurs, "lost", "GuestLost",
                       "lost " + where + " while the command ran: its channel process ended");
    } else {
        switch (end.event->kind) {
        case ClientEventKind::Exited:
            outcome.kind = "exited";
            outcome.status = static_cast<int>(end.event->a & 0xFFU);
            outcome.exitCode = *outcome.status;
            break;
        case ClientEventKind::Signalled:
            outcome.kind = "signalled";
            outcome.signal = static_cast<int>(end.event->a & 0x7FU);
            outcome.exitCode = exit_code::kSignalBase + *outcome.signal;
            break;
        case ClientEventKind::TimedOut:
            outcome = ours(exit_code::kTimedOut, "timed-out", client::code::kTimedOut,
                           "the command did not end within " + subject.timeout + " and was killed");
            break;
        case ClientEventKind::Failed:
            outcome = failedToStart(*end.event, subject);
            break;
        case ClientEventKind::Lost:
            outcome = ours(exit_code::kOurs, "lost", "GuestLost",
                           "lost " + where + " while the command ran: " + lostText(*end.event));
            break;
        case ClientEventKind::Started:
            break; // the pump never ends with it
        }
    }
    outcome.domain = subject.domain;
    outcome.hasBegun = true;
    outcome.wasLeft = end.leftBySignal.has_value();
    return outcome;
}

RunOutcome outcomeOf(const client::Failure& failure, const std::string& domain) {
    RunOutcome outcome;
    outcome.exitCode = runExitCodeFor(failure);
    outcome.failure = failure;
    outcome.domain = domain;
    outcome.kind = failure.code == client::code::kInterrupted ? "left" : "failed";
    if (failure.signal != 0) {
        outcome.signal = failure.signal;
    }
    return outcome;
}

Json jsonOf(const RunOutcome& outcome) {
    Json json;
    json["outcome"] = outcome.kind;
    json["exit_code"] = outcome.exitCode;
    json["domain"] = outcome.domain.empty() ? Json(nullptr) : Json(outcome.domain);
    if (outcome.status) {
        json["status"] = *outcome.status;
    }
    if (outcome.signal) {
        json["signal"] = *outcome.signal;
    }
    if (outcome.failure) {
        json["error"] = jsonOf(*outcome.failure, hintFor(*outcome.failure, outcome.domain.empty() ? "" : "domain"));
    }
    if (outcome.kept) {
        json["kept"] = {{"domain", outcome.kept->domain}, {"suspended", outcome.kept->isSuspended}};
        if (outcome.kept->isLeftToDaemon) {
            json["kept"]["pending"] = true;
        } else if (!outcome.kept->isSuspended) {
            json["kept"]["error"] = jsonOf(outcome.kept->failure, hintFor(outcome.kept->failure, "domain"));
        }
    }
    return json;
}

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/run/program.hpp"

#include "cli/environment.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/report.hpp"
#include "cli/run/exec_pump.hpp"
#include "cli/run/terminal_mode.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <utility>

namespace bulkhead::cli {
namespace {

using client::Failure;

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

/// With -t and no command: the login shell that the guest's account names.
std::vector<std::string> commandOf(const RunArguments& arguments) {
    if (!arguments.command.empty()) {
        return arguments.command;
    }
    return {"/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -l"};
}

client::ExecOptions execOptions(const RunArguments& arguments, const std::vector<std::string>& environment) {
    client::ExecOptions options;
    options.user = qt(arguments.user);
    options.cwd = qt(arguments.cwd);
    for (const std::string& entry : environment) {
        options.environment.append(qt(entry));
    }
    options.timeout = arguments.timeout;
    options.terminal = arguments.terminal;
    if (arguments.terminal) {
        options.size = terminalSizeOf(STDIN_FILENO);
        const char* term = std::getenv("TERM");
        options.term = QString::fromLocal8Bit(term == nullptr ? "" : term);
    }
    return options;
}

PumpEnd pump(client::ExecStreams& streams, Interrupts& interrupts, const client::ExecOptions& options) {
    PumpEnds ends{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, options.terminal, {}};
    if (!options.terminal) {
        return ExecPump(streams, interrupts, std::move(ends)).run();
    }
    RawTerminal raw(STDIN_FILENO);
    ends.resumed = [&raw] { raw.enter(); };
    if (terminalSizeOf(STDIN_FILENO) != options.size) {
        interrupts.putBack(SIGWINCH); // it changed while the domain was starting
    }
    return ExecPump(streams, interrupts, std::move(ends)).run();
}

/// D-Bus carries text only: bytes that are none would arrive as something else. Which argument has such; none: no one.
std::optional<std::string> firstNotUtf8(const RunArguments& arguments, const std::vector<std::string>& environment) {
    const auto isBad = [](const std::string& text) { return qt(text).toStdString() != text; };
    const std::pair<const char*, std::string> options[] = {{"the domain's name", arguments.domain.value_or("")},
                                                           {"--disposable", arguments.templateName},
                                                           {"--size", arguments.size},
                                                           {"--from", arguments.from},
                                                           {"--user", arguments.user},
                                                           {"--cwd", arguments.cwd}};
    for (const auto& [name, value] : options) {
        if (isBad(value)) {
            return name;
        }
    }
    for (const std::string& entry : environment) {
        if (isBad(entry)) {
            return "--env " + entry.substr(0, entry.find('='));
        }
    }
    for (std::size_t i = 0; i < arguments.command.size(); ++i) {
        if (isBad(arguments.command[i])) {
            return i == 0 ? "the command's name '" + arguments.command[i] + "'"
                          : fmt::format("argument {} of the command, '{}',", i, arguments.command[i]);
        }
    }
    return std::nullopt;
}

void printKept(const KeptDomain& kept) {
    const std::string name = kept.domain;
    const std::string remove = kept.isDisposable ? "; throw it away: bulkhead domain rm " + name : "";
    if (kept.isSuspended) {
        printMistake(name + " is suspended as it is now", "go on: bulkhead resume " + name + remove);
    } else if (kept.isLeftToDaemon) {
        printMistake(name + " is suspended as soon as nothing runs in it any more",
                     "then go on: bulkhead resume " + name + remove);
    } else {
        printMistake(name + " is not suspended: " + kept.failure.message + (kept.state.empty() ? "" : "; ") +
                         kept.state,
                     "try again: bulkhead domain suspend " + name +
                         (kept.isDisposable ? "; throw it away: bulkhead domain rm --force " + name : ""));
    }
}

} // namespace

/// Whatever can be said of the domain, soon: the daemon may be gone.
std::string stateOf(Session& session, Place& place) {
    constexpr std::chrono::milliseconds kPatience{1000};
    const auto info =
        session.await<client::DomainInfo>([&](auto done) { place.domain->describe(std::move(done)); }, kPatience);
    const std::string name = place.name.empty() ? "the disposable domain" : "domain " + place.name;
    if (info) {
        return name + " is " + info->state.toStdString();
    }
    return info.error().code == client::code::kNotFound ? name + " is gone" : name + ": state not known";
}

RunOutcome runIn(Session& session, Place& place, const RunArguments& arguments,
                 const std::vector<std::string>& environment) {
    const std::vector<std::string> command = commandOf(arguments);
    QStringList argv;
    for (const std::string& word : command) {
        argv.append(qt(word));
    }
    const client::ExecOptions options = execOptions(arguments, environment);
    auto streams = session.await<std::shared_ptr<client::ExecStreams>>(
        [&](auto done) { place.domain->exec(argv, options, std::move(done)); });
    if (!streams) {
        return outcomeOf(streams.error(), place.name);
    }
    const PumpEnd end = pump(**streams, session.interrupts(), options);
    const std::string timeout =
        arguments.timeout ? fmt::format("{} s", std::chrono::duration<double>(*arguments.timeout).count()) : "its time";
    RunOutcome outcome = outcomeOf(end, {place.name, command.front(), arguments.user, arguments.cwd, timeout});
    if (end.leftBySignal) {
        outcome.failure->message += "; " + stateOf(session, place);
    }
    return outcome;
}

int finish(const RunOutcome& outcome, const RunArguments& arguments) {
    if (arguments.json) {
        const std::string line = jsonLine(jsonOf(outcome));
        std::fputs(line.c_str(), stderr);
        return outcome.exitCode;
    }
    if (outcome.failure) {
        const bool unknownDomain =
            outcome.failure->code == client::code::kNotFound && outcome.domain.empty() && arguments.domain;
        printFailure(unknownDomain ? "domain " + *arguments.domain : std::string(), *outcome.failure, false);
    }
    if (outcome.kept) {
        printKept(*outcome.kept);
    }
    return outcome.exitCode;
}

int refuse(const RunArguments& arguments, const std::string& what, const std::string& hint) {
    if (arguments.json) {
        return finish(outcomeOf(Failure{client::code::kInvalidArgument, what}, {}), arguments);
    }
    printMistake(what, hint);
    return exit_code::kOurs;
}

tl::expected<std::vector<std::string>, int> prepareProgram(const RunArguments& arguments, const std::string& verb) {
    if (arguments.terminal && ::isatty(STDIN_FILENO) != 1) {
        return tl::unexpected<int>(
            refuse(arguments, "-t needs a terminal on standard input", "leave -t out to pipe data in"));
    }
    const auto environment = resolveEnvironment(arguments.environment, [](const std::string& name) {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    if (!environment) {
        return tl::unexpected<int>(refuse(arguments, environment.error(), "see: bulkhead " + verb + " --help"));
    }
    if (const auto culprit = firstNotUtf8(arguments, *environment)) {
        return tl::unexpected<int>(
            refuse(arguments, *culprit + " is not valid UTF-8, and only that can be passed to a domain unchanged",
                   "pass such bytes through standard input"));
    }
    // A reader that goes away is for the guest's program to know (see ExecPump), not the end of us.
    std::signal(SIGPIPE, SIG_IGN); // NOLINT(cert-err33-c): cannot fail for SIGPIPE
    return *environment;
}

ProgressStyle styleFor(const RunArguments& arguments) {
    return arguments.json ? ProgressStyle::Silent : ProgressStyle::Calm;
}

} // namespace bulkhead::cli

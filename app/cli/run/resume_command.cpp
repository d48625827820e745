// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/report.hpp"
#include "cli/run/keeping.hpp"
#include "cli/run/program.hpp"
#include "client/terminal_text.hpp"

#include <utility>

namespace bulkhead::cli {
namespace {

using client::Failure;
using client::Outcome;

tl::unexpected<Failure> pass(const Failure& failure) {
    return tl::unexpected<Failure>(failure);
}

struct Resumed {
    Place place;
    bool isDisposable = false;
};

Failure notSuspended(const client::DomainInfo& info) {
    const std::string name = client::terminalSafe(info.name);
    const std::string is = "it is " + client::terminalSafe(info.state) + ", not suspended";
    return {client::code::kWrongState,
            info.startedAt ? is + "; to run something in it: bulkhead run --domain " + name + " -- COMMAND"
                           : is +
                                 ": there is no full snapshot that it would go on from; to boot it: "
                                 "bulkhead domain start " +
                                 name};
}

Outcome<Resumed> goOn(Session& session, const RunArguments& arguments) {
    const std::string& name = *arguments.domain;
    const auto path = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().findDomain(QString::fromStdString(name), std::move(done)); });
    if (!path) {
        return pass(path.error());
    }
    Resumed resumed{{std::make_unique<client::Domain>(session.connection(), *path), name}, false};
    client::Domain& domain = *resumed.place.domain;
    const auto info = session.await<client::DomainInfo>([&](auto done) { domain.describe(std::move(done)); });
    if (!info) {
        return pass(info.error());
    }
    if (!info->isSuspended) {
        return pass(notSuspended(*info));
    }
    resumed.isDisposable = info->isKept;
    const auto job = session.await<QDBusObjectPath>([&](auto done) { domain.start(false, std::move(done)); });
    if (!job) {
        return pass(job.error());
    }
    const auto started = session.follow(*job, "Resuming " + client::terminalSafe(name), styleFor(arguments));
    if (!started) {
        return pass(started.error());
    }
    return resumed;
}

int sayThatItRuns(const RunArguments& arguments) {
    const std::string name = client::terminalSafe(*arguments.domain);
    const int status = printOut(
        arguments.json ? jsonText(Json{{"name", *arguments.domain}, {"state", "running"}})
                       : "Domain " + name + " goes on where it was. Run something in it: bulkhead run --domain " +
                             name + " -- COMMAND\nSuspend it again: bulkhead domain suspend " + name + "\n");
    return status == exit_code::kDone ? status : exit_code::kOurs;
}

} // namespace

int resumeCommand(const ResumeArguments& given, Interrupts& interrupts) {
    const RunArguments& arguments = given.run;
    const auto environment = prepareProgram(arguments, "resume");
    if (!environment) {
        return environment.error();
    }
    const auto session = openSession(interrupts);
    if (!session) {
        return finish(outcomeOf(session.error(), {}), arguments);
    }
    auto resumed = goOn(**session, arguments);
    if (!resumed) {
        return finish(outcomeOf(resumed.error(), {}), arguments);
    }
    if (arguments.command.empty() && !arguments.terminal) {
        return sayThatItRuns(arguments);
    }
    RunOutcome outcome = runIn(**session, resumed->place, arguments, *environment);
    outcome.kept = keepAsItIs(**session, resumed->place,
                              {.isDisposable = resumed->isDisposable, .wasLeft = outcome.wasLeft}, arguments);
    return finish(outcome, arguments);
}

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "client/domain.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"

namespace bulkhead::cli {
namespace {

std::string shown(const QString& id) {
    return client::terminalSafe(client::shortId(id));
}

Json optional(const QString& text) {
    return text.isEmpty() ? Json(nullptr) : Json(text.toStdString());
}

/// What can be done now, each with its command. All bytes: who was root in there can have made files look untouched.
std::string nextSteps(const std::string& name, const QString& evidence, const QString& lastGood, bool isPaused) {
    std::string steps;
    if (!lastGood.isEmpty()) {
        steps += "Go back to before:  bulkhead snapshot revert " + name + " " + shown(lastGood) + "\n";
    }
    if (!lastGood.isEmpty()) {
        steps += "Compare all bytes:  bulkhead snapshot diff " + name + " " + shown(lastGood) + " " + shown(evidence) +
                 " --deep\n";
    }
    steps += "Look into it:       bulkhead snapshot fork " + shown(evidence) + " NAME   (without a network)\n";
    if (isPaused) {
        steps += "Let it go on:       bulkhead domain unpause " + name + "\n";
    }
    return steps;
}

} // namespace

int containDomain(const DomainContainArguments& arguments, Session& session) {
    const auto fail = [&](const client::Failure& failure) {
        printFailure("domain " + arguments.name, failure, arguments.json);
        return exitCodeFor(failure);
    };
    const auto path = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().findDomain(QString::fromStdString(arguments.name), std::move(done)); });
    if (!path) {
        return fail(path.error());
    }
    client::Domain domain(session.connection(), *path);
    const std::string name = client::terminalSafe(arguments.name);
    const auto job = session.await<QDBusObjectPath>([&](auto done) { domain.contain(std::move(done)); });
    if (!job) {
        return fail(job.error());
    }
    const auto result =
        session.follow(*job, "Containing " + name, arguments.json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!result) {
        return fail(result.error());
    }
    const QString evidence = result->value(QStringLiteral("evidence")).toString();
    const QString lastGood = result->value(QStringLiteral("last-good")).toString();
    const QString note = result->value(QStringLiteral("note")).toString();
    // It is contained, whatever can be said of it now.
    const auto info = session.await<client::DomainInfo>([&](auto done) { domain.describe(std::move(done)); });
    const QString state = info ? info->state : QStringLiteral("contained");
    if (arguments.json) {
        return printOut(jsonText(Json{{"domain", arguments.name},
                                      {"state", state.toStdString()},
                                      {"evidence", evidence.toStdString()},
                                      {"last_good", optional(lastGood)},
                                      {"note", optional(note)}}));
    }
    const bool isPaused = state == QLatin1String("paused");
    const int said = printOut("Domain " + name + (isPaused ? " stands still" : " is " + client::terminalSafe(state)) +
                              ". What it is now is kept as snapshot " + shown(evidence) + ".\n" +
                              (note.isEmpty() ? "" : "Note: " + client::terminalSafe(note) + "\n"));
    if (said != exit_code::kDone) {
        return said;
    }
    int compared = exit_code::kDone;
    if (!lastGood.isEmpty() && !arguments.comparesNot) {
        SnapshotDiffArguments difference;
        difference.domain = arguments.name;
        difference.from = lastGood.toStdString();
        difference.to = evidence.toStdString();
        compared = diffSnapshots(difference, session);
    }
    if (compared == exit_code::kDone && isPaused && !lastGood.isEmpty() && !arguments.comparesNot) {
        printOut("Files that it had not written to its disks yet are in the memory of the evidence only.\n");
    }
    const std::string next = nextSteps(name, evidence, lastGood, isPaused);
    return printOut((compared == exit_code::kDone ? "" : "It is contained; only the comparison failed.\n") + next);
}

} // namespace bulkhead::cli

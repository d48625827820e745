// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/run/keeping.hpp"
#include "cli/run/program.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"

#include <utility>

namespace bulkhead::cli {
namespace {

using client::Failure;
using client::Outcome;

tl::unexpected<Failure> pass(const Failure& failure) {
    return tl::unexpected<Failure>(failure);
}

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

Outcome<Place> openNamed(Session& session, const RunArguments& arguments) {
    const std::string& name = *arguments.domain;
    const auto path =
        session.await<QDBusObjectPath>([&](auto done) { session.manager().findDomain(qt(name), std::move(done)); });
    if (!path) {
        return pass(path.error());
    }
    Place place{std::make_unique<client::Domain>(session.connection(), *path), name};
    const auto job = session.await<QDBusObjectPath>([&](auto done) { place.domain->start(false, std::move(done)); });
    if (!job) {
        return pass(job.error());
    }
    const auto started = session.follow(*job, "Starting " + client::terminalSafe(name), styleFor(arguments));
    if (!started) {
        return pass(started.error());
    }
    return place;
}

/// The id that --from means; empty without it.
Outcome<QString> snapshotOf(Session& session, const RunArguments& arguments) {
    if (arguments.from.empty()) {
        return QString();
    }
    const auto snapshots = session.await<QList<client::SnapshotInfo>>(
        [&](auto done) { session.manager().listSnapshots(std::move(done)); });
    if (!snapshots) {
        return pass(snapshots.error());
    }
    auto found = client::findSnapshot(*snapshots, qt(arguments.from));
    if (!found && !client::looksLikeSnapshotId(qt(arguments.from))) {
        const std::string word = client::terminalSafe(arguments.from);
        return client::failed(found.error().code, "--from: " + found.error().message +
                                                      " (bulkhead snapshot ls); of a domain as it is now take one "
                                                      "first: bulkhead snapshot create " +
                                                      word);
    }
    if (!found) {
        return client::failed(found.error().code, "--from: " + found.error().message);
    }
    return found->id;
}

Outcome<Place> openDisposable(Session& session, const RunArguments& arguments) {
    const auto from = snapshotOf(session, arguments);
    if (!from) {
        return pass(from.error());
    }
    const client::DisposableOptions options{qt(arguments.templateName), qt(arguments.size), *from, arguments.isDiskOnly,
                                            arguments.isKept};
    const auto job =
        session.await<QDBusObjectPath>([&](auto done) { session.manager().startDisposable(options, std::move(done)); });
    if (!job) {
        return pass(job.error());
    }
    const auto started = session.follow(*job, "Starting a disposable domain", styleFor(arguments));
    if (!started) {
        return pass(started.error());
    }
    const auto path = started->value(QStringLiteral("domain")).value<QDBusObjectPath>();
    if (path.path().isEmpty()) {
        return client::failed(client::code::kVersionMismatch, "this bulkheadd does not say which domain it started");
    }
    Place place{std::make_unique<client::Domain>(session.connection(), path), {}};
    if (arguments.isKept) {
        const auto info =
            session.await<client::DomainInfo>([&](auto done) { place.domain->describe(std::move(done)); });
        if (!info) {
            return pass(info.error());
        }
        if (!info->isKept) {
            return client::failed(client::code::kVersionMismatch,
                                  "this bulkheadd cannot keep disposables; nothing was run");
        }
        place.name = info->name.toStdString();
    }
    return place;
}

} // namespace

int runCommand(const RunArguments& arguments, Interrupts& interrupts) {
    const auto environment = prepareProgram(arguments, "run");
    if (!environment) {
        return environment.error();
    }
    const auto session = openSession(interrupts);
    if (!session) {
        return finish(outcomeOf(session.error(), {}), arguments);
    }
    auto place = arguments.domain ? openNamed(**session, arguments) : openDisposable(**session, arguments);
    if (!place) {
        return finish(outcomeOf(place.error(), {}), arguments);
    }
    RunOutcome outcome = runIn(**session, *place, arguments, *environment);
    if (arguments.isKept && outcome.hasBegun) {
        outcome.kept = keepAsItIs(**session, *place, {.isDisposable = true, .wasLeft = outcome.wasLeft}, arguments);
    }
    return finish(outcome, arguments);
}

} // namespace bulkhead::cli

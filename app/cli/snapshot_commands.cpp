// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/report.hpp"
#include "cli/output/snapshot_tree.hpp"
#include "cli/output/snapshots.hpp"
#include "client/domain.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"

#include <algorithm>
#include <ctime>
#include <unistd.h>

namespace bulkhead::cli {
namespace {

using client::Failure;
using client::Outcome;
using client::SnapshotInfo;

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

int reportDomain(const std::string& name, const Failure& failure, bool json) {
    printFailure("domain " + name, failure, json);
    return exitCodeFor(failure);
}

int reportSnapshot(const std::string& id, const Failure& failure, bool json) {
    printFailure("snapshot " + id, failure, json);
    return exitCodeFor(failure);
}

int reportList(const Failure& failure, bool json) {
    printFailure("cannot list the snapshots", failure, json);
    return exitCodeFor(failure);
}

std::string shown(const QString& id) {
    return client::terminalSafe(client::shortId(id));
}

ProgressStyle styleFor(bool json) {
    return json ? ProgressStyle::Silent : ProgressStyle::Calm;
}

/// Snapshots and the domains that stand among them.
Outcome<Lineage> readLineage(Session& session) {
    auto snapshots =
        session.await<QList<SnapshotInfo>>([&](auto done) { session.manager().listSnapshots(std::move(done)); });
    if (!snapshots) {
        return tl::unexpected<Failure>(snapshots.error());
    }
    const bool isRoot = ::geteuid() == 0; // root is told everybody's snapshots
    auto domains = session.await<QList<client::DomainInfo>>(
        [&](auto done) { session.manager().listDomains(isRoot, std::move(done)); });
    if (!domains) {
        return tl::unexpected<Failure>(domains.error());
    }
    return Lineage{std::move(*snapshots), std::move(*domains), std::time(nullptr)};
}

/// What an id or a label on the command line means; `domain` (its path; none: any): the one whose labels come first.
Outcome<SnapshotInfo> resolve(Session& session, const std::string& id, const QString& domain = {}) {
    auto snapshots =
        session.await<QList<SnapshotInfo>>([&](auto done) { session.manager().listSnapshots(std::move(done)); });
    if (!snapshots) {
        return tl::unexpected<Failure>(snapshots.error());
    }
    if (!domain.isEmpty()) {
        QList<SnapshotInfo> own = *snapshots;
        own.removeIf([&](const SnapshotInfo& snapshot) { return snapshot.domain != domain; });
        if (auto found = client::findSnapshot(own, qt(id))) {
            return found;
        }
    }
    return client::findSnapshot(*snapshots, qt(id));
}

Outcome<QDBusObjectPath> findDomain(Session& session, const std::string& name) {
    return session.await<QDBusObjectPath>([&](auto done) { session.manager().findDomain(qt(name), std::move(done)); });
}

/// Begins a job and follows it to its end.
template <class Begin>
Outcome<QVariantMap> work(Session& session, const std::string& title, bool json, const Begin& begin) {
    const auto job = session.await<QDBusObjectPath>(begin);
    if (!job) {
        return tl::unexpected<Failure>(job.error());
    }
    return session.follow(*job, title, styleFor(json));
}

QString textIn(const QVariantMap& result, const char* key) {
    return result.value(QLatin1String(key)).toString();
}

Json optional(const QString& text) {
    return text.isEmpty() ? Json(nullptr) : Json(text.toStdString());
}

/// Of the domain that there is, or of one of that name that is gone.
Outcome<QList<SnapshotInfo>> ofDomain(Session& session, const Lineage& lineage, const std::string& name) {
    const auto path = findDomain(session, name);
    if (!path && path.error().code != client::code::kNotFound) {
        return tl::unexpected<Failure>(path.error());
    }
    QList<SnapshotInfo> snapshots;
    for (const auto& snapshot : lineage.snapshots) {
        const bool isIts = path ? snapshot.domain == path->path()
                                : snapshot.domainName == qt(name) && lineage.domainAt(snapshot.domain) == nullptr;
        if (isIts) {
            snapshots.append(snapshot);
        }
    }
    if (!path && snapshots.isEmpty()) {
        return tl::unexpected<Failure>(path.error());
    }
    return snapshots;
}

/// What pin, unpin and label have in common.
int change(Session& session, const std::string& id, const QVariantMap& changes, bool json,
           const std::function<std::string(const std::string&)>& say) {
    const auto found = resolve(session, id);
    if (!found) {
        return reportSnapshot(id, found.error(), json);
    }
    const auto changed = session.await<SnapshotInfo>(
        [&](auto done) { session.manager().setSnapshot(found->id, changes, std::move(done)); });
    if (!changed) {
        return reportSnapshot(id, changed.error(), json);
    }
    if (!json) {
        return printOut("Snapshot " + say(shown(changed->id)) + ".\n");
    }
    const auto lineage = readLineage(session);
    return lineage ? printOut(jsonText(jsonOf(*lineage, *changed))) : reportList(lineage.error(), true);
}

std::string whatIsNowSo(const SnapshotForkArguments& arguments, const std::string& origin) {
    const std::string name = client::terminalSafe(arguments.name);
    return "Domain " + name + " is created from " + origin + ". Start it: bulkhead domain start " + name + "\n";
}

} // namespace

int createSnapshot(const SnapshotCreateArguments& arguments, Session& session) {
    const auto path = findDomain(session, arguments.domain);
    if (!path) {
        return reportDomain(arguments.domain, path.error(), arguments.json);
    }
    client::Domain domain(session.connection(), *path);
    const std::string name = client::terminalSafe(arguments.domain);
    const client::SnapshotOptions options{arguments.isDiskOnly, qt(arguments.reason), qt(arguments.label)};
    const auto result =
        work(session, "Taking a snapshot of " + name, arguments.json,
             [&](client::Callback<QDBusObjectPath> done) { domain.snapshot(options, std::move(done)); });
    if (!result) {
        return reportDomain(arguments.domain, result.error(), arguments.json);
    }
    const QString id = textIn(*result, "snapshot");
    const std::uint64_t pause = result->value(QStringLiteral("pause-ms")).toULongLong();
    if (arguments.json) {
        return printOut(jsonText(Json{{"id", id.toStdString()}, {"domain", arguments.domain}, {"pause_ms", pause}}));
    }
    return printOut("Snapshot " + shown(id) + " of " + name + " is taken" +
                    (pause == 0 ? "" : "; it stood still for " + std::to_string(pause) + " ms") + ".\n");
}

int listSnapshots(const SnapshotListArguments& arguments, Session& session) {
    const auto lineage = readLineage(session);
    if (!lineage) {
        return reportList(lineage.error(), arguments.json);
    }
    QList<SnapshotInfo> snapshots = lineage->snapshots;
    if (!arguments.domain.empty()) {
        const auto its = ofDomain(session, *lineage, arguments.domain);
        if (!its) {
            return reportDomain(arguments.domain, its.error(), arguments.json);
        }
        snapshots = *its;
    }
    if (arguments.json) {
        return printOut(jsonText(jsonOf(*lineage, snapshots)));
    }
    if (!snapshots.isEmpty()) {
        return printOut(snapshotTable(*lineage, snapshots));
    }
    const std::string name = arguments.domain.empty() ? "DOMAIN" : client::terminalSafe(arguments.domain);
    return printOut(
        (arguments.domain.empty() ? "There are no snapshots yet." : "Domain " + name + " has no snapshots yet.") +
        std::string(" Take one: bulkhead snapshot create ") + name + "\n");
}

int showTree(const SnapshotTreeArguments& arguments, Session& session) {
    const auto path = findDomain(session, arguments.domain);
    if (!path) {
        return reportDomain(arguments.domain, path.error(), arguments.json);
    }
    const auto lineage = readLineage(session);
    if (!lineage) {
        return reportList(lineage.error(), arguments.json);
    }
    const auto* domain = lineage->domainAt(path->path());
    if (domain == nullptr) {
        return reportDomain(arguments.domain, {client::code::kNotFound, "it was removed just now"}, arguments.json);
    }
    return printOut(arguments.json ? jsonText(treeJson(*lineage, *domain))
                                   : treeText(*lineage, *domain, isUtf8Locale()));
}

int showSnapshot(const SnapshotShowArguments& arguments, Session& session) {
    const auto lineage = readLineage(session);
    if (!lineage) {
        return reportList(lineage.error(), arguments.json);
    }
    const auto found = client::findSnapshot(lineage->snapshots, qt(arguments.id));
    if (!found) {
        return reportSnapshot(arguments.id, found.error(), arguments.json);
    }
    return printOut(arguments.json ? jsonText(jsonOf(*lineage, *found)) : snapshotText(*lineage, *found));
}

int revertDomain(const SnapshotRevertArguments& arguments, Session& session) {
    const auto path = findDomain(session, arguments.domain);
    if (!path) {
        return reportDomain(arguments.domain, path.error(), arguments.json);
    }
    const auto found = resolve(session, arguments.id, path->path());
    if (!found) {
        return reportSnapshot(arguments.id, found.error(), arguments.json);
    }
    const std::string name = client::terminalSafe(arguments.domain);
    const std::string id = shown(found->id);
    if (found->domain != path->path()) {
        return reportSnapshot(arguments.id,
                              {client::code::kInvalidArgument,
                               "it is not of domain " + name + " but of " + client::terminalSafe(found->domainName) +
                                   "; for a domain that begins there: bulkhead snapshot fork " + id + " NAME"},
                              arguments.json);
    }
    const auto result = work(session, "Reverting " + name, arguments.json, [&](client::Callback<QDBusObjectPath> done) {
        session.manager().revert(found->id, {!arguments.isDiscarding, arguments.isDiskOnly}, std::move(done));
    });
    if (!result) {
        return reportDomain(arguments.domain, result.error(), arguments.json);
    }
    const QString kept = textIn(*result, "kept");
    const bool isRunning = result->value(QStringLiteral("running")).toBool();
    if (arguments.json) {
        return printOut(jsonText(Json{{"domain", arguments.domain},
                                      {"snapshot", found->id.toStdString()},
                                      {"kept", optional(kept)},
                                      {"running", isRunning},
                                      {"note", optional(textIn(*result, "note"))}}));
    }
    return printOut("Domain " + name + " is what it was at snapshot " + id + ", of " +
                    timeAndAge(found->createdAt, std::time(nullptr)) +
                    (isRunning ? ", and runs.\n" : ". Start it: bulkhead domain start " + name + "\n") +
                    (kept.isEmpty() ? "" : "What was there before is snapshot " + shown(kept) + ".\n"));
}

int forkDomain(const SnapshotForkArguments& arguments, Session& session) {
    const client::ForkOptions options{qt(arguments.label), qt(arguments.egress), arguments.isDiskOnly};
    const std::string title = "Forking " + client::terminalSafe(arguments.name);
    const auto source = findDomain(session, arguments.from);
    Outcome<QVariantMap> result;
    std::string origin;
    if (source) {
        client::Domain domain(session.connection(), *source);
        origin = client::terminalSafe(arguments.from) + " as it is now";
        result = work(session, title, arguments.json, [&](client::Callback<QDBusObjectPath> done) {
            domain.fork(qt(arguments.name), options, std::move(done));
        });
    } else if (source.error().code == client::code::kNotFound) {
        const auto found = resolve(session, arguments.from);
        if (!found && found.error().code == client::code::kInvalidArgument &&
            !client::looksLikeSnapshotId(qt(arguments.from))) {
            return reportDomain(arguments.from,
                                {source.error().code, source.error().message + ", and no snapshot is labelled so"},
                                arguments.json);
        }
        if (!found) {
            return reportSnapshot(arguments.from, found.error(), arguments.json);
        }
        origin = "snapshot " + shown(found->id) + " of " + client::terminalSafe(found->domainName);
        result = work(session, title, arguments.json, [&](client::Callback<QDBusObjectPath> done) {
            session.manager().forkSnapshot(found->id, qt(arguments.name), options, std::move(done));
        });
    } else {
        return reportDomain(arguments.from, source.error(), arguments.json);
    }
    if (!result) {
        return reportDomain(arguments.name, result.error(), arguments.json);
    }
    if (!arguments.json) {
        return printOut(whatIsNowSo(arguments, origin));
    }
    client::Domain fork(session.connection(), result->value(QStringLiteral("domain")).value<QDBusObjectPath>());
    const auto info = session.await<client::DomainInfo>([&](auto done) { fork.describe(std::move(done)); });
    return info ? printOut(jsonText(jsonOf(*info))) : reportDomain(arguments.name, info.error(), true);
}

int pinSnapshot(const SnapshotPinArguments& arguments, Session& session) {
    return change(session, arguments.id, {{QStringLiteral("pinned"), arguments.isPinned}}, arguments.json,
                  [&](const std::string& id) { return id + (arguments.isPinned ? " is pinned" : " is not pinned"); });
}

int labelSnapshot(const SnapshotLabelArguments& arguments, Session& session) {
    return change(session, arguments.id, {{QStringLiteral("label"), qt(arguments.label)}}, arguments.json,
                  [&](const std::string& id) {
                      return arguments.label.empty()
                                 ? id + " has no label"
                                 : id + " is labelled \"" + client::terminalSafe(arguments.label) + "\"";
                  });
}

int removeSnapshot(const SnapshotRemoveArguments& arguments, Session& session) {
    const auto found = resolve(session, arguments.id);
    if (!found) {
        return reportSnapshot(arguments.id, found.error(), arguments.json);
    }
    const std::string id = shown(found->id);
    const auto result =
        work(session, "Removing snapshot " + id, arguments.json, [&](client::Callback<QDBusObjectPath> done) {
            session.manager().removeSnapshot(found->id, arguments.isCascade, std::move(done));
        });
    if (!result) {
        return reportSnapshot(arguments.id, result.error(), arguments.json);
    }
    if (arguments.json) {
        return printOut(jsonText(Json{{"id", found->id.toStdString()}, {"state", "removed"}}));
    }
    return printOut("Snapshot " + id +
                    (arguments.isCascade ? " and all that came from it are removed.\n" : " is removed.\n"));
}

} // namespace bulkhead::cli

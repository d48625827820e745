// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/deleted.hpp"
#include "cli/output/describe.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "client/domain.hpp"
#include "client/snapshots.hpp"
#include "client/terminal_text.hpp"
#include "menu/folder.hpp"

#include <QDateTime>

#include <algorithm>

namespace bulkhead::cli {
namespace {

using client::Failure;
using client::Outcome;

QString qt(const std::string& text) {
    return QString::fromStdString(text);
}

int report(const std::string& name, const Failure& failure, bool json) {
    printFailure("domain " + name, failure, json);
    return exitCodeFor(failure);
}

Outcome<std::unique_ptr<client::Domain>> find(Session& session, const std::string& name) {
    const auto path =
        session.await<QDBusObjectPath>([&](auto done) { session.manager().findDomain(qt(name), std::move(done)); });
    if (!path) {
        return tl::unexpected<Failure>(path.error());
    }
    return std::make_unique<client::Domain>(session.connection(), *path);
}

/// What start, stop and rm have in common: find it, begin a job, follow it, say what is now so.
template <class Begin>
int changeDomain(Session& session, const std::string& name, bool json, const char* doing, const char* stateAfter,
                 Begin begin) {
    const auto domain = find(session, name);
    if (!domain) {
        return report(name, domain.error(), json);
    }
    const auto job = session.await<QDBusObjectPath>([&](auto done) { begin(**domain, std::move(done)); });
    if (!job) {
        return report(name, job.error(), json);
    }
    const std::string safeName = client::terminalSafe(name);
    const auto done =
        session.follow(*job, std::string(doing) + " " + safeName, json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!done) {
        return report(name, done.error(), json);
    }
    return printOut(json ? jsonText(Json{{"name", name}, {"state", stateAfter}})
                         : "Domain " + safeName + " is " + stateAfter + ".\n");
}

} // namespace

int createDomain(const DomainCreateArguments& arguments, Session& session) {
    client::CreateOptions options{qt(arguments.templateName), qt(arguments.size),     qt(arguments.label),
                                  qt(arguments.egress),       qt(arguments.homeSize), {}};
    for (const std::string& tag : arguments.tags) {
        options.tags.append(qt(tag));
    }
    const auto path = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().createDomain(qt(arguments.name), options, std::move(done)); });
    if (!path) {
        printFailure("cannot create domain " + arguments.name, path.error(), arguments.json);
        return exitCodeFor(path.error());
    }
    if (!arguments.json) {
        const std::string name = client::terminalSafe(arguments.name);
        return printOut("Domain " + name + " is created. Run something in it: bulkhead run --domain " + name +
                        " -- COMMAND\n");
    }
    client::Domain domain(session.connection(), *path);
    const auto info = session.await<client::DomainInfo>([&](auto done) { domain.describe(std::move(done)); });
    return info ? printOut(jsonText(jsonOf(*info))) : report(arguments.name, info.error(), true);
}

namespace {

int listDeleted(const DomainListArguments& arguments, Session& session) {
    const auto domains = session.await<QList<client::DeletedInfo>>(
        [&](auto done) { session.manager().listDeleted(arguments.all, std::move(done)); });
    if (!domains) {
        printFailure("cannot list the removed domains", domains.error(), arguments.json);
        return exitCodeFor(domains.error());
    }
    return printOut(arguments.json ? jsonText(jsonOf(*domains))
                                   : deletedTable(*domains, QDateTime::currentSecsSinceEpoch(), arguments.all));
}

} // namespace

int listDomains(const DomainListArguments& arguments, Session& session) {
    if (arguments.isDeleted) {
        return listDeleted(arguments, session);
    }
    const auto domains = session.await<QList<client::DomainInfo>>(
        [&](auto done) { session.manager().listDomains(arguments.all, std::move(done)); });
    if (!domains) {
        printFailure("cannot list the domains", domains.error(), arguments.json);
        return exitCodeFor(domains.error());
    }
    return printOut(arguments.json ? jsonText(jsonOf(*domains)) : domainTable(*domains, arguments.all));
}

int showDomain(const DomainShowArguments& arguments, Session& session) {
    const auto domain = find(session, arguments.name);
    if (!domain) {
        return report(arguments.name, domain.error(), arguments.json);
    }
    const auto info = session.await<client::DomainInfo>([&](auto done) { (*domain)->describe(std::move(done)); });
    if (!info) {
        return report(arguments.name, info.error(), arguments.json);
    }
    return printOut(arguments.json ? jsonText(jsonOf(*info)) : domainText(*info));
}

int setDomain(const DomainSetArguments& arguments, Session& session) {
    const auto domain = find(session, arguments.name);
    if (!domain) {
        return report(arguments.name, domain.error(), arguments.json);
    }
    QVariantMap changes;
    for (const auto& [key, value] : arguments.settings) {
        changes.insert(qt(key), qt(value));
    }
    const auto info =
        session.await<client::DomainInfo>([&](auto done) { (*domain)->setDefinition(changes, std::move(done)); });
    if (!info) {
        return report(arguments.name, info.error(), arguments.json);
    }
    if (arguments.json) {
        return printOut(jsonText(jsonOf(*info)));
    }
    const auto waits = [](const char* what, const QString& value) {
        return value.isEmpty() ? std::string() : what + client::terminalSafe(value);
    };
    const std::string size = waits("its size ", info->nextSize);
    const std::string sound = waits("its sound ", info->nextAudio);
    const bool areBoth = !size.empty() && !sound.empty();
    // Told whenever it waits, not only when this very call made it so: who changes a label should know of it too.
    return printOut("Domain " + client::terminalSafe(arguments.name) + " is changed" +
                    (size.empty() && sound.empty()
                         ? std::string(".\n")
                         : "; " + size + (areBoth ? " and " : "") + sound + (areBoth ? " take" : " takes") +
                               " effect at the next start.\n"));
}

int startDomain(const DomainStartArguments& arguments, Session& session) {
    return changeDomain(session, arguments.name, arguments.json, "Starting", "running",
                        [&](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                            domain.start(arguments.cold, std::move(done));
                        });
}

namespace {

/// What it is then depends on the snapshot: one with memory leaves it suspended there.
int discardDomain(const DomainStopArguments& arguments, Session& session) {
    const auto domain = find(session, arguments.name);
    if (!domain) {
        return report(arguments.name, domain.error(), arguments.json);
    }
    const auto job = session.await<QDBusObjectPath>([&](auto done) { (*domain)->discard(std::move(done)); });
    if (!job) {
        return report(arguments.name, job.error(), arguments.json);
    }
    const std::string name = client::terminalSafe(arguments.name);
    const auto done =
        session.follow(*job, "Going back with " + name, arguments.json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!done) {
        return report(arguments.name, done.error(), arguments.json);
    }
    const auto info = session.await<client::DomainInfo>([&](auto answer) { (*domain)->describe(std::move(answer)); });
    if (!info) {
        return report(arguments.name, info.error(), arguments.json);
    }
    return printOut(arguments.json ? jsonText(Json{{"name", arguments.name}, {"state", info->state.toStdString()}})
                                   : "Domain " + name + " is " + client::terminalSafe(info->state) +
                                         ", and again what it was at its last snapshot.\n");
}

} // namespace

int stopDomain(const DomainStopArguments& arguments, Session& session) {
    if (arguments.isDiscarding) {
        return discardDomain(arguments, session);
    }
    return changeDomain(session, arguments.name, arguments.json, "Stopping", "stopped",
                        [&](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                            domain.stop(arguments.force, arguments.grace, std::move(done));
                        });
}

int pauseDomain(const DomainPauseArguments& arguments, Session& session) {
    return changeDomain(session, arguments.name, arguments.json, arguments.goesOn ? "Unpausing" : "Pausing",
                        arguments.goesOn ? "running" : "paused",
                        [&](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                            if (arguments.goesOn) {
                                domain.unpause(std::move(done));
                            } else {
                                domain.pause(std::move(done));
                            }
                        });
}

int suspendDomain(const DomainSuspendArguments& arguments, Session& session) {
    return changeDomain(
        session, arguments.name, arguments.json, "Suspending", "suspended",
        [&](client::Domain& domain, client::Callback<QDBusObjectPath> done) { domain.suspend(std::move(done)); });
}

int resumeDomain(const DomainResumeArguments& arguments, Session& session) {
    const auto domain = find(session, arguments.name);
    if (!domain) {
        return report(arguments.name, domain.error(), arguments.json);
    }
    const auto info = session.await<client::DomainInfo>([&](auto done) { (*domain)->describe(std::move(done)); });
    if (!info) {
        return report(arguments.name, info.error(), arguments.json);
    }
    if (!info->isSuspended) {
        const std::string state = client::terminalSafe(info->state);
        return report(arguments.name,
                      {client::code::kWrongState,
                       info->startedAt ? "it is " + state + ", not suspended"
                                       : "it is " + state + ", not suspended; to boot it: bulkhead domain start " +
                                             client::terminalSafe(arguments.name)},
                      arguments.json);
    }
    return changeDomain(session, arguments.name, arguments.json, "Resuming", "running",
                        [&](client::Domain& started, client::Callback<QDBusObjectPath> done) {
                            started.start(false, std::move(done));
                        });
}

namespace {

/// One that was removed already.
int purgeDomain(const DomainRemoveArguments& arguments, Session& session) {
    const auto job = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().purgeDomain(qt(arguments.name), std::move(done)); });
    if (!job) {
        return report(arguments.name, job.error(), arguments.json);
    }
    const std::string name = client::terminalSafe(arguments.name);
    const auto done =
        session.follow(*job, "Removing " + name, arguments.json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!done) {
        return report(arguments.name, done.error(), arguments.json);
    }
    return printOut(arguments.json ? jsonText(Json{{"name", arguments.name}, {"state", "removed"}})
                                   : "Domain " + name + " is removed for good.\n");
}

/// What is gone for good must be what was meant: there is such a domain, and a removed one that has its name.
std::optional<std::string> hasNamesake(const std::string& name, Session& session) {
    const auto deleted = session.await<QList<client::DeletedInfo>>(
        [&](auto done) { session.manager().listDeleted(false, std::move(done)); });
    if (!deleted) {
        return std::nullopt;
    }
    const auto found = std::find_if(deleted->begin(), deleted->end(), [&](const client::DeletedInfo& domain) {
        return domain.name.toStdString() == name;
    });
    if (found == deleted->end()) {
        return std::nullopt;
    }
    const std::string id = client::terminalSafe(client::shortId(found->id));
    return "there is a domain of that name, and a removed one. To remove the removed one for good: bulkhead domain rm "
           "--now " +
           id + "; afterwards --now means the other";
}

} // namespace

int removeDomain(const DomainRemoveArguments& arguments, Session& session) {
    if (arguments.isForGood) {
        const auto domain = find(session, arguments.name);
        if (!domain && domain.error().code == client::code::kNotFound) {
            return purgeDomain(arguments, session);
        }
        if (const auto doubt = hasNamesake(arguments.name, session)) {
            return report(arguments.name, {client::code::kInvalidArgument, *doubt}, arguments.json);
        }
    }
    const int status = changeDomain(session, arguments.name, arguments.json, "Removing", "removed",
                                    [&](client::Domain& domain, client::Callback<QDBusObjectPath> done) {
                                        domain.remove(arguments.force, arguments.isForGood, std::move(done));
                                    });
    if (status == exit_code::kDone && !arguments.json && !arguments.isForGood) {
        const auto deleted = session.await<QList<client::DeletedInfo>>(
            [&](auto done) { session.manager().listDeleted(false, std::move(done)); });
        if (deleted) {
            printOut(restorableText(*deleted, client::terminalSafe(arguments.name)));
        }
    }
    if (status != exit_code::kDone || !menu::isExportableDomain(arguments.name)) {
        return status;
    }
    // What would start an app of a domain that is no more, or of the next one of that name.
    const auto changes = menu::Folder(menu::userFolder()).removeAll(arguments.name);
    return changes ? status : report(arguments.name, changes.error(), arguments.json);
}

int restoreDomain(const DomainRestoreArguments& arguments, Session& session) {
    const auto path = session.await<QDBusObjectPath>([&](auto done) {
        session.manager().restoreDomain(qt(arguments.which), qt(arguments.otherName), std::move(done));
    });
    if (!path) {
        return report(arguments.which, path.error(), arguments.json);
    }
    client::Domain domain(session.connection(), *path);
    const auto info = session.await<client::DomainInfo>([&](auto done) { domain.describe(std::move(done)); });
    if (!info) {
        return report(arguments.which, info.error(), arguments.json);
    }
    return printOut(arguments.json ? jsonText(jsonOf(*info))
                                   : "Domain " + client::terminalSafe(info->name) + " is back, " +
                                         client::terminalSafe(info->state) + ".\n");
}

} // namespace bulkhead::cli

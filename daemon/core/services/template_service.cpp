// SPDX-License-Identifier: Apache-2.0
#include "core/services/template_service.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"

#include <algorithm>

namespace bulkhead::core {

TemplateService::TemplateService(Ports ports, JobService& jobs)
    : m_ports(ports)
    , m_jobs(jobs) {}

Result<TemplateInfo> TemplateService::describe(const TemplateDefinition& definition,
                                               const std::vector<InstalledTemplate>& installed) {
    auto hash = m_ports.builder.definitionHash(definition);
    if (!hash) {
        return fail(hash.error());
    }
    TemplateInfo info{definition, std::nullopt, std::move(*hash), false};
    const auto found = std::find_if(installed.begin(), installed.end(),
                                    [&](const InstalledTemplate& t) { return t.name == definition.name; });
    if (found != installed.end()) {
        info.installed = *found;
        info.isStale = found->definitionHash != info.definitionHash;
    }
    return info;
}

Result<std::vector<TemplateInfo>> TemplateService::list() {
    const auto loaded = m_ports.definitions.loadTemplates();
    const auto installed = readInstalled();
    if (!installed) {
        return fail(installed.error());
    }
    std::vector<TemplateInfo> infos;
    for (const auto& definition : loaded.templates) {
        auto info = describe(definition, *installed);
        if (!info) {
            return fail(info.error());
        }
        infos.push_back(std::move(*info));
    }
    return infos;
}

Result<TemplateInfo> TemplateService::find(const std::string& name) {
    if (auto checked = checkSimpleName("template", name); !checked) {
        return fail(checked.error());
    }
    const auto loaded = m_ports.definitions.loadTemplates();
    std::string names;
    for (const auto& definition : loaded.templates) {
        if (definition.name == name) {
            const auto installed = readInstalled();
            if (!installed) {
                return fail(installed.error());
            }
            return describe(definition, *installed);
        }
        names += (names.empty() ? "" : ", ") + definition.name;
    }
    for (const auto& problem : loaded.problems) {
        if (problem.name == name) {
            return fail(ErrorCode::InvalidArgument,
                        "template \"" + name + "\" cannot be used: " + problem.error.message);
        }
    }
    return fail(ErrorCode::NotFound,
                "no template \"" + name + "\"; there are: " + (names.empty() ? std::string("none") : names));
}

Result<std::vector<InstalledTemplate>> TemplateService::readInstalled() {
    auto installed = m_ports.store.installed();
    if (installed) {
        std::map<std::string, std::string> newest;
        for (const auto& one : *installed) {
            newest.emplace(one.name, one.version);
        }
        const std::lock_guard lock(m_newestMutex);
        m_newest = std::move(newest);
    }
    return installed;
}

std::optional<std::string> TemplateService::newestVersion(const std::string& name) {
    const auto look = [&]() -> std::optional<std::string> {
        const auto found = m_newest->find(name);
        return found == m_newest->end() ? std::nullopt : std::optional(found->second);
    };
    {
        const std::lock_guard lock(m_newestMutex);
        if (m_newest) {
            return look();
        }
    }
    if (!readInstalled()) {
        return std::nullopt; // asked again the next time
    }
    const std::lock_guard lock(m_newestMutex);
    return look();
}

Result<JobId> TemplateService::build(const Caller& caller, const std::string& name,
                                     const TemplateBuildOptions& options) {
    if (!caller.isRoot()) {
        const std::string verb = !options.packages.empty() ? "install" : options.update ? "update" : "build";
        return fail(ErrorCode::NotAuthorized,
                    "building templates needs root: sudo bulkhead template " + verb + " " + name);
    }
    for (const std::string& package : options.packages) {
        if (auto checked = checkPackageName(package); !checked) {
            return fail(checked.error());
        }
    }
    if (auto info = find(name); !info) {
        return fail(info.error());
    }
    return m_jobs.begin("template-build", caller.uid,
                        [this, name, options](const JobContext& job) { return runBuild(name, options, job); });
}

Result<JobResult> TemplateService::runBuild(const std::string& name, const TemplateBuildOptions& options,
                                            const JobContext& job) {
    const std::unique_lock lock(m_buildMutex, std::try_to_lock);
    if (!lock.owns_lock()) {
        return fail(ErrorCode::Busy, "another template is being built; try again after it");
    }
    const auto info = find(name);
    if (!info) {
        return fail(info.error());
    }
    TemplateDefinition wanted = info->definition;
    for (const std::string& package : options.packages) {
        if (std::find(wanted.packages.begin(), wanted.packages.end(), package) == wanted.packages.end()) {
            wanted.packages.push_back(package);
            wanted.addedPackages.push_back(package);
        }
    }
    const bool isChanged = wanted != info->definition || !info->installed || info->isStale || options.force;
    if (!isChanged && !options.update) {
        return JobResult(TemplateBuildResult{info->installed->version, false});
    }
    const auto built = m_ports.builder.build(wanted, job.progress(), job.cancelToken());
    if (!built) {
        const std::string kept = options.packages.empty() ? std::string() : " (nothing was added to it)";
        return fail(built.error().in("building template \"" + name + "\"" + kept));
    }
    const ScopeGuard discard([&] { m_ports.builder.discard(*built); });
    if (!isChanged) {
        const auto isSame = m_ports.store.confirm(name, *built);
        if (!isSame) {
            return fail(isSame.error().in("comparing the packages of template \"" + name + "\""));
        }
        if (*isSame) {
            return JobResult(TemplateBuildResult{info->installed->version, false});
        }
    }
    job.report("Installing", 0.95);
    const auto installed = install(*info, wanted, *built);
    if (!installed) {
        return fail(installed.error().in("installing template \"" + name + "\""));
    }
    job.report("Testing the acceleration", 0.98);
    const auto outcome =
        m_ports.acceleration.determine(installed->directory / "vmlinuz", installed->directory / "initrd.img", false);
    log::info("template installed", {{"TEMPLATE", name},
                                     {"VERSION", installed->version},
                                     {"ACCELERATION", nameOf(outcome.acceleration)},
                                     {"REASON", outcome.reason}});
    if (m_whenInstalled) {
        m_whenInstalled(name);
    }
    return JobResult(TemplateBuildResult{installed->version, true});
}

Result<InstalledTemplate> TemplateService::install(const TemplateInfo& before, const TemplateDefinition& wanted,
                                                   const BuiltTemplate& built) {
    const bool isAdding = wanted.addedPackages != before.definition.addedPackages;
    if (isAdding) {
        // First: after a crash in between, the next build makes what the definition says; never the other way round.
        if (auto saved = m_ports.definitions.saveAddedPackages(wanted.name, wanted.addedPackages); !saved) {
            return fail(saved.error());
        }
    }
    const auto versionsInUse = [this]() -> Result<std::vector<std::string>> {
        const auto instances = m_ports.instances.all();
        const auto snapshots = m_ports.snapshots.all();
        if (!instances || !snapshots) {
            return fail(!instances ? instances.error() : snapshots.error());
        }
        std::vector<std::string> versions;
        for (const auto& instance : *instances) {
            versions.push_back(instance.templateVersion);
        }
        for (const auto& snapshot : *snapshots) {
            // Of a domain that was stopped there is nothing above the template's disk; some are to start with it.
            if (snapshot.phase != SnapshotRecord::Phase::Removed &&
                (!snapshot.system.layers.empty() || holdsVersion(snapshot))) {
                versions.push_back(snapshot.templateVersion);
            }
        }
        return versions;
    };
    auto installed = m_ports.store.install(wanted, built, versionsInUse);
    if (!installed && isAdding) {
        const auto& old = before.definition.addedPackages;
        if (auto undone = m_ports.definitions.saveAddedPackages(wanted.name, old); !undone) {
            return fail(installed.error().code, installed.error().message +
                                                    "; the packages stay in its definition, because " +
                                                    undone.error().message);
        }
    }
    if (installed) {
        [[maybe_unused]] const auto remembered = readInstalled();
        m_ports.events.domainsChanged(); // running ones have something to restart for
    }
    return installed;
}

} // namespace bulkhead::core

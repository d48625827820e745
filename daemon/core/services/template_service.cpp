// SPDX-License-Identifier: Apache-2.0
#include "core/services/template_service.hpp"

#include "base/log.hpp"

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
    const auto installed = m_ports.store.installed();
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
            const auto installed = m_ports.store.installed();
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

Result<JobId> TemplateService::build(const Caller& caller, const std::string& name, bool force) {
    if (!caller.isRoot()) {
        return fail(ErrorCode::NotAuthorized, "building templates needs root: sudo bulkhead template build " + name);
    }
    if (auto info = find(name); !info) {
        return fail(info.error());
    }
    return m_jobs.begin("template-build", caller.uid,
                        [this, name, force](const JobContext& job) { return runBuild(name, force, job); });
}

Result<JobResult> TemplateService::runBuild(const std::string& name, bool force, const JobContext& job) {
    const std::unique_lock lock(m_buildMutex, std::try_to_lock);
    if (!lock.owns_lock()) {
        return fail(ErrorCode::Busy, "another template is being built; try again after it");
    }
    const auto info = find(name);
    if (!info) {
        return fail(info.error());
    }
    if (info->installed && !info->isStale && !force) {
        return JobResult(TemplateBuildResult{info->installed->version, false});
    }
    const auto built = m_ports.builder.build(info->definition, job.progress(), job.cancelToken());
    if (!built) {
        return fail(built.error().in("building template \"" + name + "\""));
    }
    job.report("Installing", 0.95);
    const auto versionsInUse = [this]() -> Result<std::vector<std::string>> {
        const auto instances = m_ports.instances.all();
        if (!instances) {
            return fail(instances.error());
        }
        std::vector<std::string> versions;
        for (const auto& instance : *instances) {
            versions.push_back(instance.templateVersion);
        }
        return versions;
    };
    const auto installed = m_ports.store.install(info->definition, *built, versionsInUse);
    m_ports.builder.discard(*built);
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
    return JobResult(TemplateBuildResult{installed->version, true});
}

} // namespace bulkhead::core

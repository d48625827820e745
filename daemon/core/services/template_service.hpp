// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/model/template.hpp"
#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/repositories.hpp"
#include "core/services/job_service.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::core {

/// A template's definition beside what is installed of it.
struct TemplateInfo {
    TemplateDefinition definition;
    std::optional<InstalledTemplate> installed;
    std::string definitionHash; ///< of the definition as it is now
    bool isStale = false;       ///< installed, but from another definition, agent or builder
};

/// What a build is for. The defaults: only when the definition, the agent or the builder has changed.
struct TemplateBuildOptions {
    bool force = false;  ///< although nothing has changed
    bool update = false; ///< with today's packages; a build that has the same ones as before is thrown away
    std::vector<std::string> packages = {}; ///< to be added to the template for good
};

/// Templates: what there is, and building them. Thread-safe.
class TemplateService {
public:
    struct Ports {
        DefinitionStore& definitions;
        TemplateStore& store;
        TemplateBuilder& builder;
        AccelerationProbe& acceleration;
        InstanceRepository& instances;
        SnapshotRepository& snapshots;
        EventSink& events;
    };
    TemplateService(Ports ports, JobService& jobs);
    /// Called after each new version was installed, from a job's thread. To be set before the first build.
    void whenInstalled(std::function<void(const std::string& name)> told) { m_whenInstalled = std::move(told); }

    Result<std::vector<TemplateInfo>> list();
    /// NotFound lists the templates that there are; InvalidArgument when its definition is broken.
    Result<TemplateInfo> find(const std::string& name);
    /// The version that a domain of this template would start with now; none: not built. Cheap.
    std::optional<std::string> newestVersion(const std::string& name);
    /// True: this version of it is there still.
    bool hasVersion(const std::string& name, const std::string& version) { return m_ports.store.has(name, version); }
    /// Begins a build; root only. Bad package names are InvalidArgument and begin nothing. While it lasts, and when it
    /// fails, the version before is the newest, and packages are not added.
    Result<JobId> build(const Caller& caller, const std::string& name, const TemplateBuildOptions& options);

private:
    Result<JobResult> runBuild(const std::string& name, const TemplateBuildOptions& options, const JobContext& job);
    Result<InstalledTemplate> install(const TemplateInfo& before, const TemplateDefinition& wanted,
                                      const BuiltTemplate& built);
    /// What the store has, remembered for newestVersion().
    Result<std::vector<InstalledTemplate>> readInstalled();
    Result<TemplateInfo> describe(const TemplateDefinition& definition,
                                  const std::vector<InstalledTemplate>& installed);

    Ports m_ports;
    JobService& m_jobs;
    std::function<void(const std::string&)> m_whenInstalled;
    std::mutex m_newestMutex;
    std::optional<std::map<std::string, std::string>> m_newest; ///< name to version; none: not read yet
    std::mutex m_buildMutex; ///< one build at a time: it uses disk, network and both cores
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/model/template.hpp"
#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/repositories.hpp"
#include "core/services/job_service.hpp"

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

/// Templates: what there is, and building them. Thread-safe.
class TemplateService {
public:
    struct Ports {
        DefinitionStore& definitions;
        TemplateStore& store;
        TemplateBuilder& builder;
        AccelerationProbe& acceleration;
        InstanceRepository& instances;
    };
    TemplateService(Ports ports, JobService& jobs);

    Result<std::vector<TemplateInfo>> list();
    /// NotFound lists the templates that there are; InvalidArgument when its definition is broken.
    Result<TemplateInfo> find(const std::string& name);
    /// Begins a build; root only. `force` builds although nothing has changed.
    Result<JobId> build(const Caller& caller, const std::string& name, bool force);

private:
    Result<JobResult> runBuild(const std::string& name, bool force, const JobContext& job);
    Result<TemplateInfo> describe(const TemplateDefinition& definition,
                                  const std::vector<InstalledTemplate>& installed);

    Ports m_ports;
    JobService& m_jobs;
    std::mutex m_buildMutex; ///< one build at a time: it uses disk, network and both cores
};

} // namespace bulkhead::core

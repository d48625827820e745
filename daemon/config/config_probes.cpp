// SPDX-License-Identifier: Apache-2.0
#include "config/config_probes.hpp"

namespace bulkhead::config {

using core::Finding;
using core::FindingStatus;

std::vector<Finding> DefinitionsProbe::examine(bool) {
    const auto loaded = m_definitions.loadDomains();
    if (loaded.problems.empty()) {
        return {{.check = "definitions",
                 .status = FindingStatus::Ok,
                 .text = std::to_string(loaded.domains.size()) + " domain definitions, all readable",
                 .fix = {}}};
    }
    std::vector<Finding> findings;
    for (const auto& problem : loaded.problems) {
        findings.push_back(
            {.check = "definitions",
             .status = FindingStatus::Problem,
             .text = problem.error.message,
             .fix = "mend or remove the file, then restart bulkheadd; the other domains are not affected"});
    }
    return findings;
}

std::vector<Finding> PolicyProbe::examine(bool) {
    std::size_t files = 0;
    std::error_code error; // an absent folder is the normal case
    for (const auto& entry : std::filesystem::directory_iterator(m_folder, error)) {
        files += entry.path().extension() == ".policy" ? 1U : 0U;
    }
    if (files == 0) {
        return {{.check = "policy",
                 .status = FindingStatus::Ok,
                 .text = "nothing moves between domains in this version, so no rules are needed",
                 .fix = {}}};
    }
    return {{.check = "policy",
             .status = FindingStatus::Warning,
             .text = std::to_string(files) + " policy files in " + m_folder.string() +
                     " are not in force: this version has nothing that they govern",
             .fix = "keep them for a later version, or move them away"}};
}

} // namespace bulkhead::config

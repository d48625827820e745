// SPDX-License-Identifier: Apache-2.0
#include "imaging/disk_probe.hpp"

#include <algorithm>

namespace bulkhead::imaging {

namespace {

using core::Finding;
using core::FindingStatus;

/// A template's build and some running domains fit into this.
constexpr Bytes kComfortableSpace = 6 * kGiB;

/// By then, Debian has had security updates for a browser.
constexpr std::int64_t kDay = 24 * 60 * 60;
constexpr std::int64_t kMostDaysUnchecked = 14;

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

} // namespace

std::vector<Finding> DiskProbe::examine(bool /*refresh*/) {
    const auto space = m_space(m_stateFolder);
    if (!space) {
        return {
            {"disk", FindingStatus::Problem, space.error().message, "Look at the disk of " + m_stateFolder.string()}};
    }
    Finding finding{"disk", FindingStatus::Ok, {}, {}};
    finding.text = formatBytes(space->available) + " of " + formatBytes(space->total) + " free for " +
                   m_stateFolder.string() + " (" + std::to_string(percentUsed(*space)) + " % used)";
    if (percentUsed(*space) >= kMostPercentUsed) {
        finding.status = FindingStatus::Problem;
        finding.fix =
            "Free some space: from " + std::to_string(kMostPercentUsed) + " % on, nothing is started or built";
    } else if (space->available < kComfortableSpace) {
        finding.status = FindingStatus::Warning;
        finding.fix =
            "Free some space: building a template and running domains take up to " + formatBytes(kComfortableSpace);
    }
    return {finding};
}

std::vector<Finding> MemoryProbe::examine(bool /*refresh*/) {
    const auto memory = m_memory.memory();
    if (memory.total == 0) {
        return {{"memory", FindingStatus::Problem, "the host's memory cannot be found out", "Look at /proc/meminfo"}};
    }
    Finding finding{"memory", FindingStatus::Ok, {}, {}};
    finding.text = formatBytes(memory.available) + " of " + formatBytes(memory.total) + " available";
    for (const core::TemplateDefinition& definition : m_definitions.loadTemplates().templates) {
        const auto size = definition.sizes.find(definition.defaultSize);
        if (size == definition.sizes.end() || size->second.memory <= memory.available) {
            continue;
        }
        const bool fitsNever = size->second.memory > memory.total;
        finding.status = fitsNever ? FindingStatus::Problem : std::max(finding.status, FindingStatus::Warning);
        finding.text += "; size \"" + definition.defaultSize + "\" of template \"" + definition.name + "\" needs " +
                        formatBytes(size->second.memory);
        finding.fix = "Close programs or stop domains, or use a smaller size";
    }
    return {finding};
}

std::vector<Finding> TemplatesProbe::examine(bool /*refresh*/) {
    std::vector<Finding> findings;
    const auto loaded = m_definitions.loadTemplates();
    for (const core::DefinitionProblem& problem : loaded.problems) {
        findings.push_back({"templates", FindingStatus::Problem, problem.error.message, "Correct the file"});
    }
    const auto installed = m_store.installed();
    if (!installed) {
        findings.push_back({"templates", FindingStatus::Problem, installed.error().message, "Look at the image store"});
        return findings;
    }
    std::vector<std::string> ready;
    for (const core::TemplateDefinition& definition : loaded.templates) {
        const auto found = std::find_if(installed->begin(), installed->end(),
                                        [&](const auto& one) { return one.name == definition.name; });
        const std::string fix = "sudo bulkhead template build " + definition.name;
        if (found == installed->end()) {
            findings.push_back(
                {"templates", FindingStatus::Warning, "template \"" + definition.name + "\" is not built", fix});
            continue;
        }
        const auto hash = m_builder.definitionHash(definition);
        if (!hash) {
            findings.push_back({"templates", FindingStatus::Problem, hash.error().message, "Install Bulkhead again"});
        } else if (*hash != found->definitionHash) {
            findings.push_back(
                {"templates", FindingStatus::Warning,
                 "template \"" + definition.name + "\" was built from an older definition, agent or builder", fix});
        } else if (const std::int64_t days = (m_clock.now() - found->checkedAt) / kDay; days >= kMostDaysUnchecked) {
            findings.push_back({"templates", FindingStatus::Warning,
                                "the packages of template \"" + definition.name + "\" are those of " +
                                    std::to_string(days) + " days ago, without the security updates since",
                                "sudo bulkhead template update " + definition.name});
        } else {
            ready.push_back(definition.name);
        }
    }
    if (!ready.empty()) {
        findings.push_back({"templates", FindingStatus::Ok, "built and up to date: " + joined(ready), ""});
    }
    if (loaded.templates.empty()) {
        findings.push_back(
            {"templates", FindingStatus::Problem, "no template is defined", "Install Bulkhead's template files"});
    }
    return findings;
}

} // namespace bulkhead::imaging

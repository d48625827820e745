// SPDX-License-Identifier: Apache-2.0
#include "core/services/contain_service.hpp"

#include "base/log.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/pause_service.hpp"
#include "core/services/snapshot_taker.hpp"

#include <algorithm>

namespace bulkhead::core {
namespace {

/// Whoever contains a domain does not wait for what it is just doing longer than this.
constexpr std::chrono::seconds kPatience{60};

/// Where it could go back to: the nearest of its nodes that can be trusted, and is not what an earlier incident left.
std::optional<SnapshotId> goodFrom(const Lineage& lineage, std::optional<SnapshotId> at) {
    for (std::size_t steps = 0; at && steps <= lineage.size(); ++steps) {
        const auto found = std::find_if(lineage.begin(), lineage.end(),
                                        [&](const SnapshotRecord& record) { return record.id == *at; });
        if (found == lineage.end() || (found->phase == SnapshotRecord::Phase::Present && found->suspect.empty() &&
                                       found->reason != kReasonEvidence)) {
            return found == lineage.end() ? std::nullopt : at;
        }
        const SnapshotRecord* const next = lastGood(lineage, *at);
        at = next == nullptr ? std::nullopt : std::optional(next->id);
    }
    return std::nullopt;
}

Error stands(const Error& why, const std::string& name) {
    return why.in("domain \"" + name + "\" is paused, but what it is now could not be kept");
}

} // namespace

Result<JobId> ContainService::contain(const Caller& caller, const DomainId& domain) {
    const auto entry = m_table.find(domain);
    if (!entry || !caller.mayUse(entry->record.owner)) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    return m_jobs.begin("contain", caller.uid, [this, domain](const JobContext& job) { return run(domain, job); });
}

Result<JobResult> ContainService::run(const DomainId& domain, const JobContext& job) {
    const auto operation = m_table.beginOperation(domain, "contain", kPatience);
    if (!operation) {
        return fail(operation.error());
    }
    auto entry = m_table.find(domain);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    ContainResult result;
    result.domain = domain;
    const std::string name = entry->record.name;
    const auto before = entry->head.node ? m_lineage.find(*entry->head.node) : std::nullopt;
    switch (entry->state) {
    case DomainState::Running:
    case DomainState::Paused:
        job.report("Pausing", 0.05);
        if (auto held = m_pauses.hold(*entry); !held) {
            return fail(held.error());
        }
        break;
    case DomainState::Stopped:
        break;
    case DomainState::Suspended:
        if (before && before->domain != domain) {
            return fail(ErrorCode::WrongState, "domain \"" + name + "\" has not run since it was made of snapshot " +
                                                   shortId(before->id) + ": there is nothing to contain");
        }
        if (before) {
            // Nothing has happened since: that snapshot is the evidence.
            auto pinned = m_lineage.edit(before->id, [](SnapshotRecord& record) {
                record.reason = kReasonEvidence;
                record.isPinned = true;
            });
            if (!pinned) {
                return fail(pinned.error());
            }
            result.evidence = before->id;
            result.lastGood = goodFrom(m_lineage.all(), before->parent);
            return JobResult(std::move(result));
        }
        break;
    case DomainState::Failed:
        if (!entry->instance) {
            break; // its home is what it is
        }
        [[fallthrough]];
    case DomainState::Starting:
    case DomainState::Stopping:
        return fail(ErrorCode::WrongState, "domain \"" + name + "\" is " + std::string(nameOf(entry->state)) +
                                               "; try again in a moment, or: bulkhead domain stop --force " + name);
    }
    entry = m_table.find(domain);
    if (!entry) {
        return fail(ErrorCode::NotFound, "no such domain");
    }
    const bool isStanding = entry->state == DomainState::Paused;
    auto taken = m_taker.take(*entry,
                              {.kind = SnapshotKind::Full,
                               .reason = std::string(kReasonEvidence),
                               .label = {},
                               .isLast = false,
                               .isPinned = true,
                               .isStanding = isStanding},
                              job);
    if (!taken) {
        return fail(isStanding ? stands(taken.error(), name) : taken.error());
    }
    log::warning("a domain is contained",
                 {{"DOMAIN", domain.text()}, {"EVIDENCE", taken->record.id.text()}, {"STATE", nameOf(entry->state)}});
    result.evidence = taken->record.id;
    result.lastGood = goodFrom(m_lineage.all(), taken->record.parent);
    result.note = std::move(taken->note);
    return JobResult(std::move(result));
}

} // namespace bulkhead::core

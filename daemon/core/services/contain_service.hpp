// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/caller.hpp"
#include "core/services/job_service.hpp"

namespace bulkhead::core {

class DomainTable;
class LineageTable;
class PauseService;
class SnapshotTaker;

/// The first act after an incident: whatever is going on in a domain stands still, and what it is at that moment is
/// kept, memory and disks. Thread-safe.
class ContainService {
public:
    ContainService(DomainTable& table, PauseService& pauses, SnapshotTaker& taker, LineageTable& lineage,
                   JobService& jobs)
        : m_table(table)
        , m_pauses(pauses)
        , m_taker(taker)
        , m_lineage(lineage)
        , m_jobs(jobs) {}

    /// The job's result: ContainResult. When the evidence cannot be taken the domain stands still all the same, and the
    /// error says so. One that does not run: its disks are kept. NotFound; WrongState while it starts or stops.
    Result<JobId> contain(const Caller& caller, const DomainId& domain);

private:
    Result<JobResult> run(const DomainId& domain, const JobContext& job);

    DomainTable& m_table;
    PauseService& m_pauses;
    SnapshotTaker& m_taker;
    LineageTable& m_lineage;
    JobService& m_jobs;
};

} // namespace bulkhead::core

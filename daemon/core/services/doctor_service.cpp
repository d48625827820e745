// SPDX-License-Identifier: Apache-2.0
#include "core/services/doctor_service.hpp"

namespace bulkhead::core {

DoctorService::DoctorService(std::vector<HostProbe*> probes, JobService& jobs)
    : m_probes(std::move(probes))
    , m_jobs(jobs) {}

JobId DoctorService::begin(const Caller& caller, bool refresh) {
    return m_jobs.begin("doctor", caller.uid, [this, refresh](const JobContext& job) -> Result<JobResult> {
        std::vector<Finding> findings;
        for (std::size_t i = 0; i < m_probes.size(); ++i) {
            if (job.cancelToken().stop_requested()) {
                return fail(ErrorCode::Cancelled, "cancelled");
            }
            job.report("Examining the host", static_cast<double>(i) / static_cast<double>(m_probes.size()));
            for (auto& finding : m_probes[i]->examine(refresh)) {
                findings.push_back(std::move(finding));
            }
        }
        return JobResult(std::move(findings));
    });
}

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#include "core/services/doctor_service.hpp"

namespace bulkhead::core {

DoctorService::DoctorService(Probes probes, AccelerationProbe& acceleration, TemplateStore& templates, JobService& jobs)
    : m_probes(std::move(probes))
    , m_acceleration(acceleration)
    , m_templates(templates)
    , m_jobs(jobs) {}

Result<JobId> DoctorService::begin(const Caller& caller, bool refresh) {
    if (refresh && !caller.isRoot()) {
        return fail(ErrorCode::NotAuthorized,
                    "testing the acceleration again needs root: sudo bulkhead doctor --refresh");
    }
    auto probes = m_probes.forEverybody;
    if (caller.isRoot()) {
        probes.insert(probes.end(), m_probes.forRoot.begin(), m_probes.forRoot.end());
    }
    return m_jobs.begin("doctor", caller.uid, [this, probes, refresh](const JobContext& job) -> Result<JobResult> {
        if (refresh) {
            job.report("Testing the acceleration", 0);
            testAccelerationAgain();
        }
        std::vector<Finding> findings;
        for (std::size_t i = 0; i < probes.size(); ++i) {
            if (job.cancelToken().stop_requested()) {
                return fail(ErrorCode::Cancelled, "cancelled");
            }
            job.report("Examining the host", static_cast<double>(i) / static_cast<double>(probes.size()));
            for (auto& finding : probes[i]->examine(refresh)) {
                findings.push_back(std::move(finding));
            }
        }
        return JobResult(std::move(findings));
    });
}

/// Any template's kernel will do; with none built there is nothing to boot, and the finding says so.
void DoctorService::testAccelerationAgain() {
    const auto installed = m_templates.installed();
    if (installed && !installed->empty()) {
        const auto& folder = installed->front().directory;
        m_acceleration.determine(folder / "vmlinuz", folder / "initrd.img", true);
    }
}

} // namespace bulkhead::core

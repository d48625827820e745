// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/model/caller.hpp"
#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "core/services/job_service.hpp"

#include <vector>

namespace bulkhead::core {

/// Examines the host for `bulkhead doctor`. Thread-safe.
class DoctorService {
public:
    struct Probes {
        std::vector<HostProbe*> forEverybody;
        std::vector<HostProbe*> forRoot; ///< what they say may name other people's domains
    };
    /// All must outlive this.
    DoctorService(Probes probes, AccelerationProbe& acceleration, TemplateStore& templates, JobService& jobs);
    /// `refresh` runs what is otherwise remembered (the boot self-test) again; that takes up to 10 s and decides for
    /// everybody, so it is root's.
    Result<JobId> begin(const Caller& caller, bool refresh);

private:
    void testAccelerationAgain();

    Probes m_probes; ///< not owned
    AccelerationProbe& m_acceleration;
    TemplateStore& m_templates;
    JobService& m_jobs;
};

} // namespace bulkhead::core

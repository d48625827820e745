// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/model/caller.hpp"
#include "core/ports/host.hpp"
#include "core/services/job_service.hpp"

#include <vector>

namespace bulkhead::core {

/// Examines the host for `bulkhead doctor`. Thread-safe.
class DoctorService {
public:
    DoctorService(std::vector<HostProbe*> probes, JobService& jobs);
    /// `refresh` runs what is otherwise remembered (the boot self-test) again; that takes up to 10 s.
    JobId begin(const Caller& caller, bool refresh);

private:
    std::vector<HostProbe*> m_probes; ///< not owned
    JobService& m_jobs;
};

} // namespace bulkhead::core

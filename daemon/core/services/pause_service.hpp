// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_links.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/repositories.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"

#include <chrono>
#include <functional>

namespace bulkhead::core {

/// Lets a domain stand still with all that it has in memory, and go on. Both run as jobs, whose result is the domain.
/// Thread-safe.
class PauseService {
public:
    struct Ports {
        Hypervisor& hypervisor;
        GuestLinks& links;
        InstanceRepository& instances;
    };
    /// `busy`: how long a job waits for another operation on its domain.
    PauseService(DomainTable& table, Ports ports, JobService& jobs,
                 std::chrono::milliseconds busy = std::chrono::seconds(30))
        : m_table(table)
        , m_ports(ports)
        , m_jobs(jobs)
        , m_busy(busy) {}

    /// Called for each guest that goes on, from a job's thread. To be set before the first.
    void whenResumed(std::function<void(const InstanceId&)> told) { m_whenResumed = std::move(told); }

    /// WrongState unless it runs. One that is paused already: a job that is done.
    Result<JobId> pause(const Caller& caller, const DomainId& id);
    /// WrongState unless it is paused, and where a full disk has paused it: then it goes on by itself when there is
    /// room. One that runs: a job that is done.
    Result<JobId> unpause(const Caller& caller, const DomainId& id);

    /// Pauses one that runs; one that a full disk has paused does not go on by itself from now on. The caller holds its
    /// operation. WrongState.
    Status hold(const DomainEntry& entry);

private:
    Result<DomainEntry> find(const Caller& caller, const DomainId& id) const;
    Status runPause(const DomainId& id);
    Status setHeld(const DomainEntry& entry, bool isHeld);
    Status runUnpause(const DomainId& id);

    DomainTable& m_table;
    Ports m_ports;
    JobService& m_jobs;
    std::chrono::milliseconds m_busy;
    std::function<void(const InstanceId&)> m_whenResumed;
};

} // namespace bulkhead::core

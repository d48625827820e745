// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/host.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/repositories.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace bulkhead::core {

class CidLeases;
class EmulatorMonitor;
class TemplateService;
class UidLeases;

/// The sequence from "start it" to "its agent has answered", and back. Every step is undone when a later one fails, and
/// by the reconciler when the daemon dies between two. Thread-safe; the caller holds the domain's operation.
class InstanceLauncher {
public:
    struct Ports {
        Hypervisor& hypervisor;
        InstanceStore& store;
        InstanceRepository& instances;
        GuestLinks& links;
        AccelerationProbe& acceleration;
        TransportProbe& transport;
        HostMemory& memory;
        Clock& clock;
    };
    InstanceLauncher(Ports ports, TemplateService& templates, UidLeases& leases, CidLeases& cids,
                     EmulatorMonitor& monitor, DomainTable& table);

    /// Starts the domain; on success its entry holds the instance, which is recorded as running. Errors name the
    /// domain, the phase and the resource.
    Status launch(const DomainEntry& domain, const JobContext& job);
    /// Ends whatever exists of the instance (emulator, channel, files, record, uids). Goes on over errors, gives the
    /// first; what is left then is the reconciler's.
    Status tearDown(const InstanceRecord& instance, const std::optional<DomainId>& keptHome);

    /// The home that the instance of this domain claims; none: a home that goes with the instance.
    static std::optional<DomainId> keptHomeOf(const DomainEntry& domain);

private:
    struct Plan;
    Result<Plan> plan(const DomainEntry& domain);
    Status ensureHome(const DomainEntry& domain, Bytes size);
    Status chooseTransport(InstanceRecord& record);
    Status boot(const Plan& plan, const JobContext& job);

    Ports m_ports;
    TemplateService& m_templates;
    UidLeases& m_leases;
    CidLeases& m_cids;
    EmulatorMonitor& m_monitor;
    DomainTable& m_table;
};

} // namespace bulkhead::core

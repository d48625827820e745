// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/snapshot.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/host.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/memory_images.hpp"
#include "core/ports/snapshot_store.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/job_service.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace bulkhead::core {

class EmulatorMonitor;
class LineageTable;
class TemplateService;

/// Takes one snapshot of a domain. The source is not disturbed but for a pause in which nothing slow is done;
/// everything that is, is done before or after. The caller holds the domain's operation. Thread-safe.
class SnapshotTaker {
public:
    struct Ports {
        Hypervisor& hypervisor;
        Machines& machines;
        MemoryCapturer& memory;
        SnapshotStore& store;
        GuestLinks& links;
        Clock& clock;
    };
    /// `patience`: how long it goes on trying to resume a guest while the hypervisor is away.
    SnapshotTaker(Ports ports, LineageTable& lineage, TemplateService& templates, EmulatorMonitor& monitor,
                  std::chrono::milliseconds patience = std::chrono::minutes(2))
        : m_ports(ports)
        , m_lineage(lineage)
        , m_templates(templates)
        , m_monitor(monitor)
        , m_patience(patience) {}

    struct Wish {
        SnapshotKind kind = SnapshotKind::Full; ///< of a domain that runs; a stopped one has no memory
        std::string reason = std::string(kReasonManual);
        std::string label;
        /// The guest stays paused after it, for an emulator that is ended then: the snapshot is its last moment.
        bool isLast = false;
        bool isPinned = false;
        /// The guest stands still, and goes on doing so: nothing is asked of its agent.
        bool isStanding = false;
    };
    struct Taken {
        SnapshotRecord record;
        std::chrono::milliseconds pause{0}; ///< the guest stood still for so long
        std::string note;                   ///< for people, when something is to be said of it
    };
    /// The node is on disk, and the domain's head, when it returns. On failure the domain is as it was (it runs, if it
    /// did), and nothing is left.
    Result<Taken> take(const DomainEntry& domain, const Wish& wish, const JobContext& job);

private:
    struct Plan;
    Result<Plan> plan(const DomainEntry& domain, const Wish& wish);
    Status takeStopped(Plan& plan);
    Status takeDisks(Plan& plan);
    Status takeAll(Plan& plan);
    /// What the guest's agent failed to do is no reason to go without its memory: disks and memory are of the same
    /// moment whatever it does, and a guest that has been taken over is the one that a snapshot is wanted of.
    static Status forgive(Plan& plan, const Status& asked);
    Status switchLayers(Plan& plan);
    Status letGoOn(const Plan& plan);
    Result<Taken> finish(Plan& plan);
    void undo(Plan& plan);

    Ports m_ports;
    LineageTable& m_lineage;
    TemplateService& m_templates;
    EmulatorMonitor& m_monitor;
    std::chrono::milliseconds m_patience;
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/ports/guest_links.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/ports/image_store.hpp"
#include "core/ports/memory_images.hpp"
#include "core/ports/repositories.hpp"
#include "core/ports/snapshot_store.hpp"
#include "core/services/domain_table.hpp"
#include "core/services/trash_service.hpp"

#include <map>
#include <string>
#include <vector>

namespace bulkhead::core {

class EmulatorMonitor;
class InstanceLauncher;
class LifecycleService;
class LineageTable;
class UidLeases;

/// Makes records, hypervisor, channel processes and disk agree when the daemon starts: what still runs is adopted, what
/// died is said to have died, intents are finished or undone, leftovers of ours are removed. Emulators that carry our
/// mark but stand in no record are left alone and reported: they belong to another state folder.
class Reconciler {
public:
    struct Ports {
        Hypervisor& hypervisor;
        InstanceStore& store;
        TemplateStore& templates;
        TemplateBuilder& builder;
        DomainRepository& domains;
        InstanceRepository& instances;
        DefinitionStore& definitions;
        GuestLinks& links;
        SnapshotRepository& snapshots;
        SnapshotStore& snapshotStore;
        Machines& machines;
        Clock& clock;
    };
    Reconciler(Ports ports, DomainTable& table, LineageTable& lineage, UidLeases& leases, InstanceLauncher& launcher,
               LifecycleService& lifecycle, EmulatorMonitor& monitor, TrashService& trash);

    struct Report {
        unsigned adopted = 0;
        unsigned ended = 0;   ///< were recorded as running, are not
        unsigned undone = 0;  ///< intents undone or finished
        unsigned removed = 0; ///< leftovers on disk
        unsigned rebuilt = 0; ///< nodes of the lineage that the database did not know any more
        unsigned foreign = 0; ///< emulators with our mark and without a record
        std::vector<Error> problems;
    };
    /// Unavailable when records or hypervisor cannot be read: then nothing was changed, and the daemon must not go on.
    Result<Report> run();

private:
    Status loadLineage(Report& report);
    Status loadDomains(Report& report);
    void loadDeleted(std::vector<TrashService::Settled>& deleted, const std::vector<DomainDefinition>& present,
                     const std::vector<HomeOnDisk>& homes, std::vector<DomainRecord>& records, Report& report);
    DomainHead headOf(const DomainRecord& record, Report& report);
    Status settleDisks(const DomainEntry& entry, const InstanceRecord& record, Report& report);
    bool isFrozen(const DiskLayer& home) const;
    bool isSuspension(const DomainEntry& entry, const ObservedInstance& observed) const;
    bool goBack(const DomainEntry& entry, Report& report);
    void clearSuspension(const DomainEntry& entry, Report& report);
    void settleSnapshots(Report& report);
    void settleInstance(const InstanceRecord& record, const std::vector<ObservedInstance>& observed, Report& report);
    void adopt(const DomainEntry& entry, const InstanceRecord& record, const ObservedInstance& observed,
               Report& report);
    void removeLeftovers(const std::vector<InstanceRecord>& records, const std::vector<ObservedInstance>& observed,
                         Report& report);
    void finishRemovals(Report& report);
    void failDomain(const DomainId& id, const std::string& reason, Report& report);

    Ports m_ports;
    DomainTable& m_table;
    LineageTable& m_lineage;
    std::map<DomainId, DomainHead> m_heads;
    std::vector<SnapshotId> m_unfinished; ///< by an earlier daemon
    std::vector<DomainEntry> m_unused;    ///< disposables whose use has ended
    UidLeases& m_leases;
    InstanceLauncher& m_launcher;
    LifecycleService& m_lifecycle;
    EmulatorMonitor& m_monitor;
    TrashService& m_trash;
};

} // namespace bulkhead::core

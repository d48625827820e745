// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/lineage.hpp"
#include "core/ports/host.hpp"
#include "core/ports/repositories.hpp"
#include "core/ports/snapshot_store.hpp"
#include "core/services/domain_table.hpp"

#include <filesystem>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace bulkhead::core {

/// All nodes of all lineages as the daemon knows them now, and where domains stand: in memory, in the database and in
/// the manifests, in this order of trust from the last to the first. Thread-safe.
class LineageTable {
public:
    struct Ports {
        SnapshotRepository& repository;
        SnapshotStore& store;
        EventSink& events;
    };
    LineageTable(Ports ports, DomainTable& domains, std::filesystem::path snapshotsFolder)
        : m_ports(ports)
        , m_domains(domains)
        , m_folder(std::move(snapshotsFolder)) {}

    /// For the reconciler: takes what the database says.
    void load(Lineage lineage);
    [[nodiscard]] Lineage all() const;
    /// None: there is none that people can see.
    [[nodiscard]] std::optional<SnapshotRecord> find(const SnapshotId& id) const;
    /// Also of one that is being made; none: it has none, or there is no such node.
    [[nodiscard]] std::optional<SnapshotId> parentOf(const SnapshotId& id) const;
    /// On disk when it returns; replaces an earlier one of its id.
    Status save(const SnapshotRecord& record);
    /// Changes what may change of a node that people can see, in the manifest, too; the record as it is then. NotFound
    /// when it has gone.
    Result<SnapshotRecord> edit(const SnapshotId& id, const std::function<void(SnapshotRecord&)>& act);
    Status setHead(const DomainId& domain, const DomainHead& head);
    /// Takes nodes out of sight (see nodesToRemove()): children that stay get the next parent up, heads move up. What
    /// nobody needs any more leaves the disk with the next collect(), which may take long.
    Status hide(const std::vector<SnapshotId>& nodes);
    /// Forgets a node that never became one; its files go unless something lies above them.
    Status abandon(const SnapshotId& id);
    /// All files that nodes or running instances need.
    Result<std::vector<std::filesystem::path>> filesInUse() const;
    /// Erases the files of removed nodes that nothing lies above any more, and the memory of the others.
    Status collect();

private:
    Status keep(const SnapshotRecord& record);
    Status markRemoved(const Lineage& before, const std::vector<SnapshotId>& nodes);
    Status change(const SnapshotId& id, const std::function<void(SnapshotRecord&)>& act);
    void restoreHeads(const std::vector<std::pair<DomainId, DomainHead>>& moved);

    Ports m_ports;
    DomainTable& m_domains;
    std::filesystem::path m_folder;
    mutable std::mutex m_mutex; ///< guards m_lineage
    Lineage m_lineage;
    std::mutex m_collecting;
    std::mutex m_editing; ///< held from reading a record to writing it back
};

} // namespace bulkhead::core

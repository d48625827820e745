// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/output/json.hpp"
#include "client/info.hpp"

#include <cstdint>
#include <string>

/// What the verbs print of snapshots: whole texts, safe for a terminal, and JSON. Pure.
namespace bulkhead::cli {

/// What snapshots are to be seen with.
struct Lineage {
    QList<client::SnapshotInfo> snapshots; ///< all that the daemon told of
    QList<client::DomainInfo> domains;     ///< those that there are, with their paths
    std::int64_t now = 0;                  ///< seconds since 1970, for ages

    /// Null: it is gone.
    [[nodiscard]] const client::DomainInfo* domainAt(const QString& path) const;
    [[nodiscard]] const client::DomainInfo* domainNamed(const QString& name) const;
    /// As it is called now, or was then when it is gone.
    [[nodiscard]] QString domainNameOf(const client::SnapshotInfo& snapshot) const;
    /// Names of the domains that stand at it.
    [[nodiscard]] QStringList standingAt(const QString& id) const;
    [[nodiscard]] QList<client::SnapshotInfo> childrenOf(const QString& id) const;
};

/// `snapshots`: which of them, in the order of their time.
std::string snapshotTable(const Lineage& lineage, const QList<client::SnapshotInfo>& snapshots);
std::string snapshotText(const Lineage& lineage, const client::SnapshotInfo& snapshot);

Json jsonOf(const Lineage& lineage, const client::SnapshotInfo& snapshot);
Json jsonOf(const Lineage& lineage, const QList<client::SnapshotInfo>& snapshots);

/// "2026-11-29 15:04:05 (2 days ago)".
std::string timeAndAge(std::int64_t seconds, std::int64_t now);

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/snapshot.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

/// The rules of the snapshot tree. Pure functions over all records of one owner or of everybody.
namespace bulkhead::core {

using Lineage = std::vector<SnapshotRecord>;

/// None: there is none of that id that people can see.
const SnapshotRecord* findPresent(const Lineage& lineage, const SnapshotId& id);

/// The present node and all present ones below it, children after their parents.
std::vector<SnapshotId> withDescendants(const Lineage& lineage, const SnapshotId& id);

/// What `remove` takes away, parents first. WrongState for a node with children unless `isCascade`; WrongState names
/// pinned nodes, nodes in whose memory a domain is to go on, and those that a disposable began in (`livedIn`).
Result<std::vector<SnapshotId>> nodesToRemove(const Lineage& lineage, const SnapshotId& id, bool isCascade,
                                              const std::vector<SnapshotId>& suspendedIn,
                                              const std::vector<SnapshotId>& livedIn = {});

/// What goes with a disposable that was kept: the nodes that it was suspended in, parents first. Not what somebody
/// asked for, named or pinned, nor what others came from, nor `keep` (where other domains stand).
std::vector<SnapshotId> nodesOfGone(const Lineage& lineage, const DomainId& disposable,
                                    const std::vector<SnapshotId>& keep);

/// Disposables that are gone (`known`: those that are not), but left nodes that they were suspended in, because others
/// came from these.
std::vector<DomainId> goneDisposables(const Lineage& lineage, const std::vector<DomainId>& known);

/// Removed nodes of which no file is in use any more: no present node and nothing of `inUse` lies in their folders.
/// `folderOf`: where a node's own files are.
std::vector<SnapshotId> nodesToErase(const Lineage& lineage, const std::vector<std::filesystem::path>& inUse,
                                     const std::filesystem::path& snapshots);

/// All files that present nodes need: their layers with those below, and their memory's parents.
std::vector<std::filesystem::path> filesNeeded(const Lineage& lineage);

/// The present node that the disk lies above, the nearest of them; none: it lies above none.
std::optional<SnapshotId> nearestNode(const Lineage& lineage, const Disk& home);

/// The nearest present ancestor that can be trusted; none: there is none.
const SnapshotRecord* lastGood(const Lineage& lineage, const SnapshotId& id);

/// Where a head goes when nodes go: to the nearest ancestor that stays.
std::optional<SnapshotId> headAfter(const Lineage& lineage, const std::optional<SnapshotId>& head,
                                    const std::vector<SnapshotId>& removed);

struct RetentionRule {
    std::size_t mostAutomatic = 20;       ///< per domain and reason, of those that nobody asked for
    Bytes mostAutomaticBytes = 20 * kGiB; ///< per domain
};
/// Reasons that the product gives by itself; all else is the user's and stays.
bool isAutomatic(const SnapshotRecord& record);
/// Automatic nodes of the domain that are too many, the oldest first: never pinned or named ones, never `keep` (heads,
/// and what somebody was just told of). Those do not count either. One with children only if it is of a stop, a
/// suspension, an upgrade or a comparison, which the next one makes old: all that came from it keeps its data.
std::vector<SnapshotId> overRetention(const Lineage& lineage, const DomainId& domain, const RetentionRule& rule,
                                      const std::vector<SnapshotId>& keep);

} // namespace bulkhead::core

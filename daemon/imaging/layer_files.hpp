// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/ports/snapshot_store.hpp"
#include "imaging/home_manifest.hpp"
#include "imaging/image_layout.hpp"

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace bulkhead::imaging {

/// The ids among the names of a folder; others are left out.
template <class IdType> Result<std::vector<IdType>> idsIn(const std::filesystem::path& folder) {
    const auto names = listFolder(folder);
    if (!names) {
        return fail(names.error());
    }
    std::vector<IdType> ids;
    for (const std::string& name : *names) {
        if (auto id = IdType::parse(name)) {
            ids.push_back(*id);
        }
    }
    return ids;
}

/// Which layers the kept homes and the instances on disk are made of, and who has claimed which home: what the stores
/// of instances and of snapshots both must know. Not locked: calls for one domain do not overlap.
class LayerFiles {
public:
    explicit LayerFiles(ImageLayout layout)
        : m_layout(std::move(layout)) {}

    [[nodiscard]] Result<HomeManifest> homeManifest(const DomainId& domain) const;
    /// The layers of a kept home, the active one first. NotFound when there is no such home; HostFailure when its
    /// manifest cannot be read and its files do not say either.
    [[nodiscard]] Result<core::Disk> home(const DomainId& domain) const;
    /// Atomically; on disk when it returns.
    [[nodiscard]] Status replaceHome(const DomainId& domain, const HomeManifest& manifest) const;
    /// Removes what lies in the home's folder besides its manifest and its active layer: names of layers that are
    /// frozen now, and new ones that were never used. Nothing while it is unknown what is active.
    void removeUnused(const DomainId& domain) const;

    /// Makes the layers below the active one readable for every emulator, unchangeable for all: those of a snapshot
    /// that was not finished still belong to the emulator that wrote them. NotFound when one is missing.
    [[nodiscard]] Status shareFrozen(const core::Disk& disk) const;

    /// As noted; of a kept home what its manifest says. NotFound without a note.
    [[nodiscard]] Result<core::SnapshotStore::InstanceDisks> disksOf(const InstanceId& instance) const;
    /// Atomically. Not brought to the disk: an instance does not outlive the host.
    [[nodiscard]] Status noteDisks(const InstanceId& instance, const core::SnapshotStore::InstanceDisks& disks) const;

    [[nodiscard]] Status noteClaim(const InstanceId& instance, const DomainId& domain) const;
    void dropClaim(const InstanceId& instance) const;
    /// None: it has claimed no home. An error when that cannot be told.
    [[nodiscard]] Result<std::optional<DomainId>> claimedBy(const InstanceId& instance) const;
    enum class Unreadable {
        Fails,
        ClaimsNothing,
    };
    /// The instance other than `self` (none: any) that has claimed the home; none.
    [[nodiscard]] Result<std::optional<InstanceId>>
    otherClaimantOf(const DomainId& domain, const std::optional<InstanceId>& self, Unreadable unreadable) const;

private:
    ImageLayout m_layout;
};

/// A name for a new layer that was never used: an emulator that found an old one again would read itself as its base.
std::string newLayerName(std::string_view disk);

} // namespace bulkhead::imaging

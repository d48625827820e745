// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/snapshot_store.hpp"
#include "imaging/disk_space.hpp"
#include "imaging/image_layout.hpp"
#include "imaging/layer_files.hpp"
#include "imaging/snapshot_images.hpp"
#include "imaging/snapshot_nodes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace bulkhead::imaging {

/// core::SnapshotStore in ImageLayout's folders:
///
///     snapshots/SNAPSHOT/                  0710 root:emulators
///       system.qcow2, home.img|home.qcow2  0440 root:emulators once published; what the domain wrote until then
///       memory.delta, devices              0400 root; of a full one
///       begun.toml                         0400 root; until it is published: the new layers that were made for it
///       manifest.toml                      0400 root; see SnapshotManifest. Comes last: a folder without it is
///       unfinished
///     memory/DIGEST.ram                    the whole memory of a node; removed with the last one that it is of
///
/// Home and system are hard links to what was the active layer of the domain. Its own names for them go when its
/// instance ends, at once when there is none. Layers above name the node's.
///
/// What a crash leaves, after each step:
///   begin()    a folder without a manifest, new layers that no home names: remove() takes both
///   commit()   the same, but the home lies above the node's layer now: it must stay (remove() says Busy), and the next
///              start of the domain makes the layer readable for its emulator
///   publish()  the node
class FileSnapshotStore final : public core::SnapshotStore {
public:
    explicit FileSnapshotStore(ImageLayout layout, SpaceProbe space = fileSystemSpace)
        : m_layout(std::move(layout))
        , m_layers(m_layout)
        , m_nodes(m_layout)
        , m_space(std::move(space))
        , m_images(m_layout, m_nodes, m_space) {}

    Result<core::SnapshotFiles> begin(const SnapshotId& id, const core::SnapshotSource& source) override;
    Status commit(const core::SnapshotFiles& files, const core::SnapshotSource& source) override;
    Status rollBack(const core::SnapshotFiles& files, const core::SnapshotSource& source) override;
    Result<core::SnapshotRecord> publish(core::SnapshotRecord record, const core::SnapshotFiles& files) override;
    Status update(const core::SnapshotRecord& record) override;
    /// Busy when a home, an instance or another node lies above it.
    Status remove(const SnapshotId& id) override;
    Status dropMemory(const SnapshotId& id) override;
    Result<std::vector<core::SnapshotRecord>> all() override;
    Result<std::vector<SnapshotId>> onDisk() override { return idsIn<SnapshotId>(m_layout.snapshots()); }

    Result<core::Disk> home(const DomainId& domain) override { return m_layers.home(domain); }
    Status resetHome(const DomainId& domain, uid_t owner, const std::string& name, const core::Disk& below) override;
    Result<std::vector<std::filesystem::path>> filesInUse() override;
    Result<core::Disk> systemOf(const core::SnapshotRecord& record) override;
    Result<InstanceDisks> disksOf(const InstanceId& instance) override { return m_layers.disksOf(instance); }

    Status settle(const InstanceId& instance, const std::optional<DomainId>& keptHome,
                  const core::Machines::NewLayers& active) override;

    Result<core::MemoryImageRef> memoryImage(const core::SnapshotRecord& record) override {
        return m_images.image(record);
    }
    Status keepImages(const std::vector<std::filesystem::path>& needed) override { return m_images.keep(needed); }
    std::optional<core::DamagedPart> findDamage(const core::SnapshotRecord& record) override {
        return m_nodes.findDamage(record);
    }
    std::optional<core::DamagedPart> findMissing(const core::SnapshotRecord& record) override {
        return m_nodes.findMissing(record);
    }

private:
    /// The disks of the source as they are now; the system's is empty without an instance.
    Result<InstanceDisks> activeDisks(const core::SnapshotSource& source) const;
    Status makeFiles(core::SnapshotFiles& files, const core::SnapshotSource& source, const InstanceDisks& active) const;
    Status makeLayer(const std::filesystem::path& file, const core::DiskLayer& below,
                     const core::SnapshotSource& source) const;
    Status checkUnused(const SnapshotId& id);
    void removeNewLayers(const SnapshotId& id) const;

    ImageLayout m_layout;
    LayerFiles m_layers;
    SnapshotNodes m_nodes;
    SpaceProbe m_space;
    SnapshotImages m_images;
};

} // namespace bulkhead::imaging

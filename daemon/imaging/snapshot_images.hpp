// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/snapshot_store.hpp"
#include "imaging/disk_space.hpp"
#include "imaging/image_layout.hpp"
#include "imaging/snapshot_nodes.hpp"

#include <filesystem>
#include <mutex>
#include <vector>

namespace bulkhead::imaging {

/// The whole memories of nodes, as emulators map them: see memory::composeImage(). Thread-safe; one is made at a time.
class SnapshotImages {
public:
    /// `nodes` must outlive this.
    SnapshotImages(ImageLayout layout, SnapshotNodes& nodes, SpaceProbe space)
        : m_layout(std::move(layout))
        , m_nodes(nodes)
        , m_space(std::move(space)) {}

    /// See core::SnapshotStore::memoryImage().
    Result<core::MemoryImageRef> image(const core::SnapshotRecord& record);
    /// See core::SnapshotStore::keepImages().
    Status keep(const std::vector<std::filesystem::path>& needed);
    /// Removes those that no node has, none came from, and that are not in `wanted`. In doubt all stay.
    void removeUnused(std::vector<std::filesystem::path> wanted);

private:
    Result<core::MemoryImageRef> compose(const SnapshotManifest& manifest) const;

    ImageLayout m_layout;
    SnapshotNodes& m_nodes;
    SpaceProbe m_space;
    std::mutex m_mutex;
};

} // namespace bulkhead::imaging

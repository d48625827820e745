// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/snapshot_store.hpp"
#include "imaging/image_layout.hpp"
#include "imaging/snapshot_manifest.hpp"

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::imaging {

/// Names of a node's files; its home is home.img or home.qcow2.
constexpr std::string_view kSystemPart = "system.qcow2";
constexpr std::string_view kDeltaPart = "memory.delta";
constexpr std::string_view kDevicesPart = "devices";

/// The published nodes on disk: their manifests, and whether their files are what those say.
class SnapshotNodes {
public:
    explicit SnapshotNodes(ImageLayout layout)
        : m_layout(std::move(layout)) {}

    /// NotFound: there is no such node, or it is not published.
    [[nodiscard]] Result<SnapshotManifest> manifest(const SnapshotId& id) const;
    /// Atomically; on disk when it returns.
    [[nodiscard]] Status replaceManifest(const SnapshotManifest& manifest) const;
    /// Reads a manifest, lets `change` at it, and replaces it. One at a time.
    [[nodiscard]] Status change(const SnapshotId& id, const std::function<void(SnapshotManifest&)>& change);
    /// Takes a file of the node away from whoever wrote it, brings it to the disk and digests it.
    [[nodiscard]] Result<ManifestPart> seal(const std::filesystem::path& file) const;

    /// See core::SnapshotStore.
    [[nodiscard]] std::optional<core::DamagedPart> findMissing(const core::SnapshotRecord& record) const;
    [[nodiscard]] std::optional<core::DamagedPart> findDamage(const core::SnapshotRecord& record) const;
    /// One file against its digest.
    [[nodiscard]] static std::optional<core::DamagedPart> findDamage(const std::filesystem::path& file,
                                                                     const ManifestPart& part);
    /// That a memory image has the guest's size and cannot be written to.
    [[nodiscard]] static std::optional<core::DamagedPart> findMissing(const core::MemoryImageRef& image, Bytes memory);

    /// True for the node's own files that emulators open by themselves.
    [[nodiscard]] static bool isLayer(std::string_view part);

private:
    [[nodiscard]] std::filesystem::path manifestFile(const SnapshotId& id) const;
    [[nodiscard]] Access accessOf(const std::filesystem::path& file) const {
        return isLayer(file.filename().native()) ? m_layout.sharedFile() : m_layout.sealedFile();
    }
    [[nodiscard]] std::optional<core::DamagedPart> findMissingPart(const std::filesystem::path& file,
                                                                   const ManifestPart& part) const;
    [[nodiscard]] std::optional<core::DamagedPart> findMissingBelow(const core::DiskLayer& layer) const;

    ImageLayout m_layout;
    std::mutex m_changing;
};

} // namespace bulkhead::imaging

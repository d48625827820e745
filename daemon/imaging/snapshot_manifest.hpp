// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/snapshot.hpp"
#include "imaging/manifest_reader.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace bulkhead::imaging {

/// What lies beside the files of a node of the lineage: all of its record, and what its own files are.
struct SnapshotManifest {
    core::SnapshotRecord record;
    std::map<std::string, ManifestPart> parts; ///< by the names of the files in the node's folder
    /// The digest of its whole memory (see core::MemoryImageRef) once an image of that has been made; empty before.
    std::string memoryImage;
};

/// `state`: the folder of the store.
std::string writeSnapshotManifest(const SnapshotManifest& manifest, const std::filesystem::path& state);
/// Reads what writeSnapshotManifest() wrote; `file` is for messages. A manifest of a later format is an error.
Result<SnapshotManifest> readSnapshotManifest(std::string_view text, const std::string& file,
                                              const std::filesystem::path& state);

} // namespace bulkhead::imaging

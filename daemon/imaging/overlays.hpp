// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <filesystem>

/// The tools that make disks.
namespace bulkhead::imaging {

/// The size of the disk that the guest sees through this layer, read without following anything that stands in it: an
/// emulator that its guest has taken over may have written it. HostFailure for a qcow2 file that is none, or that keeps
/// its data in another file (we make no such).
Result<Bytes> diskSizeOf(const core::DiskLayer& layer);

/// Makes a qcow2 file of the same size over a base, of which diskSizeOf() alone is read. It must not exist.
Status makeOverlay(const std::filesystem::path& overlay, const core::DiskLayer& base);

/// Makes a sparse raw file (mode 0600) with an empty ext4 file system whose root folder is owned by the guest's root.
/// It must not exist. On disk when this returns.
Status makeHomeFileSystem(const std::filesystem::path& file, Bytes size);

/// Makes the disk that the guest sees larger, and follows nothing that stands in the layer. InvalidArgument when it is
/// larger already. On disk when this returns. Layers below stay as they are.
Status growLayer(const core::DiskLayer& layer, Bytes size);

/// What makeHomeFileSystem() writes, with room to spare.
constexpr Bytes kHomeFileSystemNeeds = 32 * kMiB;

} // namespace bulkhead::imaging

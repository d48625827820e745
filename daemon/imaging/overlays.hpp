// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <filesystem>

/// The tools that make disks.
namespace bulkhead::imaging {

/// Makes a qcow2 file over a base. It must not exist.
Status makeOverlay(const std::filesystem::path& overlay, const core::DiskLayer& base);

/// Makes a sparse raw file (mode 0600) with an empty ext4 file system whose root folder is owned by the guest's root.
/// It must not exist. On disk when this returns.
Status makeHomeFileSystem(const std::filesystem::path& file, Bytes size);

/// Makes a raw file larger, and reads nothing of it. InvalidArgument when it is larger already. On disk when this
/// returns.
Status growRawFile(const std::filesystem::path& file, Bytes size);

/// What makeHomeFileSystem() writes, with room to spare.
constexpr Bytes kHomeFileSystemNeeds = 32 * kMiB;

} // namespace bulkhead::imaging

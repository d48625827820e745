// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/ports/snapshot_store.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace bulkhead::imaging {

constexpr std::string_view kInstanceDisksName = "disks.toml";

/// The text of disks.toml in an instance's folder. `state`: the folder of the store.
std::string writeInstanceDisks(const core::SnapshotStore::InstanceDisks& disks, const std::filesystem::path& state);
/// Reads what writeInstanceDisks() wrote; `file` is for messages.
Result<core::SnapshotStore::InstanceDisks> readInstanceDisks(std::string_view text, const std::string& file,
                                                             const std::filesystem::path& state);

} // namespace bulkhead::imaging

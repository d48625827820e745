// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/services/snapshot_service.hpp"
#include "dbus/options.hpp"

#include <optional>
#include <string>

/// What callers say of snapshots, checked as far as it can be without knowing any. Pure.
namespace bulkhead::dbus {

/// InvalidArgument unless it has the form of a snapshot's id.
Result<SnapshotId> snapshotIdFrom(const std::string& text);
Result<core::SnapshotService::Options> takeOptionsFrom(const Options& options);
Result<core::SnapshotService::RevertOptions> revertOptionsFrom(const Options& options);
Result<core::SnapshotService::ForkOptions> forkOptionsFrom(const Options& options);

/// What SetSnapshot is to change; none: it stays.
struct SnapshotChanges {
    std::optional<bool> isPinned;
    std::optional<std::string> label;
};
Result<SnapshotChanges> snapshotChangesFrom(const Options& changes);

} // namespace bulkhead::dbus

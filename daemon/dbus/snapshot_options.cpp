// SPDX-License-Identifier: Apache-2.0
#include "dbus/snapshot_options.hpp"

#include "base/escaping.hpp"

#include <utility>

namespace bulkhead::dbus {
namespace {

template <class T> Result<T> finished(const OptionReader& reader, T value) {
    if (auto read = reader.finish(); !read) {
        return fail(read.error());
    }
    return value;
}

} // namespace

Result<SnapshotId> snapshotIdFrom(const std::string& text) {
    if (const auto id = SnapshotId::parse(text)) {
        return *id;
    }
    return fail(ErrorCode::InvalidArgument,
                "\"" + escapeUntrusted(text, 64) + "\" is not the id of a snapshot; ListSnapshots has them");
}

Result<core::SnapshotService::Options> takeOptionsFrom(const Options& options) {
    OptionReader reader(options);
    core::SnapshotService::Options wanted;
    wanted.isDiskOnly = reader.flag("disk");
    wanted.reason = reader.text("reason");
    wanted.label = reader.text("label");
    return finished(reader, std::move(wanted));
}

Result<core::SnapshotService::RevertOptions> revertOptionsFrom(const Options& options) {
    OptionReader reader(options);
    core::SnapshotService::RevertOptions wanted;
    wanted.keepsPresent = reader.flag("keep", wanted.keepsPresent);
    wanted.isDiskOnly = reader.flag("disk");
    return finished(reader, wanted);
}

Result<core::SnapshotService::ForkOptions> forkOptionsFrom(const Options& options) {
    OptionReader reader(options);
    core::SnapshotService::ForkOptions wanted;
    wanted.label = reader.textIfGiven("label");
    wanted.egress = reader.textIfGiven("egress");
    wanted.isDiskOnly = reader.flag("disk");
    return finished(reader, std::move(wanted));
}

Result<SnapshotChanges> snapshotChangesFrom(const Options& changes) {
    OptionReader reader(changes);
    SnapshotChanges wanted;
    wanted.isPinned = reader.flagIfGiven("pinned");
    wanted.label = reader.textIfGiven("label");
    return finished(reader, std::move(wanted));
}

} // namespace bulkhead::dbus

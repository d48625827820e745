// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::core {

enum class SnapshotKind {
    Disk, ///< the disks alone
    Full, ///< the disks, the memory and the devices of a running domain, all of the same moment
};
std::string_view nameOf(SnapshotKind kind);

/// An image of guest memory and what it is called by content (memory::ImageChunks).
struct MemoryImageRef {
    std::filesystem::path file;
    std::string digest;
    bool operator==(const MemoryImageRef&) const = default;
};

/// What a full snapshot's memory and devices are bound to: a machine that differs in any of it reads them wrongly.
struct MachineKey {
    Bytes memory = 0;
    unsigned vcpus = 1;
    unsigned heads = 0;
    Audio audio = Audio::Off;
    Acceleration acceleration = Acceleration::Emulation;
    Transport transport = Transport::VirtioSerial;
    std::string version; ///< Machines::version()
    bool operator==(const MachineKey&) const = default;
};

/// Memory as it is stored: the pages that differ from `parent` (none: from zeros).
struct SnapshotMemory {
    MachineKey machine;
    std::filesystem::path delta;
    std::filesystem::path devices;
    std::optional<MemoryImageRef> parent; ///< never changes while a snapshot names it
    bool operator==(const SnapshotMemory&) const = default;
};

/// A node of the lineage: what a domain was at one moment. Nothing of it ever changes but the fields that say so.
struct SnapshotRecord {
    enum class Phase {
        Creating, ///< intent: undone by the reconciler
        Present,
        Removed, ///< nobody sees it; its files stay for as long as others lie above them (see filesInUse())
    };
    SnapshotId id;
    std::optional<SnapshotId> parent; ///< what its domain came from
    DomainId domain;                  ///< whose it is; it may be gone
    uid_t owner = 0;
    std::string domainName; ///< at that time, for people
    SnapshotKind kind = SnapshotKind::Disk;
    Phase phase = Phase::Creating; ///< changes
    std::int64_t createdAt = 0;    ///< seconds since the epoch
    /// Changes when somebody asks for one that was automatic.
    std::string reason;    ///< "manual", "before-revert", "suspend", …; or the user's words
    std::string label;     ///< changes; the user's name for it, may be empty
    bool isPinned = false; ///< changes; no retention rule removes it
    std::string suspect;   ///< changes; why it cannot be trusted; empty: it can
    std::string templateName;
    std::string templateVersion;
    std::string size; ///< its name
    /// The layers that it froze and those below, the topmost first. Empty: the domain was stopped, and so had none.
    Disk system;
    Disk home;
    std::optional<SnapshotMemory> memory; ///< of a full one
    Bytes sizeOnDisk = 0;                 ///< of what is its own

    bool operator==(const SnapshotRecord&) const = default;
};

/// Where a domain stands in its lineage.
struct DomainHead {
    std::optional<SnapshotId> node; ///< the parent of the next snapshot
    /// The next start goes on in this node's memory: its disks have not been written to since. Set by suspend, revert
    /// and fork.
    bool isSuspended = false;
    /// The next start uses the version of the template that this node holds (see holdsVersion()), not the newest. Set
    /// by revert and fork.
    bool isAtVersion = false;
    bool operator==(const DomainHead&) const = default;
};

/// The reasons that the product gives by itself; see isAutomatic().
inline constexpr std::string_view kReasonManual = "manual";
inline constexpr std::string_view kReasonBeforeRevert = "before-revert";
inline constexpr std::string_view kReasonBeforeUpgrade = "before-upgrade";
inline constexpr std::string_view kReasonOnStop = "on-stop";
inline constexpr std::string_view kReasonSuspend = "suspend";
inline constexpr std::string_view kReasonFork = "fork";
inline constexpr std::string_view kReasonDiff = "diff";
/// What a domain was when it was contained. Not automatic: no rule removes it. What begins there reaches nothing.
inline constexpr std::string_view kReasonEvidence = "evidence";

/// What SnapshotRecord::suspect begins with when only the memory cannot be trusted.
inline constexpr std::string_view kSuspectMemory = "memory: ";

/// The node has no system disk of its own, and stands for its version of the template all the same: the home belongs to
/// what that version's programs had made of it.
bool holdsVersion(const SnapshotRecord& record);

/// What people are shown of an id, and may type.
std::string shortId(const SnapshotId& id);

/// A label or a reason: at most 200 bytes of UTF-8 without control characters.
Status checkSnapshotText(std::string_view what, std::string_view text);

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/snapshot.hpp"
#include "core/ports/memory_images.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::core {

/// The active layers of a domain that is about to be taken a snapshot of.
struct SnapshotSource {
    std::optional<InstanceId> instance; ///< none: it is stopped, and only its home is taken
    std::optional<DomainId> keptHome;   ///< whose kept home it is; none: a home that goes with the instance
    uid_t emulatorUid = 0;              ///< with an instance
    /// What else will be written: memory, devices.
    Bytes needs = 0;
};

/// What begin() has made.
struct SnapshotFiles {
    std::filesystem::path folder;
    Disk system; ///< as it will be once frozen; empty without an instance
    Disk home;
    std::optional<std::filesystem::path> newSystem; ///< the empty layer that becomes the active one
    std::filesystem::path newHome;
    std::filesystem::path devices; ///< to be written; not there yet
    std::filesystem::path delta;   ///< to be written; not there yet
};

/// A file of a node that is not what it was.
struct DamagedPart {
    std::filesystem::path file;
    std::string why;
};

/// Nodes of the lineage on disk, each a folder of its own with the layers that it froze, its memory and a manifest from
/// which its record can be made again. Blocking, thread-safe; calls for one domain do not overlap (the caller holds its
/// operation).
///
/// The order of a snapshot: begin(), [the guest stands still], commit(), [the emulator writes to the new layers],
/// publish(). A layer that is about to be frozen lies in the node's folder by a second name (a hard link) from begin()
/// on, so that nothing is ever moved or copied, and the emulator's own name for it stays good.
class SnapshotStore {
public:
    virtual ~SnapshotStore() = default;
    /// Makes the node's folder, new empty layers above the present ones, and takes nothing away from the domain.
    /// NoSpace when `needs` would pass the limit of the store (95 % of its file system; the message has the numbers).
    /// Busy when somebody else has claimed the home.
    virtual Result<SnapshotFiles> begin(const SnapshotId& id, const SnapshotSource& source) = 0;
    /// From now on the next start of the domain uses the new layers; on disk when it returns. Comes BEFORE the emulator
    /// is told to write to them: an empty layer above one that is still written to loses nothing, the reverse would.
    virtual Status commit(const SnapshotFiles& files, const SnapshotSource& source) = 0;
    /// Takes commit() back: nobody has written to the new layers. What cannot be taken back is left as it is, which
    /// loses nothing either.
    virtual Status rollBack(const SnapshotFiles& files, const SnapshotSource& source) = 0;
    /// Makes the frozen layers, memory and devices unchangeable (0440, root's), digests them, writes the manifest,
    /// brings everything to the disk. The record as it is then, with sizeOnDisk. After commit().
    virtual Result<SnapshotRecord> publish(SnapshotRecord record, const SnapshotFiles& files) = 0;
    /// Rewrites what may change of a record (see SnapshotRecord) in its manifest.
    virtual Status update(const SnapshotRecord& record) = 0;
    /// Removes the node's folder. Success when it is not there. The caller has made sure that nothing lies above it.
    /// Before publish(), after begin(): the folder and the new layers that no domain uses.
    virtual Status remove(const SnapshotId& id) = 0;
    /// Removes the memory and devices of a node that was removed, but whose layers others lie above. Success when there
    /// are none.
    virtual Status dropMemory(const SnapshotId& id) = 0;
    /// All that have a manifest, for when the database was lost; damaged ones are left out and logged.
    virtual Result<std::vector<SnapshotRecord>> all() = 0;
    /// All folders, also unfinished ones, for the reconciler.
    virtual Result<std::vector<SnapshotId>> onDisk() = 0;

    /// The layers of a node's system disk: its own, or of a domain that was stopped its template's. NotFound when that
    /// version of the template has gone.
    virtual Result<Disk> systemOf(const SnapshotRecord& record) = 0;
    /// The layers of a domain's kept home, the active one first.
    virtual Result<Disk> home(const DomainId& domain) = 0;
    /// Replaces a domain's home by an empty layer above `below` (a node's Disk::layers), atomically: either the old or
    /// the new one is there afterwards. What was in the active layer is gone. For revert, and before a start from
    /// memory. Busy while an instance has claimed it. The home is made when there is none yet (fork), with the note of
    /// whose it is.
    virtual Status resetHome(const DomainId& domain, uid_t owner, const std::string& name, const Disk& below) = 0;
    /// The files of layers that some domain's home or some instance's disks lie above (everything but the active ones),
    /// and the memory images that instances were started from. Nodes that hold any of them must stay.
    virtual Result<std::vector<std::filesystem::path>> filesInUse() = 0;
    /// The layers of a running instance's disks and the memory image it began from, as prepareInstance() and commit()
    /// noted them.
    struct InstanceDisks {
        Disk system;
        Disk home;
        std::optional<MemoryImageRef> memory;
        std::vector<Disk> inspected;
    };
    virtual Result<InstanceDisks> disksOf(const InstanceId& instance) = 0;
    /// Makes the notes of a running instance's disks (and of the kept home) say what the emulator really writes to,
    /// when they name an empty layer above that. WrongState when what it writes to has become a part of a snapshot: it
    /// must not go on (it was to end with that snapshot).
    virtual Status settle(const InstanceId& instance, const std::optional<DomainId>& keptHome,
                          const Machines::NewLayers& active) = 0;

    /// The whole memory of a full node as one file that emulators can start from: made when first needed, kept for the
    /// next time. HostFailure names the damaged file.
    virtual Result<MemoryImageRef> memoryImage(const SnapshotRecord& record) = 0;
    /// Removes all such files but `needed`: what was made for a start only is made again for the next. Not while
    /// something starts.
    virtual Status keepImages(const std::vector<std::filesystem::path>& needed) = 0;
    /// Reads everything of the node and compares it with the digests of its manifest; none: it is whole. Layers of
    /// other nodes below it are not read.
    virtual std::optional<DamagedPart> findDamage(const SnapshotRecord& record) = 0;
    /// What checks before each use can do without reading everything: all files of the node's chains are there, with
    /// the sizes and the mode that they were published with.
    virtual std::optional<DamagedPart> findMissing(const SnapshotRecord& record) = 0;
};

} // namespace bulkhead::core

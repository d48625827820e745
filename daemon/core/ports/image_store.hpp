// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"
#include "core/model/snapshot.hpp"
#include "core/model/template.hpp"

#include <functional>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::core {

/// Installed templates on disk. Blocking, thread-safe.
class TemplateStore {
public:
    virtual ~TemplateStore() = default;
    /// The newest installed version of each template; broken ones (missing file, bad manifest) are left out and logged.
    virtual Result<std::vector<InstalledTemplate>> installed() = 0;
    /// NotFound names the template and how to build it.
    virtual Result<InstalledTemplate> find(const std::string& name) = 0;
    /// True: that version is there and whole.
    virtual bool has(const std::string& name, const std::string& version) = 0;
    /// Copies the built files in, hashes them, writes the manifest, renames into place: either the whole version is
    /// there afterwards or nothing of it. From now on it is the newest, whatever the clock says. Older versions go, but
    /// for the one before (a start that is being prepared may have chosen it) and those that `versionsInUse` names: it
    /// is asked right before each removal; when it fails, nothing is removed.
    using VersionsInUse = std::function<Result<std::vector<std::string>>()>;
    virtual Result<InstalledTemplate> install(const TemplateDefinition& definition, const BuiltTemplate& built,
                                              const VersionsInUse& versionsInUse) = 0;
    /// True when the newest installed version is of the same definition and has the very same packages: installing
    /// `built` would gain nothing. From now on that version counts as checked now.
    virtual Result<bool> confirm(const std::string& name, const BuiltTemplate& built) = 0;
    /// Removes what an interrupted install left.
    virtual Status removeLeftovers() = 0;
};

/// What prepareInstance() needs.
struct InstancePlan {
    InstanceId instance;
    std::string templateName;
    std::string templateVersion;
    /// The domain whose kept home is claimed; none: a fresh home that goes with the instance.
    std::optional<DomainId> keptHome;
    /// What the system disk lies above, the topmost first; empty: the template's root.img.
    Disk systemBase;
    /// A home that goes with the instance lies above this, instead of an empty file system. Without `keptHome` only.
    Disk homeBase;
    /// Each gets an empty layer above, which goes with the instance.
    std::vector<InspectedDisk> inspected;
    /// The memory that the instance will begin with; noted for SnapshotStore::disksOf().
    std::optional<MemoryImageRef> memory;
    Bytes homeSize = 0;
    uid_t emulatorUid = 0;
    GuestToken token{};
};

struct InstanceFiles {
    Disk system;
    Disk home;
    std::vector<InspectedDisk> inspected;
    std::filesystem::path kernel;
    std::filesystem::path initrd;
    std::filesystem::path tokenFile;
    std::filesystem::path agentSocket;
    gid_t emulatorGid = 0; ///< the group that may read templates; emulators run with it
};

/// A kept home as it lies on the disk. Owner and name are what was noted when it was made: they serve to find the
/// domain again when the database is lost. None and empty when the note is missing or damaged.
struct HomeOnDisk {
    DomainId id;
    std::optional<uid_t> owner;
    std::string name;

    bool operator==(const HomeOnDisk&) const = default;
};

/// Homes of domains and the files of running instances. Blocking, thread-safe.
class InstanceStore {
public:
    virtual ~InstanceStore() = default;
    /// Makes an empty ext4 home disk, root-owned, and notes beside it whose it is. NoSpace when the disk cannot hold
    /// what is written now.
    virtual Status createHome(const DomainId& domain, uid_t owner, const std::string& name, Bytes size) = 0;
    /// Makes the disk larger; the guest makes its file system fill it at its next start (nothing on this side reads
    /// what a guest wrote). Success when it has that size, or when there is no home yet. InvalidArgument when it is
    /// larger already, Busy while an instance has claimed it.
    virtual Status growHome(const DomainId& domain, Bytes size) = 0;
    /// Deleting what is not there is success.
    virtual Status removeHome(const DomainId& domain) = 0;
    /// Makes overlays, token file and runtime folder, owned by the emulator's uid; the kept home changes owner.
    virtual Result<InstanceFiles> prepareInstance(const InstancePlan& plan) = 0;
    /// Removes all of it; the kept home goes back to root. Success when nothing is there.
    virtual Status removeInstance(const InstanceId& instance, const std::optional<DomainId>& keptHome) = 0;
    /// What is on disk, for the reconciler.
    virtual Result<std::vector<InstanceId>> instancesOnDisk() = 0;
    virtual Result<std::vector<HomeOnDisk>> homesOnDisk() = 0;
    /// Total and free bytes of the store's file system.
    struct Space {
        Bytes total = 0;
        Bytes available = 0;
    };
    virtual Result<Space> space() = 0;
};

/// Kept homes for emulators that were begun before it was known whose they would be. Blocking, thread-safe.
class LateHomes {
public:
    virtual ~LateHomes() = default;
    /// Of the disk that the guest would see. NotFound when there is no such home.
    virtual Result<Bytes> sizeOfHome(const DomainId& domain) = 0;
    /// Claims the home of `plan.keptHome` for an instance that prepareInstance() gave a fresh one, which stays beside
    /// it until the instance is removed. After an error removeInstance() gives back whatever was claimed.
    virtual Result<Disk> giveHome(const InstancePlan& plan) = 0;
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/snapshot.hpp"
#include "core/model/warm_image.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

/// Guests whose memory is written down, and guests that begin from such a picture.
namespace bulkhead::core {

/// The emulator's part. Blocking, thread-safe; errors as those of Hypervisor.
class Machines {
public:
    virtual ~Machines() = default;
    /// For an emulator that Hypervisor::start() began with InstanceSpec::memoryImage, which therefore stands still:
    /// gives it the state of its devices and lets the guest run. Whether the guest is well only its agent can tell.
    /// `home`: what takes the place of its home before the guest runs. It belongs to the emulator's user and has the
    /// size of the one that the emulator was begun with, an empty layer that nothing was written to; nothing is written
    /// to this one either. After an error that emulator is of no use, but may have the disk open until it ends.
    virtual Status load(const InstanceId& id, const std::filesystem::path& devices,
                        const std::optional<Disk>& home) = 0;
    /// Pauses the guest and writes the state of its devices to `file`, which must not exist; whoever keeps that brings
    /// it to the disk. The guest stays paused, also after an error.
    virtual Status pauseAndSave(const InstanceId& id, const std::filesystem::path& file) = 0;
    /// Lets the emulator write to new layers from now on, all of them or none: what was active becomes the layer below.
    /// The files are there, empty, and belong to it. For a paused or a running guest. Unavailable when it cannot be
    /// told whether it happened (libvirtd died in the middle): see activeLayers().
    struct NewLayers {
        std::optional<std::filesystem::path> system; ///< vda
        std::optional<std::filesystem::path> home;   ///< vdb
    };
    virtual Status switchLayers(const InstanceId& id, const NewLayers& layers) = 0;
    /// The files that the emulator itself says it writes to. libvirt may think otherwise after a crash; the emulator is
    /// right.
    virtual Result<NewLayers> activeLayers(const InstanceId& id) = 0;
    /// Whatever of this host a picture is bound to besides the machine's description: the emulator's version, and under
    /// KVM the processor. Text for comparing, one line.
    virtual Result<std::string> version(Acceleration acceleration) = 0;
};

/// One capture of a running guest's memory: made ready while it runs, copied while it stands still, written after. The
/// destructor takes back what is not finished. Not thread-safe.
class RunningCapture {
public:
    virtual ~RunningCapture() = default;
    /// Copies the pages that are the emulator's own into a buffer. The guest stands still.
    virtual Status copy() = 0;
    /// Drops the pages that are as in the parent, writes the rest to the file; on disk when this returns.
    virtual Status finish() = 0;
};

/// Copies guest memory out of an emulator. Blocking, thread-safe.
class MemoryCapturer {
public:
    virtual ~MemoryCapturer() = default;
    /// Writes all memory of the paused emulator `pid` to `file`, which must not exist: `size` bytes, pages of zeros as
    /// holes. On disk when this returns. The image's digest (see MemoryImageRef).
    virtual Result<std::string> captureWhole(pid_t pid, Bytes size, const std::filesystem::path& file) = 0;
    struct CaptureRequest {
        pid_t emulator = 0;
        Bytes memory = 0;                        ///< of the guest
        std::optional<MemoryImageRef> begunFrom; ///< what the emulator maps; none: the guest has booted
        std::filesystem::path delta;             ///< must not exist
    };
    /// Finds the guest's memory, maps a buffer for it and takes the disk space; the guest runs. NoSpace, LimitExceeded.
    virtual Result<std::unique_ptr<RunningCapture>> prepare(const CaptureRequest& request) = 0;
    /// How much memory of the emulator is its own now: what a capture would have to copy at most. Cheap; bytes.
    virtual Result<Bytes> privateMemory(pid_t emulator) = 0;
};

/// Warm images on disk, each beside the template version that it belongs to; they go with it. Blocking, thread-safe.
class WarmImageStore {
public:
    virtual ~WarmImageStore() = default;
    /// Files that snapshots or running instances need.
    using FilesInUse = std::function<Result<std::vector<std::filesystem::path>>()>;
    /// None: there is none for this key, or a damaged one, which is logged. With an empty label any label's will do.
    virtual std::optional<WarmImage> find(const WarmImageKey& key) = 0;
    /// Makes one for the key's label where find() has none for it: nobody's becomes that label's; otherwise another's
    /// is copied, which takes a second or so. There are kMostImages of a template version at most: for one more the one
    /// that was not used for the longest goes, and more where that is needed for space; not those that `filesInUse`
    /// names a file of. NotFound: there is none to copy. NoSpace.
    static constexpr std::size_t kMostImages = 12;
    virtual Result<WarmImage> provide(const WarmImageKey& key, const FilesInUse& filesInUse) = 0;
    /// A start begins from it now.
    virtual void noteUse(const WarmImage& image) = 0;
    /// All of a template version.
    virtual std::vector<WarmImage> all(const std::string& templateName, const std::string& templateVersion) = 0;
    /// A folder for the parts `memory` and `devices`. Invisible until it is published, gone with the
    /// next start of the daemon otherwise. `needs`: bytes that will be written; NoSpace when there is not that much.
    virtual Result<std::filesystem::path> begin(const WarmImageKey& key, Bytes needs) = 0;
    /// Makes the parts unchangeable and gives them a place of their own; others of this template, size, acceleration
    /// and transport go, since nothing would begin from them any more. `system`: the layer of the system disk that the
    /// captured guest wrote to, which is copied; nobody may write to it any more.
    /// `memoryDigest`: of the part `memory`, see MemoryImageRef. Images that `filesInUse` names a file of stay where
    /// they are, but no start finds them any more; it is asked right before each removal. Those of other labels are
    /// replaced too: the new one is nobody's.
    virtual Result<WarmImage> publish(const WarmImageKey& key, const std::filesystem::path& folder,
                                      const std::filesystem::path& system, const std::string& memoryDigest,
                                      const FilesInUse& filesInUse) = 0;
    virtual void discard(const std::filesystem::path& folder) = 0;
    /// Out of use: it did not bring a guest to life. Guests that run from it go on; one that has taken its place stays.
    virtual void remove(const WarmImage& image) = 0;
};

} // namespace bulkhead::core

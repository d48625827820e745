// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/warm_image.hpp"

#include <filesystem>
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
    virtual Status load(const InstanceId& id, const std::filesystem::path& devices) = 0;
    /// Pauses the guest and writes the state of its devices to `file`, which must not exist. It stays paused, also
    /// after an error.
    virtual Status pauseAndSave(const InstanceId& id, const std::filesystem::path& file) = 0;
    /// Whatever of this host a picture is bound to besides the machine's description: the emulator's version, and under
    /// KVM the processor. Text for comparing, one line.
    virtual Result<std::string> version(Acceleration acceleration) = 0;
};

/// Copies guest memory out of an emulator. Blocking, thread-safe.
class MemoryCapturer {
public:
    virtual ~MemoryCapturer() = default;
    /// Writes all memory of the paused emulator `pid` to `file`, which must not exist: `size` bytes, pages of zeros as
    /// holes. On disk when this returns.
    virtual Status captureWhole(pid_t pid, Bytes size, const std::filesystem::path& file) = 0;
};

/// Warm images on disk, each beside the template version that it belongs to; they go with it. Blocking, thread-safe.
class WarmImageStore {
public:
    virtual ~WarmImageStore() = default;
    /// None: there is none for this key, or a damaged one, which is logged.
    virtual std::optional<WarmImage> find(const WarmImageKey& key) = 0;
    /// All of a template version.
    virtual std::vector<WarmImage> all(const std::string& templateName, const std::string& templateVersion) = 0;
    /// A folder for the parts `memory` and `devices`. Invisible until it is published, gone with the
    /// next start of the daemon otherwise. `needs`: bytes that will be written; NoSpace when there is not that much.
    virtual Result<std::filesystem::path> begin(const WarmImageKey& key, Bytes needs) = 0;
    /// Makes the parts unchangeable and gives them a place of their own; others of this template, size, acceleration
    /// and transport go, since nothing would begin from them any more. `system`: the layer of the system disk that the
    /// captured guest wrote to, which is copied; nobody may write to it any more.
    virtual Result<WarmImage> publish(const WarmImageKey& key, const std::filesystem::path& folder,
                                      const std::filesystem::path& system) = 0;
    virtual void discard(const std::filesystem::path& folder) = 0;
    /// Out of use: it did not bring a guest to life. Guests that run from it go on; one that has taken its place stays.
    virtual void remove(const WarmImage& image) = 0;
};

} // namespace bulkhead::core

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "core/ports/memory_images.hpp"
#include "imaging/disk_space.hpp"
#include "imaging/image_layout.hpp"

#include <mutex>

namespace bulkhead::imaging {

/// core::WarmImageStore below the image store:
///
///     templates/NAME/VERSION/warm/DIGEST-N/  0710 root:emulators; DIGEST is of the key without the label, N is never
///                                            used again
///       memory, devices, system.qcow2        0440 root:emulators, never changed
///       memory.chunks                        0440 root:emulators; makes images of snapshots above it cheap
///       manifest.toml                        the key, and of each part its size and content digest; replaced when an
///                                            image that was nobody's gets a label
///       used                                 its time is that of the last start from it
///       retired                              when it is there no start finds the image: it is only kept for those that
///                                            began from it, or lie above it
class FileWarmImageStore final : public core::WarmImageStore {
public:
    /// `clock` must outlive this.
    FileWarmImageStore(ImageLayout layout, core::Clock& clock, SpaceProbe space = fileSystemSpace)
        : m_layout(std::move(layout))
        , m_clock(clock)
        , m_space(std::move(space)) {}

    std::optional<core::WarmImage> find(const core::WarmImageKey& key) override;
    Result<core::WarmImage> provide(const core::WarmImageKey& key, const FilesInUse& filesInUse) override;
    void noteUse(const core::WarmImage& image) override;
    std::vector<core::WarmImage> all(const std::string& templateName, const std::string& templateVersion) override;
    Result<std::filesystem::path> begin(const core::WarmImageKey& key, Bytes needs) override;
    Result<core::WarmImage> publish(const core::WarmImageKey& key, const std::filesystem::path& folder,
                                    const std::filesystem::path& system, const std::string& memoryDigest,
                                    const FilesInUse& filesInUse) override;
    void discard(const std::filesystem::path& folder) override;
    /// Whether anything lies above it is not known here: it is out of use at once, and goes with the next publish().
    void remove(const core::WarmImage& image) override;

private:
    [[nodiscard]] Result<std::filesystem::path> warmFolder(const std::string& name, const std::string& version) const;
    [[nodiscard]] Result<core::WarmImage> load(const std::filesystem::path& folder) const;
    Result<core::WarmImage> giveAway(const core::WarmImage& image, const std::string& label) const;
    Result<core::WarmImage> copyOf(const core::WarmImage& image, const std::string& label);
    /// The one of a template version that was not used for the longest, but for those in use and `kept`. False: there
    /// is none that could go.
    bool removeLeastUsed(const core::WarmImage& kept, const FilesInUse& filesInUse);
    /// Whatever has been replaced by the image in `place`, and is in use by nobody.
    void removeReplaced(const core::WarmImageKey& key, const std::filesystem::path& place,
                        const FilesInUse& filesInUse) const;
    void retire(const std::filesystem::path& folder) const;
    void removeFolder(const std::filesystem::path& folder) const;

    ImageLayout m_layout;
    core::Clock& m_clock;
    SpaceProbe m_space;
    std::mutex m_publishing;
};

} // namespace bulkhead::imaging

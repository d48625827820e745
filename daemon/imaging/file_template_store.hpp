// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "core/ports/image_store.hpp"
#include "imaging/disk_space.hpp"
#include "imaging/image_layout.hpp"

#include <mutex>

namespace bulkhead::imaging {

/// core::TemplateStore in ImageLayout's templates folder.
class FileTemplateStore final : public core::TemplateStore {
public:
    /// `clock` must outlive this.
    FileTemplateStore(ImageLayout layout, core::Clock& clock, SpaceProbe space = fileSystemSpace)
        : m_layout(std::move(layout))
        , m_clock(clock)
        , m_space(std::move(space)) {}

    Result<std::vector<core::InstalledTemplate>> installed() override;
    Result<core::InstalledTemplate> find(const std::string& name) override;
    bool has(const std::string& name, const std::string& version) override;
    /// The build's files must be regular files with one name that belong to the owner of the build's folder: its user
    /// is not trusted to have left anything else there.
    Result<core::InstalledTemplate> install(const core::TemplateDefinition& definition,
                                            const core::BuiltTemplate& built,
                                            const VersionsInUse& versionsInUse) override;
    Result<bool> confirm(const std::string& name, const core::BuiltTemplate& built) override;
    /// Of this store and of the instance store alike: everything unfinished. At the daemon's start only.
    Status removeLeftovers() override;

private:
    [[nodiscard]] Result<core::InstalledTemplate> load(const std::string& name, const std::string& version) const;
    /// Those that can be used, the newest first.
    [[nodiscard]] Result<std::vector<core::InstalledTemplate>> versionsOf(const std::string& name) const;
    [[nodiscard]] Result<core::InstalledTemplate> newest(const std::string& name) const;
    Result<core::InstalledTemplate> copyIn(const core::TemplateDefinition& definition, const core::BuiltTemplate& built,
                                           const std::filesystem::path& target);
    Status publish(core::InstalledTemplate& made, const std::filesystem::path& temporary);
    void removeOldVersions(const std::string& name, const VersionsInUse& inUse) const;

    ImageLayout m_layout;
    core::Clock& m_clock;
    SpaceProbe m_space;
    std::mutex m_installing; ///< reading needs no lock: versions appear and go whole
};

} // namespace bulkhead::imaging

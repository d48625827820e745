// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/image_store.hpp"
#include "imaging/disk_space.hpp"
#include "imaging/image_layout.hpp"
#include "imaging/layer_files.hpp"

#include <mutex>

namespace bulkhead::imaging {

/// core::InstanceStore and core::LateHomes in ImageLayout's folders.
class FileInstanceStore final : public core::InstanceStore, public core::LateHomes {
public:
    explicit FileInstanceStore(ImageLayout layout, SpaceProbe space = fileSystemSpace)
        : m_layout(std::move(layout))
        , m_layers(m_layout)
        , m_space(std::move(space)) {}

    Status createHome(const DomainId& domain, uid_t owner, const std::string& name, Bytes size) override;
    Status growHome(const DomainId& domain, Bytes size) override;
    Status removeHome(const DomainId& domain) override;
    Result<core::InstanceFiles> prepareInstance(const core::InstancePlan& plan) override;
    /// Also gives back the home that the instance itself noted, when `keptHome` is none.
    Status removeInstance(const InstanceId& instance, const std::optional<DomainId>& keptHome) override;
    Result<std::vector<InstanceId>> instancesOnDisk() override;
    Result<std::vector<core::HomeOnDisk>> homesOnDisk() override;
    Result<Space> space() override { return m_space(m_layout.state()); }
    Result<Bytes> sizeOfHome(const DomainId& domain) override;
    Result<core::Disk> giveHome(const core::InstancePlan& plan) override;

private:
    /// An empty layer of the instance above `base`.
    Result<core::Disk> addOverlay(const core::InstancePlan& plan, const char* name, core::Disk base) const;
    Result<core::Disk> makeSystem(const core::InstancePlan& plan, const std::filesystem::path& templateFolder) const;
    Result<core::Disk> claimHome(const core::InstancePlan& plan, const DomainId& domain) const;
    Result<core::Disk> makeFreshHome(const core::InstancePlan& plan);
    Result<std::filesystem::path> homeBase(Bytes size);
    [[nodiscard]] Status releaseAllOf(const DomainId& domain, const Error& why) const;
    [[nodiscard]] Status releaseHome(const DomainId& domain) const;
    [[nodiscard]] Access emulatorFile(const core::InstancePlan& plan, mode_t mode) const {
        return {mode, plan.emulatorUid, m_layout.emulatorGroup()};
    }

    ImageLayout m_layout;
    LayerFiles m_layers;
    SpaceProbe m_space;
    std::mutex m_homes; ///< making homes and bases, claiming
};

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/memory_images.hpp"
#include "hypervisor/libvirt_connection.hpp"

#include <chrono>

namespace bulkhead::hypervisor {

/// core::Machines over libvirtd and, through it, the emulator's monitor (QMP): libvirt's own words for this carry the
/// memory along, which takes a hundred times as long.
class LibvirtMachines final : public core::Machines {
public:
    struct Patience {
        /// How long an emulator may take to read the state of its devices, some megabytes at most.
        std::chrono::milliseconds load{std::chrono::seconds(20)};
        /// And to take another home, which copies nothing.
        std::chrono::milliseconds exchange{std::chrono::seconds(10)};
    };
    /// `connection` must outlive this.
    explicit LibvirtMachines(LibvirtConnection& connection)
        : LibvirtMachines(connection, Patience()) {}
    LibvirtMachines(LibvirtConnection& connection, Patience patience)
        : m_connection(connection)
        , m_patience(patience) {}

    Status load(const InstanceId& id, const std::filesystem::path& devices,
                const std::optional<core::Disk>& home) override;
    Status pauseAndSave(const InstanceId& id, const std::filesystem::path& file) override;
    Status switchLayers(const InstanceId& id, const NewLayers& layers) override;
    Result<NewLayers> activeLayers(const InstanceId& id) override;
    Result<std::string> version(core::Acceleration acceleration) override;

private:
    struct Tried {
        Status status;
        bool isAsked = true; ///< libvirt was asked to, so it may have happened
    };
    Tried trySwitch(const InstanceId& id, const std::string& xml);
    Status whatHappened(const InstanceId& id, const NewLayers& layers, Status failed);

    LibvirtConnection& m_connection;
    Patience m_patience;
};

} // namespace bulkhead::hypervisor

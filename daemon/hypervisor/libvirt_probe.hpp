// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "hypervisor/libvirt_connection.hpp"

#include <filesystem>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace bulkhead::hypervisor {

struct LibvirtProbeOptions {
    uid_t uid = 0; ///< an unprivileged user to ask QEMU as
    gid_t gid = 0; ///< the group kvm
    std::filesystem::path emulator = "/usr/bin/qemu-system-x86_64";
    std::filesystem::path kvmDevice = "/dev/kvm";
    std::filesystem::path libvirtStateFolder = "/var/lib/libvirt/qemu";
};

/// core::HostProbe for what lies between us and a running guest: the checks "libvirt", "qemu", "kvm device"
/// and "acceleration".
class LibvirtProbe final : public core::HostProbe {
public:
    /// `connection` and `acceleration` must outlive this.
    LibvirtProbe(LibvirtConnection& connection, core::AccelerationProbe& acceleration, LibvirtProbeOptions options);

    /// Always looks afresh; the acceleration is the remembered one (its test needs a template's kernel, and whoever
    /// knows the templates asks for it).
    std::vector<core::Finding> examine(bool refresh) override;

private:
    core::Finding examineLibvirt();
    core::Finding examineQemu();
    core::Finding examineKvm();
    core::Finding examineAcceleration();
    Result<std::string> askQemu(std::vector<std::string> arguments);

    LibvirtConnection& m_connection;
    core::AccelerationProbe& m_acceleration;
    LibvirtProbeOptions m_options;
};

} // namespace bulkhead::hypervisor

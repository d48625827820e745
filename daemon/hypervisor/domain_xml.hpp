// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::hypervisor {

/// A fixed, versioned machine, not the alias "q35": the guest sees the same devices whatever QEMU is installed, and a
/// memory image can be loaded by a newer QEMU. 7.2 is the oldest QEMU that we support; newer ones keep this type for
/// years, and `bulkhead doctor` says when one has dropped it.
inline constexpr std::string_view kMachineType = "pc-q35-7.2";
/// To be raised with each change of the description that a guest in a memory image would notice: devices, their places
/// and options.
inline constexpr unsigned kMachineLayout = 1;
/// The name of the virtio port in the guest: /dev/virtio-ports/org.bulkhead.agent.0.
inline constexpr std::string_view kAgentPortName = "org.bulkhead.agent.0";
/// Where spice-vdagent in the guest meets the viewer: the pointer's place on each output, nothing else.
inline constexpr std::string_view kDisplayPortName = "com.redhat.spice.0";
/// The guest finds the token in /sys/firmware/qemu_fw_cfg/by_name/<this>/raw.
inline constexpr std::string_view kTokenFwCfgName = "opt/org.bulkhead/token";
inline constexpr std::string_view kEmulatorPath = "/usr/bin/qemu-system-x86_64";

/// The kernel command line of a guest: the one place where its words stand.
std::string_view kernelCommandLine(core::Acceleration acceleration);

/// The name by which libvirt knows an instance: "bh-" and its id.
std::string domainName(const InstanceId& id);
/// Our mark. An instance's id if a libvirt domain with this name and UUID is one of ours: the name must be our prefix
/// and the very UUID. (An admin's own domain called "bh-something" is not.)
std::optional<InstanceId> instanceOf(std::string_view name, std::string_view uuid);

struct DomainXmlOptions {
    /// Where the guest's serial console is written. None (the default): it goes nowhere, since a guest writes there
    /// as much as it likes. For finding out why a template does not boot. virtlogd bounds the file, but only where
    /// libvirt uses it (stdio_handler="logd"): with "file", or without virtlogd, the guest could fill the host's disk,
    /// so this is for a person who looks on. libvirt does not offer QEMU's bounded ring buffer as a serial device; a
    /// pipe or socket needs a reader that outlives the daemon, or else the guest's console blocks.
    std::optional<std::filesystem::path> consoleLog;
    /// The library of daemon/preload, for an emulator that would open memory images for writing. None: it opens them as
    /// it likes.
    std::optional<std::filesystem::path> readonlyPreload;
};

/// The libvirt XML of an instance (DESIGN sections 6 and 9). Pure: looks at no file. InvalidArgument when the spec
/// cannot be a guest: no memory, no processor, no layer, root as the emulator's user, a path that is relative or that
/// XML cannot carry.
///
/// Files belong to the caller: libvirt changes no owner (`relabel='no'`). The emulator runs as `emulatorUid` with
/// `emulatorGid` as its only group, and must be able to read kernel, initrd, token and backing files, and to write the
/// active layers; folders above them need `x` for it. libvirt itself makes the agent's socket, as root: its folder may
/// be closed to everyone else.
Result<std::string> domainXml(const core::InstanceSpec& spec, const DomainXmlOptions& options = {});

} // namespace bulkhead::hypervisor

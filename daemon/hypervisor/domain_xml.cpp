// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/domain_xml.hpp"

#include "base/escaping.hpp"
#include "core/model/template.hpp"
#include "hypervisor/disk_xml.hpp"
#include "hypervisor/xml_writer.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace bulkhead::hypervisor {
namespace {

constexpr std::string_view kNamePrefix = "bh-";
constexpr std::string_view kQemuNamespace = "http://libvirt.org/schemas/domain/qemu/1.0";
/// See daemon/preload.
constexpr std::string_view kReadonlyFolderVariable = "BULKHEAD_READONLY_DIR";
constexpr Bytes kSmallestMemory = 64 * kMiB;
/// Translated code of one emulated guest. QEMU's default takes up to an eighth of the host's memory per guest.
constexpr std::string_view kTranslationCacheMiB = "64";
/// A browser is much more code than that: with 64 MiB it needs more than twice as long to its window.
constexpr std::string_view kDesktopTranslationCacheMiB = "256";

/// Fixed slots on the root bus: the layout is the same for every guest (memory images depend on it), and a guest boots
/// 0.2 s sooner under emulation than behind the bridges that libvirt would add, one per device.
enum Slot : unsigned {
    AgentSlot = 2,
    SystemSlot = 3,
    HomeSlot = 4,
    VideoSlot = 5,
    KeyboardSlot = 6,
    TabletSlot = 7,
    DisplayPortSlot = 8, ///< for SPICE's port, where the agent needs no virtio-serial of its own
    SoundSlot = 9,
    FirstInspectedSlot = 16,
};

/// 0 to 2 have meanings of their own, and UINT32_MAX is "any".
constexpr std::uint32_t kFirstGuestCid = 3;

Status checkTransport(const core::InstanceSpec& spec) {
    switch (spec.transport) {
    case core::Transport::VirtioSerial:
        return checkPath("agent's socket", spec.agentSocket);
    case core::Transport::Vsock:
        if (!spec.cid || *spec.cid < kFirstGuestCid || *spec.cid == std::numeric_limits<std::uint32_t>::max()) {
            return fail(ErrorCode::InvalidArgument, "a guest with vsock needs an AF_VSOCK address of its own");
        }
        return {};
    }
    return fail(ErrorCode::InvalidArgument, "unknown transport");
}

Status checkInspected(const core::InstanceSpec& spec) {
    if (spec.inspected.size() > core::kMostInspectedDisks) {
        return fail(ErrorCode::InvalidArgument, fmt::format("a guest looks into at most {} disks, not {}",
                                                            core::kMostInspectedDisks, spec.inspected.size()));
    }
    if (!spec.inspected.empty() && spec.memoryImage) {
        return fail(ErrorCode::InvalidArgument, "a guest that begins in memory has no disks to look into");
    }
    constexpr std::size_t kMostSerial = 20;
    for (const core::InspectedDisk& inspected : spec.inspected) {
        const std::string& serial = inspected.serial;
        if (serial.empty() || serial.size() > kMostSerial ||
            serial.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos) {
            return fail(ErrorCode::InvalidArgument,
                        fmt::format("\"{}\" cannot be a disk's serial", escapeUntrusted(serial)));
        }
        if (auto checked = checkDisk("disk " + serial, inspected.disk); !checked) {
            return checked;
        }
    }
    return {};
}

/// As the value of an option of QEMU, where a comma ends it.
std::string optionValue(const std::filesystem::path& path) {
    std::string value;
    for (const char letter : path.native()) {
        value += letter;
        if (letter == ',') {
            value += ',';
        }
    }
    return value;
}

Status checkSpec(const core::InstanceSpec& spec, const DomainXmlOptions& options) {
    if (spec.id.isNull()) {
        return fail(ErrorCode::InvalidArgument, "the instance has no id");
    }
    if (spec.memory < kSmallestMemory) {
        return fail(ErrorCode::InvalidArgument, fmt::format("a guest needs at least {}, not {}",
                                                            formatBytes(kSmallestMemory), formatBytes(spec.memory)));
    }
    if (spec.vcpus == 0) {
        return fail(ErrorCode::InvalidArgument, "a guest needs at least one processor");
    }
    if (spec.heads > core::kMostHeads) {
        return fail(ErrorCode::InvalidArgument,
                    fmt::format("a guest has at most {} outputs, not {}", core::kMostHeads, spec.heads));
    }
    if (spec.audio != core::Audio::Off && spec.heads == 0) {
        return fail(ErrorCode::InvalidArgument, "a guest without a display has no sound");
    }
    if (spec.emulatorUid == 0 || spec.emulatorGid == 0) {
        return fail(ErrorCode::InvalidArgument,
                    "an emulator never runs as root: it needs a user and a group of its own");
    }
    if (auto checked = checkTransport(spec); !checked) {
        return checked;
    }
    if (auto checked = checkInspected(spec); !checked) {
        return checked;
    }
    for (auto checked :
         {checkDisk("system disk", spec.system), spec.home ? checkDisk("home disk", *spec.home) : Status{},
          checkPath("kernel", spec.kernel), checkPath("initrd", spec.initrd), checkPath("token", spec.tokenFile),
          options.consoleLog ? checkPath("console log", *options.consoleLog) : Status{},
          spec.memoryImage ? checkPath("memory image", *spec.memoryImage) : Status{},
          options.readonlyPreload ? checkPath("preload", *options.readonlyPreload) : Status{}}) {
        if (!checked) {
            return checked;
        }
    }
    return {};
}

void writePciSlot(XmlWriter& xml, unsigned slot) {
    xml.empty("address", {{"type", "pci"},
                          {"domain", "0x0000"},
                          {"bus", "0x00"},
                          {"slot", fmt::format("{:#04x}", slot)},
                          {"function", "0x0"}});
}

void writeDisk(XmlWriter& xml, const core::Disk& disk, std::string_view device, unsigned slot,
               std::string_view serial = {}) {
    xml.open("disk", {{"type", "file"}, {"device", "disk"}, {"model", "virtio-non-transitional"}});
    writeDiskFiles(xml, disk);
    xml.empty("target", {{"dev", device}, {"bus", "virtio"}});
    if (!serial.empty()) {
        xml.text("serial", serial);
    }
    writePciSlot(xml, slot);
    xml.close();
}

void writeProcessor(XmlWriter& xml, core::Acceleration acceleration, unsigned heads) {
    xml.open("features");
    xml.empty("acpi");
    xml.empty("apic");
    xml.empty("smm", {{"state", "off"}});
    xml.empty("vmport", {{"state", "off"}});
    if (acceleration == core::Acceleration::Emulation) {
        xml.open("tcg");
        xml.text("tb-cache", heads > 0 ? kDesktopTranslationCacheMiB : kTranslationCacheMiB, {{"unit", "MiB"}});
        xml.close();
    }
    xml.close();
    if (acceleration == core::Acceleration::Kvm) {
        // The same model as the boot self-test tries. migratable: without features that a memory image could not carry.
        xml.empty("cpu", {{"mode", "host-passthrough"}, {"check", "none"}, {"migratable", "on"}});
    } else {
        xml.empty("cpu", {{"mode", "maximum"}, {"check", "none"}});
    }
}

void writeSerial(XmlWriter& xml, const DomainXmlOptions& options) {
    xml.open("serial", {{"type", options.consoleLog ? "file" : "null"}});
    if (options.consoleLog) {
        xml.empty("source", {{"path", options.consoleLog->native()}, {"append", "off"}});
    }
    xml.empty("target", {{"type", "isa-serial"}, {"port", "0"}});
    xml.close();
}

void writeSerialController(XmlWriter& xml, const core::InstanceSpec& spec) {
    const bool forAgent = spec.transport == core::Transport::VirtioSerial;
    if (!forAgent && spec.heads == 0) {
        return;
    }
    // Port 0 is reserved for a console, the agent's is port 1, SPICE's is the next.
    const unsigned ports = 1U + (forAgent ? 1U : 0U) + (spec.heads > 0 ? 1U : 0U);
    xml.open("controller", {{"type", "virtio-serial"},
                            {"index", "0"},
                            {"model", "virtio-non-transitional"},
                            {"ports", std::to_string(ports)}});
    writePciSlot(xml, forAgent ? AgentSlot : DisplayPortSlot);
    xml.close();
}

void writeChannel(XmlWriter& xml, std::string_view type, std::string_view name, unsigned port,
                  const std::optional<std::filesystem::path>& socket = {}) {
    xml.open("channel", {{"type", type}});
    if (socket) {
        xml.empty("source", {{"mode", "bind"}, {"path", socket->native()}});
    }
    xml.empty("target", {{"type", "virtio"}, {"name", name}});
    xml.empty("address",
              {{"type", "virtio-serial"}, {"controller", "0"}, {"bus", "0"}, {"port", std::to_string(port)}});
    xml.close();
}

void writeInput(XmlWriter& xml, std::string_view type, Slot slot) {
    xml.open("input", {{"type", type}, {"bus", "virtio"}});
    writePciSlot(xml, slot);
    xml.close();
}

/// SPICE without a socket: a viewer gets one connected descriptor per channel, each through us. The clipboard and files
/// take their own way, past policy and prompt, so SPICE's are off in the emulator, whatever viewer and guest ask for.
void writeDisplay(XmlWriter& xml, const core::InstanceSpec& spec) {
    writeInput(xml, "keyboard", KeyboardSlot);
    writeInput(xml, "tablet", TabletSlot);
    xml.open("graphics", {{"type", "spice"}});
    xml.empty("listen", {{"type", "none"}});
    // Frames go to a process on the same host: packing them costs more than it saves.
    xml.empty("image", {{"compression", "off"}});
    xml.empty("jpeg", {{"compression", "never"}});
    xml.empty("zlib", {{"compression", "never"}});
    xml.empty("playback", {{"compression", "off"}});
    xml.empty("streaming", {{"mode", "off"}});
    xml.empty("clipboard", {{"copypaste", "no"}});
    xml.empty("filetransfer", {{"enable", "no"}});
    xml.close();
    if (spec.audio == core::Audio::Out) {
        // The codec has outputs only: there is no microphone that a viewer could be asked for.
        xml.open("sound", {{"model", "ich9"}});
        xml.empty("codec", {{"type", "output"}});
        xml.empty("audio", {{"id", "1"}});
        writePciSlot(xml, SoundSlot);
        xml.close();
        xml.empty("audio", {{"id", "1"}, {"type", "spice"}});
    } else {
        // libvirt would add a sound card's other end by itself otherwise.
        xml.empty("audio", {{"id", "1"}, {"type", "none"}});
    }
    xml.open("video");
    xml.empty("model", {{"type", "virtio"}, {"heads", std::to_string(spec.heads)}, {"primary", "yes"}});
    writePciSlot(xml, VideoSlot);
    xml.close();
}

void writeDevices(XmlWriter& xml, const core::InstanceSpec& spec, const DomainXmlOptions& options) {
    xml.open("devices");
    xml.text("emulator", kEmulatorPath);
    xml.empty("controller", {{"type", "usb"}, {"model", "none"}});
    xml.empty("controller", {{"type", "pci"}, {"index", "0"}, {"model", "pcie-root"}});
    writeSerialController(xml, spec);
    writeDisk(xml, spec.system, "vda", SystemSlot);
    if (spec.home) {
        writeDisk(xml, *spec.home, "vdb", HomeSlot);
    }
    for (std::size_t i = 0; i < spec.inspected.size(); ++i) {
        writeDisk(xml, spec.inspected[i].disk, fmt::format("vd{}", static_cast<char>('c' + i)),
                  FirstInspectedSlot + static_cast<unsigned>(i), spec.inspected[i].serial);
    }
    if (spec.transport == core::Transport::VirtioSerial) {
        writeChannel(xml, "unix", kAgentPortName, 1, spec.agentSocket);
    }
    if (spec.heads > 0) {
        writeChannel(xml, "spicevmc", kDisplayPortName, spec.transport == core::Transport::VirtioSerial ? 2 : 1);
    }
    writeSerial(xml, options);
    if (spec.heads > 0) {
        writeDisplay(xml, spec);
    }
    xml.empty("memballoon", {{"model", "none"}});
    if (spec.transport == core::Transport::Vsock) {
        // libvirt, as root, opens the kernel's device and sets the address; the emulator gets the open descriptor.
        xml.open("vsock", {{"model", "virtio-non-transitional"}});
        xml.empty("cid", {{"auto", "no"}, {"address", std::to_string(*spec.cid)}});
        writePciSlot(xml, AgentSlot);
        xml.close();
    }
    xml.close();
}

/// libvirt has no words for a guest that begins from a memory image. The main memory is a private mapping of the image,
/// so the guest's writes stay its own; a second -machine is merged over libvirt's. The state of the devices comes
/// without the sections that a whole migration would have.
void writeMemoryImage(XmlWriter& xml, const core::InstanceSpec& spec, const DomainXmlOptions& options) {
    const auto argument = [&](std::string_view name, const std::string& value) {
        xml.empty("qemu:arg", {{"value", name}});
        xml.empty("qemu:arg", {{"value", value}});
    };
    xml.open("qemu:commandline");
    argument("-object", fmt::format("memory-backend-file,id=bulkhead.ram,size={},mem-path={},share=off", spec.memory,
                                    optionValue(*spec.memoryImage)));
    argument("-machine", "memory-backend=bulkhead.ram,suppress-vmdesc=on");
    argument("-global", "migration.send-configuration=off");
    argument("-incoming", "defer");
    if (options.readonlyPreload) {
        // QEMU before 8.2 opens the file for writing although it never writes to it; one that was taken over could.
        xml.empty("qemu:env", {{"name", "LD_PRELOAD"}, {"value", options.readonlyPreload->native()}});
        xml.empty("qemu:env", {{"name", kReadonlyFolderVariable}, {"value", spec.memoryImage->parent_path().native()}});
    }
    xml.close();
}

} // namespace

std::string_view kernelCommandLine(core::Acceleration) {
    // panic=-1 and reboot=t: a dead guest ends at once, by a triple fault, which QEMU turns into the end of the
    // process. cryptomgr.notests: without the self-tests of the kernel's ciphers, half of the time to the first program
    // under emulation. no_timer_check: the emulated timer is as it is.
    return "console=ttyS0 quiet panic=-1 reboot=t cryptomgr.notests no_timer_check";
}

std::string domainName(const InstanceId& id) {
    return std::string(kNamePrefix) + id.text();
}

std::optional<InstanceId> instanceOf(std::string_view name, std::string_view uuid) {
    if (!name.starts_with(kNamePrefix) || name.substr(kNamePrefix.size()) != uuid) {
        return std::nullopt;
    }
    return InstanceId::parse(uuid);
}

Result<std::string> domainXml(const core::InstanceSpec& spec, const DomainXmlOptions& options) {
    if (auto checked = checkSpec(spec, options); !checked) {
        return fail(checked.error());
    }
    const bool isKvm = spec.acceleration == core::Acceleration::Kvm;
    XmlWriter xml;
    if (spec.memoryImage) {
        xml.open("domain", {{"type", isKvm ? "kvm" : "qemu"}, {"xmlns:qemu", kQemuNamespace}});
    } else {
        xml.open("domain", {{"type", isKvm ? "kvm" : "qemu"}});
    }
    xml.text("name", domainName(spec.id));
    xml.text("uuid", spec.id.text());
    // The guest's memory stays out of a core file of the emulator.
    xml.text("memory", std::to_string(spec.memory / kKiB), {{"unit", "KiB"}, {"dumpCore", "off"}});
    xml.text("vcpu", std::to_string(spec.vcpus), {{"placement", "static"}});
    xml.open("sysinfo", {{"type", "fwcfg"}});
    xml.empty("entry", {{"name", kTokenFwCfgName}, {"file", spec.tokenFile.native()}});
    xml.close();
    xml.open("os");
    xml.text("type", "hvm", {{"arch", "x86_64"}, {"machine", kMachineType}});
    xml.text("kernel", spec.kernel.native());
    xml.text("initrd", spec.initrd.native());
    const std::string_view words = kernelCommandLine(spec.acceleration);
    xml.text("cmdline", spec.isForImage ? fmt::format("{} bulkhead.image", words) : std::string(words));
    xml.close();
    writeProcessor(xml, spec.acceleration, spec.heads);
    xml.empty("clock", {{"offset", "utc"}});
    xml.text("on_poweroff", "destroy");
    xml.text("on_reboot", "destroy");
    xml.text("on_crash", "destroy");
    xml.open("pm");
    xml.empty("suspend-to-mem", {{"enabled", "no"}});
    xml.empty("suspend-to-disk", {{"enabled", "no"}});
    xml.close();
    writeDevices(xml, spec, options);
    // A user of its own per emulator. relabel='no': the files' owners are set by us beforehand; libvirt would hand the
    // shared kernel and base images to one guest's user, and everything back to root at the end.
    xml.open("seclabel", {{"type", "static"}, {"model", "dac"}, {"relabel", "no"}});
    xml.text("label", fmt::format("+{}:+{}", spec.emulatorUid, spec.emulatorGid));
    xml.close();
    if (spec.memoryImage) {
        writeMemoryImage(xml, spec, options);
    }
    xml.close();
    return xml.take();
}

} // namespace bulkhead::hypervisor

// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_probe.hpp"

#include "base/escaping.hpp"
#include "hypervisor/domain_xml.hpp"
#include "hypervisor/kvm_device.hpp"
#include "hypervisor/libvirt_error.hpp"
#include "process/run.hpp"

#include <libvirt/libvirt.h>

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace bulkhead::hypervisor {
namespace {

using core::Finding;
using core::FindingStatus;

constexpr std::string_view kInstallQemu = "apt install qemu-system-x86";
constexpr std::string_view kInstallLibvirt = "apt install libvirt-daemon-system";
constexpr unsigned long kOldestLibvirt = 9'000'000;
constexpr std::pair<int, int> kOldestQemu{7, 2};

std::string versionText(unsigned long version) {
    return fmt::format("{}.{}.{}", version / 1'000'000, version / 1000 % 1000, version % 1000);
}

/// "QEMU emulator version 7.2.22 (Debian …)" to {7, 2}.
std::optional<std::pair<int, int>> parseQemuVersion(std::string_view text) {
    constexpr std::string_view before = "version ";
    const auto at = text.find(before);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const char* const end = text.data() + text.size();
    int major = 0;
    int minor = 0;
    const auto [dot, majorError] = std::from_chars(text.data() + at + before.size(), end, major);
    if (majorError != std::errc{} || dot == end || *dot != '.') {
        return std::nullopt;
    }
    const auto [rest, minorError] = std::from_chars(dot + 1, end, minor);
    return minorError == std::errc{} ? std::optional(std::pair(major, minor)) : std::nullopt;
}

/// True when a line of `text` begins with `word` as a whole word.
bool hasLine(std::string_view text, std::string_view word) {
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; at += word.size()) {
        const bool begins = at == 0 || text[at - 1] == '\n';
        const std::size_t after = at + word.size();
        if (begins && (after == text.size() || text[after] == ' ' || text[after] == '\n')) {
            return true;
        }
    }
    return false;
}

} // namespace

LibvirtProbe::LibvirtProbe(LibvirtConnection& connection, core::AccelerationProbe& acceleration,
                           LibvirtProbeOptions options)
    : m_connection(connection)
    , m_acceleration(acceleration)
    , m_options(std::move(options)) {}

std::vector<Finding> LibvirtProbe::examine(bool) {
    return {examineLibvirt(), examineQemu(), examineKvm(), examineAcceleration()};
}

Finding LibvirtProbe::examineLibvirt() {
    constexpr auto check = "libvirt";
    auto connection = m_connection.acquire();
    if (!connection) {
        return {check, FindingStatus::Problem, connection.error().message,
                fmt::format("systemctl start libvirtd (or {})", kInstallLibvirt)};
    }
    unsigned long version = 0;
    if (virConnectGetLibVersion(connection->get(), &version) < 0) {
        return {check, FindingStatus::Problem, lastLibvirtError("libvirt does not tell its version").message,
                "systemctl restart libvirtd"};
    }
    if (version < kOldestLibvirt) {
        return {check, FindingStatus::Problem,
                fmt::format("libvirt {} is too old: {} is needed", versionText(version), versionText(kOldestLibvirt)),
                std::string(kInstallLibvirt)};
    }
    // Each emulator has a user of its own, which is neither the owner of this folder nor in its group, and QEMU opens
    // a key file that libvirt makes for it below.
    struct stat status {};
    if (::stat(m_options.libvirtStateFolder.c_str(), &status) == 0 && (status.st_mode & S_IXOTH) == 0) {
        const std::string folder = m_options.libvirtStateFolder.string();
        return {
            check, FindingStatus::Problem,
            fmt::format("libvirt {} answers, but the emulators' users cannot enter {}", versionText(version), folder),
            fmt::format("dpkg-statoverride --force-statoverride-add --update --add libvirt-qemu libvirt-qemu 0751 {}",
                        folder)};
    }
    return {check, FindingStatus::Ok, fmt::format("libvirt {} answers", versionText(version)), ""};
}

Result<std::string> LibvirtProbe::askQemu(std::vector<std::string> arguments) {
    process::ProcessSpec spec;
    spec.program = m_options.emulator;
    spec.arguments = std::move(arguments);
    spec.environment = process::toolEnvironment();
    if (::geteuid() == 0 && m_options.uid != 0) {
        spec.identity = process::Identity{m_options.uid, m_options.gid};
    }
    process::RunOptions options;
    options.timeout = std::chrono::seconds(10);
    auto result = process::runChecked(spec, options);
    return result ? Result<std::string>(std::move(result->output)) : fail(result.error());
}

Finding LibvirtProbe::examineQemu() {
    constexpr auto check = "qemu";
    const auto versionLine = askQemu({"--version"});
    if (!versionLine) {
        return {check, FindingStatus::Problem, versionLine.error().message, std::string(kInstallQemu)};
    }
    const auto version = parseQemuVersion(*versionLine);
    if (!version) {
        return {check, FindingStatus::Problem,
                "QEMU's version cannot be read: \"" + escapeUntrusted(*versionLine, 120) + '"',
                std::string(kInstallQemu)};
    }
    const std::string name = fmt::format("QEMU {}.{}", version->first, version->second);
    if (*version < kOldestQemu) {
        return {check, FindingStatus::Problem,
                fmt::format("{} is too old: {}.{} is needed", name, kOldestQemu.first, kOldestQemu.second),
                std::string(kInstallQemu)};
    }
    struct Need {
        std::string_view option;
        std::vector<std::string> lines;
    };
    const std::string quoted = "name \"";
    const std::vector<Need> needs = {
        {"-machine", {std::string(kMachineType)}},
        {"-accel", {"tcg"}},
        {"-device", {"virtio-blk-pci", "virtio-serial-pci", "virtserialport", "isa-serial"}},
    };
    std::string missing;
    for (const Need& need : needs) {
        const auto list = askQemu({std::string(need.option), "help"});
        if (!list) {
            return {check, FindingStatus::Problem, list.error().message, std::string(kInstallQemu)};
        }
        for (const std::string& line : need.lines) {
            // Devices are listed as: name "virtio-blk-pci", bus PCI …
            if (!hasLine(*list, line) && list->find(quoted + line + '"') == std::string::npos) {
                missing += (missing.empty() ? "" : ", ") + line;
            }
        }
    }
    if (!missing.empty()) {
        return {check, FindingStatus::Problem, fmt::format("{} lacks: {}", name, missing), std::string(kInstallQemu)};
    }
    return {check, FindingStatus::Ok, fmt::format("{} has all that guests need (machine {})", name, kMachineType), ""};
}

Finding LibvirtProbe::examineKvm() {
    constexpr auto check = "kvm device";
    const KvmDevice device = examineKvmDevice(m_options.kvmDevice, m_options.gid);
    switch (device.access) {
    case KvmDevice::Access::Ok:
        return {check, FindingStatus::Ok, m_options.kvmDevice.string() + " may be opened by the group kvm", ""};
    case KvmDevice::Access::Absent:
        return {check, FindingStatus::Warning, device.reason + ": guests are emulated, which is many times slower",
                device.fix};
    case KvmDevice::Access::RootOnly:
        return {check, FindingStatus::Warning,
                device.reason + ": guests are emulated, and libvirt tests QEMU anew for seconds at each start",
                device.fix};
    }
    return {check, FindingStatus::Problem, "unknown", ""};
}

Finding LibvirtProbe::examineAcceleration() {
    constexpr auto check = "acceleration";
    const auto outcome = m_acceleration.remembered();
    if (!outcome.isKnown) {
        return {check, FindingStatus::Warning, "not known: " + outcome.reason, "start a domain"};
    }
    if (outcome.acceleration == core::Acceleration::Kvm) {
        return {check, FindingStatus::Ok, "KVM is used: " + outcome.reason, ""};
    }
    return {check, FindingStatus::Warning, "emulation is used: " + outcome.reason,
            "guests work, but are many times slower than under KVM; after a change of the host, test again with "
            "bulkhead doctor --refresh"};
}

} // namespace bulkhead::hypervisor

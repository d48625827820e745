// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"

#include <chrono>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace bulkhead::hypervisor {

/// The word on the kernel command line that makes the agent, as the first program of the guest, write
/// kSelfTestAnswer to /dev/ttyS0 and power off.
inline constexpr std::string_view kSelfTestWord = "bulkhead.selftest";
inline constexpr std::string_view kSelfTestAnswer = "BULKHEAD-SELFTEST-OK";

struct AccelerationSelfTestOptions {
    std::filesystem::path cacheFile; ///< in the daemon's state folder
    uid_t uid = 0;                   ///< an unprivileged user for the trial emulator: never root
    gid_t gid = 0;                   ///< the group kvm, which may open the device and read template kernels
    std::filesystem::path emulator = "/usr/bin/qemu-system-x86_64";
    std::filesystem::path device = "/dev/kvm";
    /// What is tried. Tests try "tcg" and "max", to see that the trial can succeed at all.
    std::string accelerator = "kvm";
    std::string processor = "host,migratable=on"; ///< what host-passthrough means in the guests' XML
    std::filesystem::path cpuInfo = "/proc/cpuinfo";
    /// Until the guest's first byte: the emulator's own start, which a busy or slow host draws out.
    std::chrono::milliseconds startLimit{20'000};
    /// From the boot loader's words to the kernel's. A kernel that runs needs a fraction of a second, one that hangs
    /// under a KVM that does not work never gets there.
    std::chrono::milliseconds limit{5000};
    /// From the kernel's words to user space: a kernel that runs may take its time (KVM below another hypervisor).
    std::chrono::milliseconds bootLimit{60'000};
    /// A trial that is not older is not made again, whoever asks.
    std::chrono::milliseconds shareFor{std::chrono::seconds(60)};
};

/// core::AccelerationProbe: boots a template's kernel under KVM with the processor model that guests get, and asks for
/// a sign of life from user space. "/dev/kvm opens" is no proof: there are hosts on which it opens and no stock kernel
/// comes up. The answer is kept in a file, and holds for as long as QEMU, the host's kernel, the processor and the
/// device stay what they were. Thread-safe; concurrent callers share one trial, and who does not need one waits for
/// none.
class AccelerationSelfTest final : public core::AccelerationProbe {
public:
    explicit AccelerationSelfTest(AccelerationSelfTestOptions options);

    /// A trial that could not be made (no emulator, no memory, no kernel to boot) is not remembered: `isKnown` is
    /// false. One that only took too long (a busy host) overturns a remembered success when a second one does, too.
    Outcome determine(const std::filesystem::path& kernel, const std::filesystem::path& initrd, bool refresh) override;
    /// Known without a trial when there is no usable device.
    Outcome remembered() override;

private:
    [[nodiscard]] std::optional<Outcome> withoutTrial() const;
    [[nodiscard]] std::string key() const;
    [[nodiscard]] std::optional<Outcome> load() const;
    void store(const Outcome& outcome) const;
    struct Trial {
        Outcome outcome;
        bool timedOut = false;
    };
    [[nodiscard]] Trial trial(const std::filesystem::path& kernel, const std::filesystem::path& initrd) const;

    struct Shared {
        std::string key;
        Outcome outcome;
        std::chrono::steady_clock::time_point at;
    };

    AccelerationSelfTestOptions m_options;
    std::mutex m_trialMutex;
    std::optional<Shared> m_last; ///< with m_trialMutex
};

} // namespace bulkhead::hypervisor

// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/acceleration_probe.hpp"

#include "base/escaping.hpp"
#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "base/unique_fd.hpp"
#include "hypervisor/domain_xml.hpp"
#include "hypervisor/kvm_device.hpp"
#include "process/run.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

namespace bulkhead::hypervisor {
namespace {

using Outcome = core::AccelerationProbe::Outcome;

constexpr int kSerialDescriptor = 3;
constexpr std::string_view kMagic = "bulkhead-acceleration 2";
/// The clock that the kernel, and nobody before it, puts before each line.
constexpr std::string_view kKernelSpeaks = "[ ";
/// Only a backstop: the watchdog ends a trial earlier.
constexpr std::chrono::minutes kLongestTrial{3};

/// Which build of the emulator this is. Its file rather than its version: no process is needed to learn it, and a
/// rebuilt QEMU of the same version counts as new.
std::string fileIdentity(const std::filesystem::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
        return "absent";
    }
    return fmt::format("{}/{}/{}.{}", status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::string kernelRelease() {
    utsname names{};
    return ::uname(&names) == 0 ? fmt::format("{} {}", names.release, names.version) : "unknown";
}

std::string processorModel(const std::filesystem::path& cpuInfo) {
    std::ifstream in(cpuInfo);
    std::string line;
    while (std::getline(in, line)) {
        if (line.starts_with("model name")) {
            const auto colon = line.find(':');
            return colon == std::string::npos ? line : line.substr(colon + 1);
        }
    }
    return "unknown";
}

/// Temporary file, fsync, rename: a reader sees the old text or the new one.
Status writeAtomically(const std::filesystem::path& file, std::string_view text) {
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    std::string temporary = file.string() + ".XXXXXX";
    UniqueFd out(::mkostemp(temporary.data(), O_CLOEXEC));
    if (!out) {
        return failErrno("cannot write " + file.string(), errno);
    }
    ScopeGuard removal([&temporary] { ::unlink(temporary.c_str()); });
    if (::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(out.get()) != 0 ||
        ::rename(temporary.c_str(), file.c_str()) != 0) {
        return failErrno("cannot write " + file.string(), errno);
    }
    removal.dismiss();
    return {};
}

std::string_view wordFor(core::Acceleration acceleration) {
    return acceleration == core::Acceleration::Kvm ? "kvm" : "emulation";
}

Outcome emulation(std::string reason) {
    return {core::Acceleration::Emulation, true, std::move(reason)};
}
Outcome untested(std::string reason) {
    return {core::Acceleration::Emulation, false, std::move(reason)};
}

/// Requests a stop when its time is over, unless it is given more before.
class Watchdog {
public:
    Watchdog(std::chrono::milliseconds time, std::stop_source target)
        : m_target(std::move(target))
        , m_end(Clock::now() + time)
        , m_thread([this](const std::stop_token& stop) { watch(stop); }) {}

    void restart(std::chrono::milliseconds time) {
        const std::lock_guard lock(m_mutex);
        m_end = Clock::now() + time;
        m_isNewEnd = true;
        m_changed.notify_one();
    }

private:
    using Clock = std::chrono::steady_clock;

    void watch(const std::stop_token& stop) {
        std::unique_lock lock(m_mutex);
        while (m_changed.wait_until(lock, stop, m_end, [this] { return m_isNewEnd; })) {
            m_isNewEnd = false;
        }
        if (!stop.stop_requested()) {
            m_target.request_stop();
        }
    }

    std::mutex m_mutex;
    std::condition_variable_any m_changed;
    std::stop_source m_target;
    Clock::time_point m_end;
    bool m_isNewEnd = false;
    std::jthread m_thread; // last: it ends before what it uses goes
};

} // namespace

AccelerationSelfTest::AccelerationSelfTest(AccelerationSelfTestOptions options)
    : m_options(std::move(options)) {}

Outcome AccelerationSelfTest::determine(const std::filesystem::path& kernel, const std::filesystem::path& initrd,
                                        bool refresh) {
    if (auto outcome = withoutTrial()) {
        return *outcome;
    }
    // Before the lock: a start must not wait for a doctor's trial.
    if (!refresh) {
        if (auto outcome = load()) {
            return *outcome;
        }
    }
    const std::lock_guard lock(m_trialMutex);
    const auto before = load();
    if (before && !refresh) {
        return *before; // made while we waited
    }
    const std::string current = key();
    if (m_last && m_last->key == current && std::chrono::steady_clock::now() - m_last->at < m_options.shareFor) {
        return m_last->outcome;
    }
    auto made = trial(kernel, initrd);
    if (made.timedOut && before && before->acceleration == core::Acceleration::Kvm) {
        made = trial(kernel, initrd);
    }
    const Outcome& outcome = made.outcome;
    if (outcome.isKnown) {
        store(outcome);
        m_last = Shared{current, outcome, std::chrono::steady_clock::now()};
        log::notice("acceleration tested", {{"USES", wordFor(outcome.acceleration)}, {"REASON", outcome.reason}});
    }
    return outcome;
}

Outcome AccelerationSelfTest::remembered() {
    if (auto outcome = withoutTrial()) {
        return *outcome;
    }
    if (auto outcome = load()) {
        return *outcome;
    }
    return untested("not tested yet: the first start of a domain boots a kernel under KVM to find out");
}

std::optional<Outcome> AccelerationSelfTest::withoutTrial() const {
    const KvmDevice device = examineKvmDevice(m_options.device, m_options.gid);
    if (device.access == KvmDevice::Access::Ok) {
        return std::nullopt;
    }
    return emulation(device.reason + "; " + device.fix);
}

std::string AccelerationSelfTest::key() const {
    return fmt::format("emulator {} kernel {} processor {} device {}", fileIdentity(m_options.emulator),
                       kernelRelease(), processorModel(m_options.cpuInfo),
                       examineKvmDevice(m_options.device, m_options.gid).identity);
}

/// Four lines: magic, key, "kvm" or "emulation", reason. Anything else is as good as no file.
std::optional<Outcome> AccelerationSelfTest::load() const {
    std::ifstream in(m_options.cacheFile);
    std::string magic;
    std::string storedKey;
    std::string acceleration;
    std::string reason;
    if (!std::getline(in, magic) || !std::getline(in, storedKey) || !std::getline(in, acceleration) ||
        !std::getline(in, reason) || magic != kMagic || storedKey != key()) {
        return std::nullopt;
    }
    if (acceleration == "kvm") {
        return Outcome{core::Acceleration::Kvm, true, reason};
    }
    return acceleration == "emulation" ? std::optional(emulation(reason)) : std::nullopt;
}

void AccelerationSelfTest::store(const Outcome& outcome) const {
    const auto text = fmt::format("{}\n{}\n{}\n{}\n", kMagic, key(), wordFor(outcome.acceleration), outcome.reason);
    if (auto written = writeAtomically(m_options.cacheFile, text); !written) {
        log::warning("the result of the acceleration test is not remembered", {{"REASON", written.error().message}});
    }
}

AccelerationSelfTest::Trial AccelerationSelfTest::trial(const std::filesystem::path& kernel,
                                                        const std::filesystem::path& initrd) const {
    std::error_code error;
    if (!std::filesystem::exists(kernel, error) || !std::filesystem::exists(initrd, error)) {
        return {untested("not tested yet: no template's kernel to boot; run bulkhead template build minimal")};
    }
    if (!std::filesystem::exists(m_options.emulator, error)) {
        return {untested(fmt::format("not tested yet: {} is not installed", m_options.emulator.string()))};
    }
    if (m_options.uid == 0 || m_options.gid == 0) {
        return {untested("not tested: the trial emulator never runs as root, and no other user is set")};
    }

    // The serial console goes to a pipe of its own, so that QEMU's words and the guest's are never mixed up. It is
    // handed over by add-fd: another user may not open the pipe again by its name. (append: else QEMU truncates it,
    // which no pipe allows.)
    const auto fd = std::to_string(kSerialDescriptor);
    process::ProcessSpec spec;
    spec.program = m_options.emulator;
    spec.arguments = {
        "-machine", std::string(kMachineType) + ",usb=off,vmport=off,smm=off", "-accel", m_options.accelerator, "-cpu",
        m_options.processor, "-m", "128", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-add-fd",
        "fd=" + fd + ",set=1", "-chardev", "file,id=serial,path=/dev/fdset/1,append=on", "-serial", "chardev:serial",
        "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny", "-kernel",
        kernel.string(), "-initrd", initrd.string(), "-append",
        // The kernel has to speak early: that tells one that is slow from one that hangs. (Of two log
        // levels the last one counts, here that of its first line.)
        fmt::format("{} loglevel=6 earlyprintk=ttyS0 {}", kernelCommandLine(core::Acceleration::Kvm), kSelfTestWord)};
    spec.environment = process::toolEnvironment();
    // The thread that starts it waits for it, so this fires only when the daemon itself dies.
    spec.deathSignal = SIGKILL;
    if (::geteuid() == 0) { // else there is no root to leave
        spec.identity = process::Identity{m_options.uid, m_options.gid};
    }

    std::stop_source enough;
    bool hasAnswered = false;
    bool hasSpoken = false;
    bool isKernelUp = false;
    Watchdog watchdog(m_options.startLimit, enough);
    process::RunOptions options;
    options.timeout = kLongestTrial;
    options.killGrace = std::chrono::milliseconds(300);
    options.maxOutput = 4096;
    options.cancel = enough.get_token();
    options.progressDescriptor = kSerialDescriptor;
    options.onProgressLine = [&](std::string_view line) {
        if (!hasSpoken) {
            hasSpoken = true;
            watchdog.restart(m_options.limit);
        }
        if (!isKernelUp && line.starts_with(kKernelSpeaks)) {
            isKernelUp = true;
            watchdog.restart(m_options.bootLimit);
        }
        if (line.find(kSelfTestAnswer) != std::string_view::npos) {
            hasAnswered = true;
            enough.request_stop(); // how it powers off does not matter
        }
    };
    const auto result = process::run(spec, options);
    if (hasAnswered) {
        return {{core::Acceleration::Kvm, true, "a guest booted under KVM"}};
    }
    if (enough.stop_requested() || (!result && result.error().code == ErrorCode::TimedOut)) {
        const auto limit = isKernelUp ? m_options.bootLimit : hasSpoken ? m_options.limit : m_options.startLimit;
        return {emulation(fmt::format("{} opens, but no guest reached user space under KVM ({} within {} s)",
                                      m_options.device.string(),
                                      isKernelUp  ? "its kernel runs, but does not get there"
                                      : hasSpoken ? "its kernel does not come up"
                                                  : "its firmware does not come up",
                                      limit.count() / 1000)),
                true};
    }
    if (!result) {
        return {untested("not tested: " + result.error().message)};
    }
    const std::string tail = process::tailForMessage(result->error, 300);
    const std::string ending = result->status.text() + (tail.empty() ? "" : ": " + tail);
    // QEMU aborts where KVM is broken, and says so where it cannot be used. Any other failure (no memory, an option
    // that it does not take, a kernel file that it may not read) tells nothing about KVM and must not be remembered.
    const bool isAboutKvm = tail.find("kvm") != std::string::npos || tail.find("KVM") != std::string::npos;
    const bool isAboutMemory = tail.find("memory") != std::string::npos;
    if (result->status.signal != 0 || (isAboutKvm && !isAboutMemory)) {
        return {emulation(
            fmt::format("{} opens, but QEMU cannot run a guest under KVM ({})", m_options.device.string(), ending))};
    }
    if (result->status.isSuccess()) {
        return {emulation(fmt::format("{} opens, but the guest ended under KVM before it reached user space",
                                      m_options.device.string()))};
    }
    return {untested(fmt::format("not tested: the trial emulator failed ({})", ending))};
}

} // namespace bulkhead::hypervisor

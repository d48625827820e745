// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/displays.hpp"
#include "core/ports/hypervisor.hpp"
#include "core/services/uid_leases.hpp"
#include "hypervisor/domain_xml.hpp"
#include "hypervisor/emulator_process.hpp"
#include "hypervisor/libvirt_connection.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

struct _virDomain;

namespace bulkhead::hypervisor {

struct LibvirtHypervisorOptions {
    /// Where libvirtd writes the emulators' pid files.
    std::filesystem::path pidDirectory = "/run/libvirt/qemu";
    /// Users that emulators run as: only their processes are ended when libvirt has lost them and their pid files.
    UidRange emulatorUsers{core::UidLeases::emulatorUid(0), core::UidLeases::emulatorUid(core::UidLeases::kSlots - 1)};
    /// When set, each guest's serial console is written to ID.log in there: see DomainXmlOptions.
    std::optional<std::filesystem::path> consoleLogDirectory;
    /// See DomainXmlOptions.
    std::optional<std::filesystem::path> readonlyPreload;
    /// How long destroy() waits. libvirt sends TERM, and KILL ten seconds later.
    std::chrono::milliseconds destroyTimeout{std::chrono::seconds(30)};
};

/// core::Hypervisor over libvirtd. All calls may block for as long as libvirtd takes; a libvirtd that hangs fails them
/// with Unavailable after half a minute. A libvirtd that was restarted or killed in between is not noticed by the
/// caller.
class LibvirtHypervisor final : public core::Hypervisor, public core::Displays {
public:
    /// `connection` must outlive this.
    explicit LibvirtHypervisor(LibvirtConnection& connection, LibvirtHypervisorOptions options = {});
    /// Waits for destroys that libvirt has not finished.
    ~LibvirtHypervisor() override;

    /// Never tried twice: when libvirtd goes away in the middle the error is Unavailable and the emulator may or may
    /// not run; destroy() it.
    Result<pid_t> start(const core::InstanceSpec& spec) override;
    /// Returns when the emulator's process has ended, in milliseconds; libvirt, which learns of it later (up to 2 s
    /// where init collects children late), finishes in the background. libvirt not knowing the instance is no proof
    /// that its emulator has ended (killed in the middle of a start, libvirtd comes back without it): a process that is
    /// still there is killed, and success means that it has ended.
    Status destroy(const InstanceId& id) override;
    /// Without those whose process has ended already. `pid` is 0 while libvirt is starting it.
    Result<std::vector<core::ObservedInstance>> list() override;
    Status pause(const InstanceId& id) override;
    Status resume(const InstanceId& id) override;

    Result<UniqueFd> openDisplay(const InstanceId& instance) override;
    Result<Picture> screenshot(const InstanceId& instance, unsigned head) override;

private:
    class Ending;

    Result<pid_t> checkStarted(const core::InstanceSpec& spec);
    std::shared_ptr<Ending> beginDestroy(const InstanceId& id);
    [[nodiscard]] std::optional<EmulatorProcess> findProcess(const InstanceId& id) const;
    bool isEnding(const InstanceId& id);
    void forgetFinished();

    LibvirtConnection& m_connection;
    LibvirtHypervisorOptions m_options;
    std::mutex m_mutex;
    /// Destroys that libvirt is busy with; one per instance however many threads ask for it.
    std::map<InstanceId, std::shared_ptr<Ending>> m_endings;
};

} // namespace bulkhead::hypervisor

// SPDX-License-Identifier: Apache-2.0
#include "hypervisor/libvirt_machines.hpp"

#include "base/escaping.hpp"
#include "base/unique_fd.hpp"
#include "hypervisor/domain_xml.hpp"
#include "hypervisor/layer_switch.hpp"
#include "hypervisor/libvirt_domain.hpp"
#include "hypervisor/libvirt_error.hpp"

#include <libvirt/libvirt-qemu.h>
#include <libvirt/virterror.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <memory>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace bulkhead::hypervisor {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr std::string_view kDescriptorName = "bulkhead-devices";
/// Reading the state takes some 20 ms; libvirt is asked no more often than this.
constexpr auto kPoll = 3ms;

/// One command to the emulator's monitor; gives what it returned. `passed`: a descriptor that goes with it.
Result<Json> monitor(virDomain* domain, std::string_view command, const Json& arguments, int passed = -1) {
    const std::string text = Json{{"execute", command}, {"arguments", arguments}}.dump();
    char* raw = nullptr;
    unsigned int passedBack = 0;
    int* descriptors = nullptr;
    const int done = virDomainQemuMonitorCommandWithFiles(
        domain, text.c_str(), passed >= 0 ? 1 : 0, passed >= 0 ? &passed : nullptr, &passedBack, &descriptors, &raw, 0);
    const std::unique_ptr<char, void (*)(void*)> answer(raw, std::free);
    std::free(descriptors);
    if (done < 0 || !answer) {
        return fail(lastLibvirtError(fmt::format("the emulator's monitor refused \"{}\"", command)));
    }
    Json said = Json::parse(answer.get(), nullptr, false);
    if (said.is_discarded() || !said.is_object() || !said.contains("return")) {
        const Json why = said.is_object() ? said.value("error", Json::object()).value("desc", Json()) : Json();
        return fail(ErrorCode::HostFailure,
                    fmt::format("the emulator refused \"{}\": {}", command,
                                why.is_string() ? escapeUntrusted(why.get<std::string>(), 300) : "no reason given"));
    }
    return std::move(said["return"]);
}

Result<std::string> statusOf(virDomain* domain) {
    const auto said = monitor(domain, "query-status", Json::object());
    if (!said) {
        return fail(said.error());
    }
    return said->value("status", std::string());
}

/// The guest stands still until all of the state is there.
Status waitUntilLoaded(virDomain* domain, std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (true) {
        const auto status = statusOf(domain);
        if (!status) {
            return fail(status.error().in("reading the state of the devices"));
        }
        if (*status == "paused") {
            return {};
        }
        if (*status != "inmigrate") {
            return fail(ErrorCode::HostFailure, "the emulator did not take the state of the devices (it says \"" +
                                                    escapeUntrusted(*status, 40) + "\")");
        }
        if (std::chrono::steady_clock::now() > until) {
            return fail(ErrorCode::TimedOut, "the emulator does not finish reading the state of the devices");
        }
        std::this_thread::sleep_for(kPoll); // lint-allow(sleep): libvirt passes on no event for this
    }
}

Result<core::Machines::NewLayers> activeIn(virDomain* domain) {
    const auto blocks = monitor(domain, "query-block", Json::object());
    const auto nodes = monitor(domain, "query-named-block-nodes", {{"flat", true}});
    return blocks && nodes ? activeLayersIn(blocks->dump(), nodes->dump())
                           : fail(!blocks ? blocks.error() : nodes.error());
}

/// By a copy of what the present layer has, nothing, onto the new one, and with its end the guest's device is at that.
/// (Other ways past libvirt leave it, or the emulator, with a wrong idea of the disk, and say nothing.)
Status exchangeHome(virDomain* domain, const InstanceId& id, const core::Disk& home,
                    std::chrono::milliseconds patience) {
    const auto xml = homeCopyXml(home);
    if (!xml) {
        return fail(xml.error());
    }
    const std::string disk(kHomeDisk);
    constexpr unsigned kFlags =
        VIR_DOMAIN_BLOCK_COPY_REUSE_EXT | VIR_DOMAIN_BLOCK_COPY_SHALLOW | VIR_DOMAIN_BLOCK_COPY_TRANSIENT_JOB;
    if (virDomainBlockCopy(domain, disk.c_str(), xml->c_str(), nullptr, 0, kFlags) < 0) {
        return fail(lastLibvirtError(aboutInstance("exchange the home of", id)));
    }
    const auto until = std::chrono::steady_clock::now() + patience;
    while (virDomainBlockJobAbort(domain, disk.c_str(), VIR_DOMAIN_BLOCK_JOB_ABORT_PIVOT) < 0) {
        const auto* const error = virGetLastError();
        const bool isEarly = error != nullptr && error->code == VIR_ERR_BLOCK_COPY_ACTIVE;
        auto failed = lastLibvirtError(aboutInstance("exchange the home of", id));
        if (!isEarly) {
            return fail(std::move(failed));
        }
        if (std::chrono::steady_clock::now() > until) {
            return fail(ErrorCode::TimedOut, failed.message);
        }
        std::this_thread::sleep_for(kPoll); // lint-allow(sleep): it takes one or two rounds, and an event a thread more
    }
    const auto active = activeIn(domain);
    if (!active) {
        return fail(active.error());
    }
    return active->home == home.layers.front().path
               ? Status{}
               : fail(ErrorCode::HostFailure, "the emulator did not take its domain's home");
}

/// The processor's line that tells one model from another.
std::string processorModel() {
    std::ifstream info("/proc/cpuinfo");
    std::string model;
    std::string flags;
    for (std::string line; std::getline(info, line) && !line.empty();) {
        if (line.starts_with("model name")) {
            model = line.substr(line.find(':') + 1);
        } else if (line.starts_with("flags")) {
            flags = line.substr(line.find(':') + 1);
        }
    }
    return model + " /" + flags;
}

} // namespace

Status LibvirtMachines::load(const InstanceId& id, const std::filesystem::path& devices,
                             const std::optional<core::Disk>& home) {
    const UniqueFd state(::open(devices.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!state) {
        return failErrno("cannot open " + devices.string(), errno);
    }
    auto connection = m_connection.acquire();
    if (!connection) {
        return fail(connection.error());
    }
    const auto domain = lookUp(connection->get(), id, "load the memory image of");
    if (!domain) {
        return fail(domain.error());
    }
    virDomain* const machine = domain->get();
    if (auto given = monitor(machine, "getfd", {{"fdname", kDescriptorName}}, state.get()); !given) {
        return fail(given.error());
    }
    if (auto begun = monitor(machine, "migrate-incoming", {{"uri", fmt::format("fd:{}", kDescriptorName)}}); !begun) {
        return fail(begun.error());
    }
    if (auto loaded = waitUntilLoaded(machine, m_patience.load); !loaded) {
        return loaded;
    }
    // Not before: an emulator that waits for its state opens its disks for reading only.
    if (home) {
        if (auto exchanged = exchangeHome(machine, id, *home, m_patience.exchange); !exchanged) {
            return exchanged;
        }
    }
    if (virDomainResume(machine) < 0) {
        return fail(lastLibvirtError(aboutInstance("run", id)));
    }
    return {};
}

Status LibvirtMachines::pauseAndSave(const InstanceId& id, const std::filesystem::path& file) {
    // For writing only: the emulator looks for a descriptor of the very mode that it wants.
    const UniqueFd target(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!target) {
        return failErrno("cannot make " + file.string(), errno);
    }
    auto connection = m_connection.acquire();
    if (!connection) {
        return fail(connection.error());
    }
    const auto domain = lookUp(connection->get(), id, "capture");
    if (!domain) {
        return fail(domain.error());
    }
    virDomain* const machine = domain->get();
    // Whatever can be done while the guest runs is done before it stands still.
    const auto set = monitor(machine, "add-fd", Json::object(), target.get());
    if (!set) {
        return fail(set.error());
    }
    const Json number = set->value("fdset-id", Json());
    if (!number.is_number_integer()) {
        return fail(ErrorCode::HostFailure, "the emulator did not take the file for the state of its devices");
    }
    if (virDomainSuspend(machine) < 0) {
        return fail(lastLibvirtError(aboutInstance("pause", id)));
    }
    // The name misleads: it works for every guest, and is the one way to the devices without the memory.
    const auto saved =
        monitor(machine, "xen-save-devices-state",
                {{"filename", fmt::format("/dev/fdset/{}", number.get<std::int64_t>())}, {"live", false}});
    [[maybe_unused]] const auto dropped = monitor(machine, "remove-fd", {{"fdset-id", number}});
    if (!saved) {
        return fail(saved.error());
    }
    struct stat status {};
    if (::fstat(target.get(), &status) != 0) {
        return failErrno("cannot read " + file.string(), errno);
    }
    return status.st_size > 0 ? Status{} : fail(ErrorCode::HostFailure, "the emulator wrote no state of its devices");
}

Status LibvirtMachines::switchLayers(const InstanceId& id, const NewLayers& layers) {
    const auto xml = layerSwitchXml(layers);
    if (!xml) {
        return fail(xml.error());
    }
    // A libvirtd that died in an earlier call counts its nodes from where that began: each try uses up one name.
    constexpr int kTries = 3;
    for (int i = 1;; ++i) {
        auto tried = trySwitch(id, *xml);
        if (tried.isAsked) {
            tried.status = whatHappened(id, layers, std::move(tried.status));
        }
        const bool isAgain = !tried.status && tried.isAsked && i < kTries &&
                             tried.status.error().message.find("Duplicate nodes") != std::string::npos &&
                             tried.status.error().code != ErrorCode::Unavailable;
        if (!isAgain) {
            return std::move(tried.status);
        }
    }
}

LibvirtMachines::Tried LibvirtMachines::trySwitch(const InstanceId& id, const std::string& xml) {
    auto connection = m_connection.acquire();
    if (!connection) {
        return {fail(connection.error()), false};
    }
    const auto domain = lookUp(connection->get(), id, "switch the disks of");
    if (!domain) {
        return {fail(domain.error()), false};
    }
    const unsigned flags = VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY | VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA |
                           VIR_DOMAIN_SNAPSHOT_CREATE_ATOMIC | VIR_DOMAIN_SNAPSHOT_CREATE_REUSE_EXT;
    virDomainSnapshot* const made = virDomainSnapshotCreateXML(domain->get(), xml.c_str(), flags);
    if (made == nullptr) {
        return {fail(lastLibvirtError(aboutInstance("switch the disks of", id))), true};
    }
    virDomainSnapshotFree(made);
    return {};
}

/// After a failed call: the emulator knows whether it did.
Status LibvirtMachines::whatHappened(const InstanceId& id, const NewLayers& layers, Status failed) {
    if (failed) {
        return failed;
    }
    const auto active = activeLayers(id);
    if (!active) {
        return fail(ErrorCode::Unavailable,
                    failed.error().message + "; and whether it did cannot be told: " + active.error().message);
    }
    const bool isSystemNew = layers.system && active->system == layers.system;
    const bool isHomeNew = layers.home && active->home == layers.home;
    if (isSystemNew == layers.system.has_value() && isHomeNew == layers.home.has_value()) {
        return {};
    }
    if (isSystemNew || isHomeNew) {
        // QEMU does it as one transaction.
        return fail(ErrorCode::HostFailure, failed.error().message + "; and only one of its disks was switched");
    }
    if (failed.error().message.find("is used as backing") != std::string::npos) {
        // The emulator did an earlier one, and libvirt never learned of it.
        failed.error().message += "; libvirtd died in the middle of an earlier snapshot and does not know this guest's "
                                  "disks any more: suspend or stop the domain and start it again";
    }
    return failed;
}

Result<core::Machines::NewLayers> LibvirtMachines::activeLayers(const InstanceId& id) {
    return m_connection.repeatable([&](virConnect* connection) -> Result<NewLayers> {
        const auto domain = lookUp(connection, id, "ask for the disks of");
        if (!domain) {
            return fail(domain.error());
        }
        return activeIn(domain->get());
    });
}

Result<std::string> LibvirtMachines::version(core::Acceleration acceleration) {
    return m_connection.repeatable([acceleration](virConnect* connection) -> Result<std::string> {
        unsigned long emulator = 0;
        if (virConnectGetVersion(connection, &emulator) < 0) {
            return fail(lastLibvirtError("cannot learn the emulator's version"));
        }
        std::string text = fmt::format("{} layout {} qemu {}", kMachineType, kMachineLayout, emulator);
        if (acceleration == core::Acceleration::Kvm) {
            text += " on" + processorModel();
        }
        return text;
    });
}

} // namespace bulkhead::hypervisor

// SPDX-License-Identifier: Apache-2.0
#include "core/services/instance_launcher.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/services/cid_leases.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/template_service.hpp"
#include "core/services/uid_leases.hpp"

#include <algorithm>
#include <sys/random.h>

namespace bulkhead::core {
namespace {

using namespace std::chrono_literals;

/// How long a guest may take from power on to its agent's answer. Emulated desktop kernels were seen to take 40 s on
/// two busy cores; under KVM a boot takes a few.
std::chrono::milliseconds bootTimeout(Acceleration acceleration) {
    switch (acceleration) {
    case Acceleration::Kvm:
        return 60s;
    case Acceleration::Emulation:
        return 180s;
    }
    return 180s;
}

/// A guest that has booted already answers within a second, if at all; the rest is for a busy machine.
constexpr std::chrono::milliseconds kWarmTimeout = 20s;

/// Reasons that have nothing to do with how the guest begins.
bool wouldFailBooting(ErrorCode code) {
    return code == ErrorCode::Cancelled || code == ErrorCode::Unavailable || code == ErrorCode::NoSpace ||
           code == ErrorCode::LimitExceeded || code == ErrorCode::Busy;
}

std::string describe(const MachineKey& machine) {
    return formatBytes(machine.memory) + ", " + std::to_string(machine.vcpus) + " processors, " +
           std::string(nameOf(machine.acceleration)) + ", " + std::string(nameOf(machine.transport)) + ", " +
           machine.version.substr(0, machine.version.find(" on"));
}

GuestToken randomToken() {
    GuestToken token{};
    if (::getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return token;
}

} // namespace

struct InstanceLauncher::Plan {
    InstanceRecord record;
    InstancePlan files;
    std::filesystem::path kernel;
    std::filesystem::path initrd;
    std::optional<DomainId> keptHome;
    std::string hostname; ///< what the guest calls itself; empty: as its template says
    /// What it begins in instead of booting.
    struct Memory {
        std::filesystem::path image;
        std::filesystem::path devices;
        bool isNode = false; ///< otherwise a warm image
    };
    std::optional<Memory> memory;
    std::optional<WarmImage> warm; ///< where the memory is from
    bool isForImage = false;
    bool hasLoaded = false;     ///< the emulator has it
    bool isImageBroken = false; ///< the failure is the image's: nobody shall begin from it again
    bool isUndone = true;       ///< nothing is left of a failed try
};

struct InstanceLauncher::Started {
    InstanceFiles files;
    pid_t emulator = 0;
};

InstanceLauncher::InstanceLauncher(Ports ports, TemplateService& templates, UidLeases& leases, CidLeases& cids,
                                   EmulatorMonitor& monitor, DomainTable& table)
    : m_ports(ports)
    , m_templates(templates)
    , m_leases(leases)
    , m_cids(cids)
    , m_monitor(monitor)
    , m_table(table) {}

std::optional<DomainId> InstanceLauncher::keptHomeOf(const DomainEntry& domain) {
    return domain.record.kind == DomainKind::Disposable ? std::nullopt : std::optional(domain.record.id);
}

Result<InstanceLauncher::Plan> InstanceLauncher::plan(const DomainDefinition& definition) {
    const auto info = m_templates.find(definition.templateName);
    if (!info) {
        return fail(info.error());
    }
    if (!info->installed) {
        return fail(ErrorCode::WrongState, "template \"" + info->definition.name +
                                               "\" has not been built yet; run: sudo bulkhead template build " +
                                               info->definition.name);
    }
    const std::string sizeName = definition.size.empty() ? info->definition.defaultSize : definition.size;
    const auto size = info->definition.sizes.find(sizeName);
    if (size == info->definition.sizes.end()) {
        std::string names;
        for (const auto& [name, value] : info->definition.sizes) {
            names += (names.empty() ? "" : ", ") + name;
        }
        return fail(ErrorCode::InvalidArgument,
                    "template \"" + info->definition.name + "\" has no size \"" + sizeName + "\"; there are: " + names);
    }
    const auto memory = m_ports.memory.memory();
    if (size->second.memory > memory.available) {
        return fail(ErrorCode::LimitExceeded, "size \"" + sizeName + "\" needs " + formatBytes(size->second.memory) +
                                                  " of memory; this host has " + formatBytes(memory.total) +
                                                  ", of which " + formatBytes(memory.available) +
                                                  " are free. Choose a smaller size or stop a domain");
    }

    Plan plan;
    plan.record.id = randomId<InstanceId>();
    plan.record.templateVersion = info->installed->version;
    plan.record.size = sizeName;
    plan.record.heads = info->installed->heads;
    plan.record.startedAt = m_ports.clock.now();
    plan.record.memory = size->second.memory;
    plan.record.vcpus = size->second.vcpus;
    plan.kernel = info->installed->directory / "vmlinuz";
    plan.initrd = info->installed->directory / "initrd.img";
    plan.files.instance = plan.record.id;
    plan.files.templateName = info->definition.name;
    plan.files.templateVersion = info->installed->version;
    plan.files.homeSize = definition.homeSize.value_or(info->definition.homeSize);
    plan.files.token = randomToken();
    return plan;
}

Status InstanceLauncher::ensureHome(const DomainEntry& domain, Bytes size) {
    const auto homes = m_ports.store.homesOnDisk();
    if (!homes) {
        return fail(homes.error());
    }
    if (std::any_of(homes->begin(), homes->end(),
                    [&](const HomeOnDisk& home) { return home.id == domain.record.id; })) {
        return {};
    }
    // A domain that an admin's file declares gets its home at its first start.
    return m_ports.store.createHome(domain.record.id, domain.record.owner, domain.record.name, size);
}

Status InstanceLauncher::chooseTransport(InstanceRecord& record) {
    const auto chosen = m_ports.transport.choose();
    if (!chosen) {
        return fail(chosen.error());
    }
    record.transport = chosen->transport;
    if (record.transport == Transport::Vsock) {
        const auto cid = m_cids.lease();
        if (!cid) {
            return fail(cid.error());
        }
        record.cid = *cid;
    }
    return {};
}

Result<WarmImageKey> InstanceLauncher::keyOf(const Plan& plan) {
    const auto machine = m_ports.machines.version(plan.record.acceleration);
    if (!machine) {
        return fail(machine.error());
    }
    return WarmImageKey{.templateName = plan.files.templateName,
                        .templateVersion = plan.files.templateVersion,
                        .size = plan.record.size,
                        .memory = plan.record.memory,
                        .vcpus = plan.record.vcpus,
                        .heads = plan.record.heads,
                        .acceleration = plan.record.acceleration,
                        .transport = plan.record.transport,
                        .machine = *machine};
}

Result<WarmImageKey> InstanceLauncher::imageKey(const std::string& templateName, const std::string& size) {
    auto planned = plan({.templateName = templateName, .size = size});
    if (!planned) {
        return fail(planned.error());
    }
    const auto transport = m_ports.transport.choose();
    if (!transport) {
        return fail(transport.error());
    }
    planned->record.transport = transport->transport;
    planned->record.acceleration = m_ports.acceleration.determine(planned->kernel, planned->initrd, false).acceleration;
    return keyOf(*planned);
}

Result<InstanceLauncher::Plan> InstanceLauncher::planFor(const DomainEntry& domain, const Wish& wish) {
    DomainDefinition definition = domain.definition;
    if (wish.node && !wish.node->size.empty()) {
        definition.size = wish.node->size;
    }
    auto planned = plan(definition);
    if (!planned) {
        return planned;
    }
    planned->record.domain = domain.record.id;
    planned->hostname = domain.record.name;
    planned->keptHome = keptHomeOf(domain);
    planned->files.keptHome = planned->keptHome;
    if (wish.node) {
        if (auto used = useNode(*planned, *wish.node); !used) {
            return fail(used.error());
        }
    }
    if (!planned->keptHome) {
        return planned;
    }
    const auto ready = wish.node ? m_ports.snapshots.resetHome(domain.record.id, domain.record.owner,
                                                               domain.record.name, wish.node->home)
                                 : ensureHome(domain, planned->files.homeSize);
    if (!ready) {
        return fail(ready.error().in("home disk of domain \"" + domain.record.name + "\""));
    }
    return planned;
}

Status InstanceLauncher::useNode(Plan& plan, const SnapshotRecord& node) {
    if (!plan.keptHome) {
        plan.files.homeBase = node.home;
    }
    if (node.system.layers.empty()) {
        return {}; // of a domain that was stopped: the system is the template's
    }
    if (node.templateName != plan.files.templateName) {
        return fail(ErrorCode::WrongState, "snapshot " + shortId(node.id) + " is of template \"" + node.templateName +
                                               "\", the domain is of \"" + plan.files.templateName + "\" now");
    }
    plan.files.systemBase = node.system;
    plan.files.templateVersion = node.templateVersion;
    plan.record.templateVersion = node.templateVersion;
    // Its layers lie above that version, and its kernel has that version's modules.
    const auto version = plan.kernel.parent_path().parent_path() / node.templateVersion;
    plan.kernel = version / plan.kernel.filename();
    plan.initrd = version / plan.initrd.filename();
    if (node.memory) {
        plan.record.memory = node.memory->machine.memory;
        plan.record.vcpus = node.memory->machine.vcpus;
        plan.record.heads = node.memory->machine.heads;
    }
    return {};
}

Status InstanceLauncher::useMemoryOf(Plan& plan, const SnapshotRecord& node) {
    // Memory goes on over the very disks that it knows, or not at all.
    if (const auto missing = m_ports.snapshots.findMissing(node)) {
        plan.isImageBroken = true;
        return fail(ErrorCode::HostFailure, missing->file.filename().string() + ": " + missing->why);
    }
    const auto version = m_ports.machines.version(plan.record.acceleration);
    if (!version) {
        return fail(version.error());
    }
    const MachineKey now{.memory = plan.record.memory,
                         .vcpus = plan.record.vcpus,
                         .heads = plan.record.heads,
                         .acceleration = plan.record.acceleration,
                         .transport = plan.record.transport,
                         .version = *version};
    if (now != node.memory->machine) {
        return fail(ErrorCode::WrongState, "the memory of snapshot " + shortId(node.id) + " is of another machine: " +
                                               describe(node.memory->machine) + "; this one is " + describe(now));
    }
    const auto image = m_ports.snapshots.memoryImage(node);
    if (!image) {
        // Not where the emulator's version could not be asked.
        plan.isImageBroken = image.error().code == ErrorCode::HostFailure;
        return fail(image.error());
    }
    plan.memory = Plan::Memory{image->file, node.memory->devices, true};
    plan.files.memory = *image;
    return {};
}

void InstanceLauncher::useMemory(Plan& plan, const Wish& wish, Launched& launched) {
    if (wish.node) {
        if (!wish.node->memory) {
            return;
        }
        if (auto used = useMemoryOf(plan, *wish.node); !used) {
            launched.imageFailure = used.error();
            launched.isImageBroken = plan.isImageBroken;
        }
        return;
    }
    if (const auto key = keyOf(plan)) {
        plan.warm = m_ports.images.find(*key);
    }
    if (plan.warm) {
        plan.memory = Plan::Memory{plan.warm->memory, plan.warm->devices, false};
        plan.files.memory = MemoryImageRef{plan.warm->memory, plan.warm->memoryDigest};
        plan.files.systemBase = {{plan.warm->system, {plan.kernel.parent_path() / "root.img", DiskFormat::Raw}}};
    }
}

Result<InstanceLauncher::Launched> InstanceLauncher::launch(const DomainEntry& domain, const Wish& wish,
                                                            const JobContext& job) {
    Launched launched;
    bool mayUseImage = wish.mayUseImage;
    while (true) {
        job.report("Preparing disks", 0.05);
        auto planned = planFor(domain, wish);
        if (!planned) {
            return fail(planned.error());
        }
        Plan& plan = *planned;
        if (auto begun = begin(plan); !begun) {
            return fail(begun.error().in("domain \"" + domain.record.name + "\""));
        }
        if (mayUseImage) {
            useMemory(plan, wish, launched);
        }
        const auto started = attempt(plan, job);
        if (started) {
            launched.isWarm = plan.memory && !plan.memory->isNode;
            return launched;
        }
        if (!plan.memory || !plan.isUndone || job.cancelToken().stop_requested() ||
            (!plan.hasLoaded && wouldFailBooting(started.error().code))) {
            return fail(started.error().in("domain \"" + domain.record.name + "\""));
        }
        // A guest that does not come to life is no reason to go without it: it can boot.
        log::warning("memory did not bring a guest to life; the domain boots",
                     {{"DOMAIN", domain.record.id.text()},
                      {"TEMPLATE", plan.files.templateName},
                      {"IMAGE", plan.isImageBroken ? "broken" : "kept"},
                      {"ERROR", started.error().message}});
        if (plan.isImageBroken && plan.warm) {
            m_ports.images.remove(*plan.warm);
        }
        launched.isImageBroken = plan.isImageBroken;
        launched.imageFailure = started.error();
        mayUseImage = false;
    }
}

Status InstanceLauncher::begin(Plan& plan) {
    if (auto chosen = chooseTransport(plan.record); !chosen) {
        return fail(chosen.error().in("channel"));
    }
    const auto slot = m_leases.lease();
    if (!slot) {
        return fail(slot.error());
    }
    plan.record.uidSlot = *slot;
    plan.record.acceleration = m_ports.acceleration.determine(plan.kernel, plan.initrd, false).acceleration;
    plan.files.emulatorUid = UidLeases::emulatorUid(*slot);
    // The intent is on disk before the first act, so that the reconciler knows everything that may exist.
    if (auto recorded = m_ports.instances.insert(plan.record); !recorded) {
        m_leases.release(*slot);
        return fail(recorded.error());
    }
    m_table.setInstance(plan.record.domain, plan.record);
    return {};
}

bool InstanceLauncher::undo(const Plan& plan) {
    if (auto ended = tearDown(plan.record, plan.keptHome); !ended) {
        // The entry keeps the instance: LifecycleService tries again, and so does the next start of the daemon.
        log::error("undoing a start failed; it is tried again",
                   {{"INSTANCE", plan.record.id.text()}, {"ERROR", ended.error().message}});
        return false;
    }
    m_table.setInstance(plan.record.domain, std::nullopt);
    return true;
}

Status InstanceLauncher::attempt(Plan& plan, const JobContext& job) {
    ScopeGuard undoing([&] { plan.isUndone = undo(plan); });
    auto booted = plan.memory ? beginFromImage(plan, job) : boot(plan, job);
    if (!booted) {
        return booted;
    }
    plan.record.phase = InstancePhase::Running;
    if (auto recorded = m_ports.instances.setPhase(plan.record.id, InstancePhase::Running); !recorded) {
        return recorded;
    }
    m_table.setInstance(plan.record.domain, plan.record);
    undoing.dismiss();
    return {};
}

Result<InstanceLauncher::Started> InstanceLauncher::startEmulator(const Plan& plan, const JobContext& job) {
    auto files = m_ports.store.prepareInstance(plan.files);
    if (!files) {
        return fail(files.error().in("preparing disks"));
    }
    if (job.cancelToken().stop_requested()) {
        return fail(ErrorCode::Cancelled, "cancelled");
    }
    job.report("Starting the emulator", 0.1);
    InstanceSpec spec;
    spec.id = plan.record.id;
    spec.memory = plan.record.memory;
    spec.vcpus = plan.record.vcpus;
    spec.heads = plan.record.heads;
    spec.acceleration = plan.record.acceleration;
    spec.system = files->system;
    spec.home = files->home;
    spec.kernel = files->kernel;
    spec.initrd = files->initrd;
    if (plan.memory) {
        spec.memoryImage = plan.memory->image;
    }
    spec.isForImage = plan.isForImage;
    spec.tokenFile = files->tokenFile;
    spec.transport = plan.record.transport;
    spec.agentSocket = files->agentSocket;
    spec.cid = plan.record.cid;
    spec.emulatorUid = plan.files.emulatorUid;
    spec.emulatorGid = files->emulatorGid;
    const auto pid = m_ports.hypervisor.start(spec);
    if (!pid) {
        return fail(pid.error().in("starting the emulator"));
    }
    if (auto watched = m_monitor.begin(plan.record.id, *pid); !watched) {
        return fail(watched.error());
    }
    return Started{std::move(*files), *pid};
}

Status InstanceLauncher::openLink(const Plan& plan, const Started& started, std::chrono::milliseconds timeout,
                                  const JobContext& job) {
    GuestLinkSpec link;
    link.instance = plan.record.id;
    link.transport = plan.record.transport;
    link.agentSocket = started.files.agentSocket;
    link.cid = plan.record.cid;
    link.token = plan.files.token;
    link.channelUid = UidLeases::channelUid(plan.record.uidSlot);
    link.hostname = plan.hostname;
    auto opened = m_ports.links.open(link, timeout, job.cancelToken());
    if (!opened && !m_monitor.isAlive(plan.record.id)) {
        return fail(ErrorCode::GuestFailure, "the emulator ended before the guest's agent answered");
    }
    return opened;
}

Status InstanceLauncher::boot(const Plan& plan, const JobContext& job) {
    const auto started = startEmulator(plan, job);
    if (!started) {
        return fail(started.error());
    }
    job.report("Booting", 0.3);
    if (auto opened = openLink(plan, *started, bootTimeout(plan.record.acceleration), job); !opened) {
        return fail(opened.error().in("booting"));
    }
    return {};
}

Status InstanceLauncher::beginFromImage(Plan& plan, const JobContext& job) {
    const auto started = startEmulator(plan, job);
    if (!started) {
        return fail(started.error());
    }
    const std::string phase =
        plan.memory->isNode ? "going on in the snapshot's memory" : "starting from the warm image";
    job.report(plan.memory->isNode ? "Going on in the snapshot's memory" : "Starting from the warm image", 0.5);
    plan.hasLoaded = true;
    if (auto loaded = m_ports.machines.load(plan.record.id, plan.memory->devices); !loaded) {
        // Not where libvirtd went away meanwhile.
        const ErrorCode code = loaded.error().code;
        const bool isHosts =
            code == ErrorCode::Unavailable || code == ErrorCode::TimedOut || code == ErrorCode::Cancelled;
        // An emulator that ended over an image may be gone before it can be asked: then libvirt knows it no more. A
        // node may be the only one of its kind, so it is given up for what the emulator itself says only.
        plan.isImageBroken = plan.memory->isNode ? code == ErrorCode::HostFailure : !isHosts;
        return fail(loaded.error().in(phase));
    }
    if (auto opened = openLink(plan, *started, kWarmTimeout, job); !opened) {
        // A host may be too busy for a guest to answer in time; hardly for two in a row.
        // (A node is never given up for that: it may be the only one of its kind.)
        plan.isImageBroken = !plan.memory->isNode && m_doubts.isRaisedAgain(plan.memory->image);
        return fail(opened.error().in(phase));
    }
    m_doubts.forget(plan.memory->image);
    // Nothing else is asked of the guest before: until then it has its siblings' random numbers, and an old clock. Its
    // failure is not the image's: what is of this domain alone is its home, which its user may have damaged.
    if (auto renewed = m_ports.links.rejuvenate(plan.record.id, {.mountsHome = !plan.memory->isNode}); !renewed) {
        return fail(renewed.error().in("renewing the guest"));
    }
    return {};
}

Result<InstanceLauncher::ImageSource> InstanceLauncher::bootForImage(const std::string& templateName,
                                                                     const std::string& size, const JobContext& job) {
    auto planned = plan({.templateName = templateName, .size = size});
    if (!planned) {
        return fail(planned.error());
    }
    Plan& plan = *planned;
    plan.isForImage = true;
    if (auto begun = begin(plan); !begun) {
        return fail(begun.error());
    }
    ScopeGuard undoing([&] { [[maybe_unused]] const bool isUndone = undo(plan); });
    const auto started = startEmulator(plan, job);
    if (!started) {
        return fail(started.error());
    }
    job.report("Booting", 0.3);
    if (auto opened = openLink(plan, *started, bootTimeout(plan.record.acceleration), job); !opened) {
        return fail(opened.error().in("booting"));
    }
    auto key = keyOf(plan);
    if (!key) {
        return fail(key.error());
    }
    undoing.dismiss();
    return ImageSource{plan.record, std::move(*key), started->emulator, started->files.system.layers.front().path};
}

Status InstanceLauncher::tearDown(const InstanceRecord& instance, const std::optional<DomainId>& keptHome) {
    Status first;
    const auto keep = [&first](Status status) {
        if (!status && first) {
            first = fail(status.error());
        }
        return status.has_value();
    };
    m_ports.links.close(instance.id);
    // Files of an emulator that may still write are not touched, nor is its uid given to another.
    if (!keep(m_ports.hypervisor.destroy(instance.id))) {
        return first;
    }
    m_monitor.end(instance.id);
    if (!keep(m_ports.store.removeInstance(instance.id, keptHome))) {
        return first;
    }
    if (keep(m_ports.instances.remove(instance.id))) {
        m_leases.release(instance.uidSlot);
    }
    return first;
}

} // namespace bulkhead::core

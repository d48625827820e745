// SPDX-License-Identifier: Apache-2.0
#include "core/services/instance_launcher.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/services/cid_leases.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/launch_plan.hpp"
#include "core/services/template_service.hpp"
#include "core/services/uid_leases.hpp"

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

} // namespace

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

Result<InstanceLauncher::Launched> InstanceLauncher::launch(const DomainEntry& domain, const Wish& wish,
                                                            const JobContext& job) {
    Launched launched;
    // A warm image is of a machine without disks to look into.
    bool mayUseImage = wish.mayUseImage && domain.inspected.empty();
    bool mayUseShell = true;
    while (true) {
        job.report("Preparing disks", 0.05);
        auto planned = planFor(domain, wish);
        if (!planned) {
            return fail(planned.error());
        }
        Plan& plan = *planned;
        if (auto begun = beginBest(plan, wish, mayUseImage, mayUseShell, launched, job); !begun) {
            return fail(begun.error().in("domain \"" + domain.record.name + "\""));
        }
        const auto started = attempt(plan, job);
        if (started) {
            launched.isWarm = plan.memory && !plan.memory->isNode;
            return launched;
        }
        if (plan.shell && !plan.hasLoaded && plan.isUndone && !job.cancelToken().stop_requested()) {
            // It had waited for long, and says nothing of the image, nor of the host now.
            log::warning("a waiting emulator could not be used; the domain starts without it",
                         {{"DOMAIN", domain.record.id.text()}, {"ERROR", started.error().message}});
            mayUseShell = false;
            continue;
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
            if (m_shells != nullptr) {
                m_shells->onImagesChanged();
            }
        }
        launched.isImageBroken = plan.isImageBroken;
        launched.imageFailure = started.error();
        mayUseImage = false;
    }
}

Status InstanceLauncher::beginBest(Plan& plan, const Wish& wish, bool mayUseImage, bool mayUseShell, Launched& launched,
                                   const JobContext& job) {
    if (auto chosen = chooseMachine(plan); !chosen) {
        return chosen;
    }
    if (mayUseImage && !wish.node) {
        useWarmImage(plan, job);
        if (mayUseShell && takeShell(plan)) {
            return {};
        }
    }
    if (auto begun = begin(plan); !begun) {
        return begun;
    }
    if (mayUseImage && wish.node && wish.node->memory) {
        if (auto used = useMemoryOf(plan, *wish.node); !used) {
            launched.imageFailure = used.error();
            launched.isImageBroken = plan.isImageBroken;
        }
    }
    return {};
}

Status InstanceLauncher::begin(Plan& plan) {
    if (plan.record.transport == Transport::Vsock) {
        const auto cid = m_cids.lease();
        if (!cid) {
            return fail(cid.error().in("channel"));
        }
        plan.record.cid = *cid;
    }
    const auto slot = m_leases.lease();
    if (!slot) {
        return fail(slot.error());
    }
    plan.record.uidSlot = *slot;
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
    spec.audio = plan.record.audio;
    spec.acceleration = plan.record.acceleration;
    spec.system = files->system;
    spec.home = files->home;
    spec.inspected = files->inspected;
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
    const auto started = plan.shell ? Result<Started>(*plan.shell) : startEmulator(plan, job);
    if (!started) {
        return fail(started.error());
    }
    const std::string phase =
        plan.memory->isNode ? "going on in the snapshot's memory" : "starting from the warm image";
    job.report(plan.memory->isNode ? "Going on in the snapshot's memory" : "Starting from the warm image", 0.5);
    plan.hasLoaded = !plan.shell;
    if (auto loaded = loadInto(plan); !loaded) {
        // Not where libvirtd went away meanwhile.
        const ErrorCode code = loaded.error().code;
        const bool isHosts =
            code == ErrorCode::Unavailable || code == ErrorCode::TimedOut || code == ErrorCode::Cancelled;
        // An emulator that ended over an image may be gone before it can be asked: then libvirt knows it no more. A
        // node may be the only one of its kind, so it is given up for what the emulator itself says only.
        plan.isImageBroken = plan.memory->isNode ? code == ErrorCode::HostFailure : !isHosts;
        return fail(loaded.error().in(phase));
    }
    plan.hasLoaded = true;
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

Status InstanceLauncher::loadInto(Plan& plan) {
    std::optional<Disk> home;
    if (plan.shell && plan.keptHome) {
        auto given = m_ports.homes.giveHome(plan.files);
        if (!given) {
            return fail(given.error().in("home disk"));
        }
        home = plan.shell->files.home = std::move(*given);
    }
    return m_ports.machines.load(plan.record.id, plan.memory->devices, home);
}

Result<InstanceLauncher::ImageSource> InstanceLauncher::bootForImage(const std::string& templateName,
                                                                     const std::string& size, Audio audio,
                                                                     const JobContext& job) {
    auto planned = plan({.templateName = templateName, .size = size, .label = {}, .audio = audio});
    if (!planned) {
        return fail(planned.error());
    }
    Plan& plan = *planned;
    plan.isForImage = true;
    if (auto begun = chooseMachine(plan).and_then([&] { return begin(plan); }); !begun) {
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

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
    Bytes memory = 0;
    unsigned vcpus = 1;
    std::filesystem::path kernel;
    std::filesystem::path initrd;
    std::optional<DomainId> keptHome;
    std::string domainName;
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

Result<InstanceLauncher::Plan> InstanceLauncher::plan(const DomainEntry& domain) {
    const auto info = m_templates.find(domain.definition.templateName);
    if (!info) {
        return fail(info.error());
    }
    if (!info->installed) {
        return fail(ErrorCode::WrongState, "template \"" + info->definition.name +
                                               "\" has not been built yet; run: sudo bulkhead template build " +
                                               info->definition.name);
    }
    const std::string sizeName = domain.definition.size.empty() ? info->definition.defaultSize : domain.definition.size;
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
    plan.record.domain = domain.record.id;
    plan.record.templateVersion = info->installed->version;
    plan.record.size = sizeName;
    plan.record.heads = info->installed->heads;
    plan.record.startedAt = m_ports.clock.now();
    plan.memory = size->second.memory;
    plan.vcpus = size->second.vcpus;
    plan.kernel = info->installed->directory / "vmlinuz";
    plan.initrd = info->installed->directory / "initrd.img";
    plan.keptHome = keptHomeOf(domain);
    plan.domainName = domain.record.name;
    plan.files.instance = plan.record.id;
    plan.files.templateName = info->definition.name;
    plan.files.templateVersion = info->installed->version;
    plan.files.keptHome = plan.keptHome;
    plan.files.homeSize = domain.definition.homeSize.value_or(info->definition.homeSize);
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

Status InstanceLauncher::launch(const DomainEntry& domain, const JobContext& job) {
    job.report("Preparing disks", 0.05);
    auto planned = plan(domain);
    if (!planned) {
        return fail(planned.error());
    }
    Plan& plan = *planned;
    if (plan.keptHome) {
        if (auto home = ensureHome(domain, plan.files.homeSize); !home) {
            return fail(home.error().in("home disk of domain \"" + plan.domainName + "\""));
        }
    }
    if (auto chosen = chooseTransport(plan.record); !chosen) {
        return fail(chosen.error().in("channel of domain \"" + plan.domainName + "\""));
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
    ScopeGuard undo([&] {
        if (auto ended = tearDown(plan.record, plan.keptHome); !ended) {
            // The entry keeps the instance: LifecycleService tries again, and so does the next start of the daemon.
            log::error("undoing a start failed; it is tried again",
                       {{"INSTANCE", plan.record.id.text()}, {"ERROR", ended.error().message}});
            return;
        }
        m_table.setInstance(plan.record.domain, std::nullopt);
    });
    if (auto booted = boot(plan, job); !booted) {
        return fail(booted.error().in("domain \"" + plan.domainName + "\""));
    }
    plan.record.phase = InstancePhase::Running;
    if (auto recorded = m_ports.instances.setPhase(plan.record.id, InstancePhase::Running); !recorded) {
        return fail(recorded.error());
    }
    m_table.setInstance(plan.record.domain, plan.record);
    undo.dismiss();
    return {};
}

Status InstanceLauncher::boot(const Plan& plan, const JobContext& job) {
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
    spec.memory = plan.memory;
    spec.vcpus = plan.vcpus;
    spec.heads = plan.record.heads;
    spec.acceleration = plan.record.acceleration;
    spec.system = files->system;
    spec.home = files->home;
    spec.kernel = files->kernel;
    spec.initrd = files->initrd;
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
    job.report("Booting", 0.3);
    GuestLinkSpec link;
    link.instance = plan.record.id;
    link.transport = plan.record.transport;
    link.agentSocket = files->agentSocket;
    link.cid = plan.record.cid;
    link.token = plan.files.token;
    link.channelUid = UidLeases::channelUid(plan.record.uidSlot);
    if (auto opened = m_ports.links.open(link, bootTimeout(plan.record.acceleration), job.cancelToken()); !opened) {
        if (!m_monitor.isAlive(plan.record.id)) {
            return fail(ErrorCode::GuestFailure, "booting: the emulator ended before the guest's agent answered");
        }
        return fail(opened.error().in("booting"));
    }
    return {};
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

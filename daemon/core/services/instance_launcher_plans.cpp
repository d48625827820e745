// SPDX-License-Identifier: Apache-2.0
// What a start will be made of: template, size, disks, memory. Nothing is started here.
#include "core/services/instance_launcher.hpp"

#include "base/log.hpp"
#include "core/services/launch_plan.hpp"
#include "core/services/template_service.hpp"

#include <algorithm>
#include <sys/random.h>
#include <system_error>

namespace bulkhead::core {
namespace {

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
    auto memory = m_ports.memory.memory();
    if (size->second.memory > memory.available && size->second.memory <= memory.total && m_shells != nullptr &&
        m_shells->giveMemoryBack()) {
        memory = m_ports.memory.memory();
    }
    if (size->second.memory > memory.available) {
        return fail(ErrorCode::LimitExceeded, "size \"" + sizeName + "\" needs " + formatBytes(size->second.memory) +
                                                  " of memory; this host has " + formatBytes(memory.total) +
                                                  ", of which " + formatBytes(memory.available) +
                                                  " are free. Choose a smaller size or stop a domain");
    }

    Plan plan;
    plan.label = definition.label;
    plan.record.id = randomId<InstanceId>();
    plan.record.templateVersion = info->installed->version;
    plan.record.size = sizeName;
    plan.record.heads = info->installed->heads;
    plan.record.audio = plan.record.heads > 0 ? definition.audio : Audio::Off;
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

Status InstanceLauncher::chooseMachine(Plan& plan) {
    const auto chosen = m_ports.transport.choose();
    if (!chosen) {
        return fail(chosen.error().in("channel"));
    }
    plan.record.transport = chosen->transport;
    plan.record.acceleration = m_ports.acceleration.determine(plan.kernel, plan.initrd, false).acceleration;
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
                        .audio = plan.record.audio,
                        .acceleration = plan.record.acceleration,
                        .transport = plan.record.transport,
                        .machine = *machine,
                        .label = plan.label};
}

Result<WarmImageKey> InstanceLauncher::imageKey(const std::string& templateName, const std::string& size, Audio audio,
                                                const std::string& label) {
    auto planned = plan({.templateName = templateName, .size = size, .label = label, .audio = audio});
    if (!planned) {
        return fail(planned.error());
    }
    if (auto chosen = chooseMachine(*planned); !chosen) {
        return fail(chosen.error());
    }
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
    planned->files.inspected = domain.inspected;
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
    // A home that came from a snapshot may be smaller than the domain's is by now. Memory goes on with what it knows.
    if (!wish.node || !wish.node->memory) {
        const auto grown = m_ports.store.growHome(domain.record.id, planned->files.homeSize);
        if (!grown && grown.error().code != ErrorCode::InvalidArgument) { // it is larger
            return fail(grown.error().in("home disk of domain \"" + domain.record.name + "\""));
        }
    }
    return planned;
}

bool InstanceLauncher::hasVersionOf(const SnapshotRecord& node) {
    return holdsVersion(node) && m_templates.hasVersion(node.templateName, node.templateVersion);
}

std::optional<TemplateVersion> InstanceLauncher::versionFor(const DomainEntry& domain,
                                                            const std::optional<SnapshotRecord>& node) {
    if (node && (!node->system.layers.empty() || hasVersionOf(*node))) {
        return TemplateVersion{node->templateName, node->templateVersion};
    }
    const auto newest = m_templates.newestVersion(domain.definition.templateName);
    return newest ? std::optional(TemplateVersion{domain.definition.templateName, *newest}) : std::nullopt;
}

Status InstanceLauncher::useNode(Plan& plan, const SnapshotRecord& node) {
    if (!plan.keptHome) {
        plan.files.homeBase = node.home;
    }
    if (node.system.layers.empty() && !hasVersionOf(node)) {
        return {}; // of a domain that was stopped: the system is the template's
    }
    if (node.templateName != plan.files.templateName) {
        return fail(ErrorCode::WrongState, "snapshot " + shortId(node.id) + " is of template \"" + node.templateName +
                                               "\", the domain is of \"" + plan.files.templateName + "\" now");
    }
    plan.files.systemBase = node.system; // none: that version's own
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
        plan.record.audio = node.memory->machine.audio;
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
                         .audio = plan.record.audio,
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

void InstanceLauncher::useWarmImage(Plan& plan) {
    if (const auto key = keyOf(plan)) {
        plan.warm = m_ports.images.find(*key);
    }
    if (plan.warm) {
        plan.memory = Plan::Memory{plan.warm->memory, plan.warm->devices, false};
        plan.files.memory = MemoryImageRef{plan.warm->memory, plan.warm->memoryDigest};
        plan.files.systemBase = {{plan.warm->system, {plan.kernel.parent_path() / "root.img", DiskFormat::Raw}}};
    }
}

void InstanceLauncher::useWarmImage(Plan& plan, const JobContext& job) {
    auto any = keyOf(plan);
    if (!any) {
        return;
    }
    const WarmImageKey own = *any;
    any->label.clear();
    if (!m_ports.images.find(own) && m_ports.images.find(*any)) {
        job.report("Giving the label \"" + plan.label + "\" a warm image of its own", 0.1);
        if (const auto provided = m_ports.images.provide(own, m_ports.filesInUse); !provided) {
            log::warning("there is no warm image for this label; the domain boots",
                         {{"LABEL", plan.label}, {"ERROR", provided.error().message}});
        }
    }
    useWarmImage(plan);
    if (plan.warm) {
        m_ports.images.noteUse(*plan.warm);
    }
}

} // namespace bulkhead::core

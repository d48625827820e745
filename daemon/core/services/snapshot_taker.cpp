// SPDX-License-Identifier: Apache-2.0
#include "core/services/snapshot_taker.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/template_service.hpp"
#include "core/services/uid_leases.hpp"

#include <thread>

namespace bulkhead::core {
namespace {

/// The state of the devices of a desktop with eight heads is 9 MB.
constexpr Bytes kDevicesNeed = 32 * kMiB;
/// A manifest, notes, empty layers.
constexpr Bytes kDiskNeeds = 4 * kMiB;

constexpr std::chrono::milliseconds kAskAgain{500};
/// After so long a guest's file systems go on by themselves (agent: Picture).
constexpr std::chrono::seconds kGuestThaws{10};

std::chrono::milliseconds since(std::chrono::steady_clock::time_point begun) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
}

} // namespace

struct SnapshotTaker::Plan {
    SnapshotRecord record;
    std::string name; ///< of the domain, for messages
    std::optional<InstanceRecord> instance;
    SnapshotSource source;
    SnapshotFiles files;
    std::unique_ptr<RunningCapture> capture;
    std::chrono::milliseconds pause{0};
    std::string note;
    bool isLast = false;
    bool isAtVersion = false; ///< see DomainHead
    bool isHeld = false;      ///< it is paused, and stays so
    bool isStanding = false;  ///< it was paused before
    bool isCommitted = false;
    bool mayHaveSwitched = false; ///< the emulator may write to the new layers
    bool isPublished = false;     ///< the frozen layers are the node's alone: nobody may write to them any more
};

Result<SnapshotTaker::Plan> SnapshotTaker::plan(const DomainEntry& domain, const Wish& wish) {
    Plan plan;
    plan.name = "domain \"" + domain.record.name + "\"";
    plan.instance = domain.instance;
    plan.isLast = wish.isLast;
    plan.isStanding = wish.isStanding && domain.instance;
    SnapshotRecord& record = plan.record;
    record.id = randomId<SnapshotId>();
    record.parent = domain.head.node;
    record.domain = domain.record.id;
    record.owner = domain.record.owner;
    record.domainName = domain.record.name;
    record.createdAt = m_ports.clock.now();
    record.reason = wish.reason;
    record.label = wish.label;
    record.isPinned = wish.isPinned;
    record.templateName = domain.definition.templateName;
    record.size = domain.definition.size;
    plan.source.keptHome = InstanceLauncher::keptHomeOf(domain);
    plan.source.needs = kDiskNeeds;
    if (!domain.instance) {
        const TemplateVersion& ran = domain.record.ranWith;
        record.templateVersion = ran.name == record.templateName && !ran.version.empty()
                                     ? ran.version
                                     : m_templates.newestVersion(record.templateName).value_or(std::string());
        if (record.reason == kReasonBeforeUpgrade && !ran.version.empty()) {
            record.templateName = ran.name; // also where the definition names another template by now
            record.templateVersion = ran.version;
        }
        const auto before =
            domain.head.isAtVersion && domain.head.node ? m_lineage.find(*domain.head.node) : std::nullopt;
        if (before) {
            // It has not run since it went back to that version.
            plan.isAtVersion = true;
            record.templateName = before->templateName;
            record.templateVersion = before->templateVersion;
        }
        return plan;
    }
    const InstanceRecord& instance = *domain.instance;
    record.kind = wish.kind;
    record.templateVersion = instance.templateVersion;
    record.size = instance.size;
    plan.source.instance = instance.id;
    plan.source.emulatorUid = UidLeases::emulatorUid(instance.uidSlot);
    if (wish.kind == SnapshotKind::Disk) {
        return plan;
    }
    const auto emulator = m_monitor.pidOf(instance.id);
    if (!emulator) {
        return fail(ErrorCode::WrongState, plan.name + " has no emulator any more");
    }
    const auto amount = m_ports.memory.privateMemory(*emulator);
    const auto version = m_ports.machines.version(instance.acceleration);
    if (!amount || !version) {
        return fail(!amount ? amount.error() : version.error());
    }
    plan.source.needs += kDevicesNeed + *amount;
    SnapshotMemory memory;
    memory.machine.memory = instance.memory;
    memory.machine.vcpus = instance.vcpus;
    memory.machine.heads = instance.heads;
    memory.machine.audio = instance.audio;
    memory.machine.acceleration = instance.acceleration;
    memory.machine.transport = instance.transport;
    memory.machine.version = *version;
    record.memory = memory;
    return plan;
}

Result<SnapshotTaker::Taken> SnapshotTaker::take(const DomainEntry& domain, const Wish& wish, const JobContext& job) {
    job.report("Preparing the snapshot", 0.05);
    auto planned = plan(domain, wish);
    if (!planned) {
        return fail(planned.error());
    }
    Plan& plan = *planned;
    // The intent is on disk before the first act, so that the reconciler knows everything that may exist.
    if (auto recorded = m_lineage.save(plan.record); !recorded) {
        return fail(recorded.error());
    }
    ScopeGuard undoing([&] { undo(plan); });
    auto begun = m_ports.store.begin(plan.record.id, plan.source);
    if (!begun) {
        return fail(begun.error().in("snapshot of " + plan.name));
    }
    plan.files = std::move(*begun);
    plan.record.system = plan.files.system;
    plan.record.home = plan.files.home;
    if (job.cancelToken().stop_requested()) {
        return fail(ErrorCode::Cancelled, "cancelled");
    }
    job.report("Taking the snapshot", 0.2);
    const Status taken = !plan.instance ? takeStopped(plan) : plan.record.memory ? takeAll(plan) : takeDisks(plan);
    if (!taken) {
        return fail(taken.error().in("snapshot of " + plan.name));
    }
    job.report("Storing", 0.6);
    auto finished = finish(plan);
    if (!finished) {
        return fail(finished.error().in("snapshot of " + plan.name));
    }
    undoing.dismiss();
    log::info("snapshot taken", {{"SNAPSHOT", plan.record.id.text()},
                                 {"DOMAIN", plan.record.domain.text()},
                                 {"KIND", std::string(nameOf(plan.record.kind))},
                                 {"BYTES", std::to_string(finished->record.sizeOnDisk)},
                                 {"PAUSE_MS", std::to_string(plan.pause.count())}});
    return finished;
}

Status SnapshotTaker::takeStopped(Plan& plan) {
    auto committed = m_ports.store.commit(plan.files, plan.source);
    plan.isCommitted = committed.has_value();
    return committed;
}

Status SnapshotTaker::takeDisks(Plan& plan) {
    const InstanceId& id = plan.instance->id;
    if (auto committed = m_ports.store.commit(plan.files, plan.source); !committed) {
        return committed;
    }
    plan.isCommitted = true;
    if (plan.isStanding) {
        return switchLayers(plan);
    }
    if (auto frozen = m_ports.links.freeze(id, {}); !frozen) {
        return frozen;
    }
    const auto begun = std::chrono::steady_clock::now();
    const auto switched = switchLayers(plan);
    const auto thawed = m_ports.links.thaw(id);
    plan.pause = since(begun);
    if (switched && plan.pause >= kGuestThaws) {
        plan.mayHaveSwitched = true;
        return fail(ErrorCode::TimedOut, "its file systems did not stand still until the disks were taken");
    }
    return switched ? thawed : switched;
}

Status SnapshotTaker::takeAll(Plan& plan) {
    const InstanceId& id = plan.instance->id;
    const auto disks = m_ports.store.disksOf(id);
    const auto emulator = m_monitor.pidOf(id);
    if (!disks || !emulator) {
        return disks ? Status(fail(ErrorCode::WrongState, "the emulator ended")) : Status(fail(disks.error()));
    }
    plan.record.memory->parent = disks->memory;
    plan.record.memory->delta = plan.files.delta;
    plan.record.memory->devices = plan.files.devices;
    auto capture = m_ports.memory.prepare({.emulator = *emulator,
                                           .memory = plan.record.memory->machine.memory,
                                           .begunFrom = disks->memory,
                                           .delta = plan.files.delta});
    if (!capture) {
        return fail(capture.error());
    }
    plan.capture = std::move(*capture);
    // Before the pause, since it waits for the disk.
    if (auto committed = m_ports.store.commit(plan.files, plan.source); !committed) {
        return committed;
    }
    plan.isCommitted = true;
    if (plan.isStanding) {
        // Its file systems are as a power cut would leave them, but for the memory that is of the same moment.
        return m_ports.machines.pauseAndSave(id, plan.files.devices)
            .and_then([&] { return plan.capture->copy(); })
            .and_then([&] { return switchLayers(plan); });
    }
    if (auto frozen = forgive(plan, m_ports.links.freeze(id, {.ofMemory = true})); !frozen) {
        return frozen;
    }
    const auto begun = std::chrono::steady_clock::now();
    std::chrono::milliseconds saved{0};
    std::chrono::milliseconds read{0};
    const auto copied = m_ports.machines.pauseAndSave(id, plan.files.devices)
                            .and_then([&] {
                                saved = since(begun);
                                return plan.capture->copy();
                            })
                            .map([&] { read = since(begun); })
                            // An emulator that ends now needs no new layers.
                            .and_then([&] { return plan.isLast ? Status{} : switchLayers(plan); });
    if (copied && plan.isLast) {
        plan.isHeld = true;
        return {};
    }
    const auto switched = since(begun);
    const auto goesOn = letGoOn(plan);
    plan.pause = since(begun);
    log::info("a guest stood still for its snapshot", {{"SNAPSHOT", plan.record.id.text()},
                                                       {"SAVED_MS", std::to_string(saved.count())},
                                                       {"COPIED_MS", std::to_string(read.count())},
                                                       {"SWITCHED_MS", std::to_string(switched.count())},
                                                       {"RESUMED_MS", std::to_string(plan.pause.count())}});
    const auto thawed = m_ports.links.thaw(id);
    return copied ? goesOn.and_then([&] { return forgive(plan, thawed); }) : copied;
}

Status SnapshotTaker::forgive(Plan& plan, const Status& asked) {
    if (asked || (asked.error().code != ErrorCode::TimedOut && asked.error().code != ErrorCode::GuestFailure)) {
        return asked;
    }
    log::warning("a guest did not do its part of its snapshot",
                 {{"SNAPSHOT", plan.record.id.text()}, {"ERROR", asked.error().message}});
    plan.note = "its agent did not prepare the guest for it (" + asked.error().message +
                "): memory and disks are of the same moment, but programs that the command line was connected to may "
                "not go on in it";
    return {};
}

Status SnapshotTaker::switchLayers(Plan& plan) {
    Machines::NewLayers layers;
    layers.system = plan.files.newSystem;
    layers.home = plan.files.newHome;
    auto switched = m_ports.machines.switchLayers(plan.instance->id, layers);
    // Also where a later step fails: what the guest writes from now on lies in the new layers.
    plan.mayHaveSwitched = switched || switched.error().code == ErrorCode::Unavailable;
    return switched;
}

/// libvirtd may be away for a moment, or busy; a guest that stands still must not depend on that.
Status SnapshotTaker::letGoOn(const Plan& plan) {
    const auto until = std::chrono::steady_clock::now() + m_patience;
    while (true) {
        auto goesOn = m_ports.hypervisor.resume(plan.instance->id);
        if (goesOn || goesOn.error().code == ErrorCode::NotFound || std::chrono::steady_clock::now() > until) {
            return goesOn;
        }
        log::warning("a guest that was paused for its snapshot cannot be resumed yet",
                     {{"INSTANCE", plan.instance->id.text()}, {"ERROR", goesOn.error().message}});
        std::this_thread::sleep_for(kAskAgain); // lint-allow(sleep): nothing tells when libvirtd is back
    }
}

Result<SnapshotTaker::Taken> SnapshotTaker::finish(Plan& plan) {
    // From here on the emulator writes to the new layers, unless this is its last moment.
    plan.mayHaveSwitched = plan.instance.has_value() && !plan.isLast;
    if (plan.capture) {
        if (auto written = plan.capture->finish(); !written) {
            return fail(written.error());
        }
    }
    SnapshotRecord done = plan.record;
    done.phase = SnapshotRecord::Phase::Present;
    done.parent = m_lineage.parentOf(done.id); // nodes above it may have gone meanwhile
    auto record = m_ports.store.publish(std::move(done), plan.files);
    if (!record) {
        return fail(record.error());
    }
    plan.isPublished = true;
    const DomainHead head{record->id, plan.isLast && plan.instance, plan.isAtVersion};
    const auto recorded = m_lineage.save(*record).and_then([&] { return m_lineage.setHead(record->domain, head); });
    if (!recorded) {
        return fail(recorded.error());
    }
    return Taken{std::move(*record), plan.pause, std::move(plan.note)};
}

void SnapshotTaker::undo(Plan& plan) {
    plan.capture.reset();
    if (plan.isHeld && plan.isPublished) {
        // Were it to write on where it is, the node would change should it turn out not to be given up below.
        if (auto switched = switchLayers(plan); !switched) {
            // Its last moment is in the node, which the next start of the daemon finishes.
            log::error("a guest that was to be suspended is ended: it must not write to what its snapshot has frozen",
                       {{"SNAPSHOT", plan.record.id.text()}, {"ERROR", switched.error().message}});
            [[maybe_unused]] const auto ended = m_ports.hypervisor.destroy(plan.instance->id);
            return;
        }
    }
    if (plan.isHeld) {
        const auto goesOn = letGoOn(plan).and_then([&] { return m_ports.links.thaw(plan.instance->id); });
        if (!goesOn) {
            log::error("a guest could not be resumed after its suspension failed",
                       {{"DOMAIN", plan.record.domain.text()}, {"ERROR", goesOn.error().message}});
        }
    }
    if (plan.isCommitted && !plan.mayHaveSwitched && !plan.isPublished) {
        if (auto back = m_ports.store.rollBack(plan.files, plan.source); !back) {
            log::warning("a snapshot that was not taken left empty layers",
                         {{"SNAPSHOT", plan.record.id.text()}, {"ERROR", back.error().message}});
        }
    }
    // Its files go at once unless the domain writes above them by now.
    if (auto abandoned = m_lineage.abandon(plan.record.id); !abandoned) {
        log::warning("what is left of a snapshot that was not taken is removed later",
                     {{"SNAPSHOT", plan.record.id.text()}, {"ERROR", abandoned.error().message}});
    }
}

} // namespace bulkhead::core

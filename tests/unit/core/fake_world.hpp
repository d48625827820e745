// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/services/cid_leases.hpp"
#include "core/services/doctor_service.hpp"
#include "core/services/domain_service.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/idle_suspender.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/kept_disposables.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/reconciler.hpp"
#include "core/services/shell_pool.hpp"
#include "core/services/snapshot_service.hpp"
#include "core/services/snapshot_taker.hpp"
#include "core/services/space_guard.hpp"
#include "core/services/template_service.hpp"
#include "core/services/trash_service.hpp"
#include "core/services/uid_leases.hpp"
#include "core/services/warm_image_service.hpp"
#include "core/services/worker_pool.hpp"
#include "support/fakes/fake_host.hpp"
#include "support/fakes/fake_hypervisor.hpp"
#include "support/fakes/fake_image_store.hpp"
#include "support/fakes/fake_images.hpp"
#include "support/fakes/fake_repositories.hpp"
#include "support/fakes/fake_snapshot_store.hpp"
#include "support/fakes/gated_ports.hpp"

#include <memory>
#include <thread>

namespace bulkhead::tests {

/// What outlives a daemon: records, disks, emulators, guests.
struct Outside {
    FakeClock clock;
    FakeDatabase database;
    FakeDomainRepository domains{database};
    FakeInstanceRepository instances{database};
    FakeSnapshotRepository snapshotRecords{database};
    FakeDefinitionStore definitions;
    FakeDeletedDefinitions setAside{definitions};
    FakeTemplateStore templates;
    FakeInstanceStore store;
    FakeKeptHomes homes{store};
    /// For how long daemons keep deleted domains.
    std::chrono::seconds keepDeleted{0};
    FakeSnapshotStore snapshots{store};
    FakeHypervisor hypervisor;
    FakeGuestLinks links;
    FakeMachines machines{hypervisor};
    FakeWarmImageStore images;
    FakeMemoryCapturer memoryCapturer;
    FakeEmulatorWatch watch;
    FakeTemplateBuilder builder;
    FakeAcceleration acceleration;
    FakeTransport transport;
    FakeBootCounter cidCounter;
    FakeMemory memory;
    unsigned waitingShells = 0; ///< as daemons are told

    /// The way that daemons take to all of it.
    CallGate gate;
    struct Gated {
        GatedDomainRepository domains;
        GatedInstanceRepository instances;
        GatedSnapshotRepository snapshotRecords;
        GatedDefinitionStore definitions;
        GatedInstanceStore store;
        GatedLateHomes lateHomes;
        GatedSnapshotStore snapshots;
        GatedHypervisor hypervisor;
        GatedGuestLinks links;
        GatedMachines machines;
        GatedMemoryCapturer memoryCapturer;
        GatedDeletedDefinitions setAside;
        GatedKeptHomes homes;
    } gated{{domains, gate}, {instances, gate}, {snapshotRecords, gate}, {definitions, gate},
            {store, gate},   {store, gate},     {snapshots, gate},       {hypervisor, gate},
            {links, gate},   {machines, gate},  {memoryCapturer, gate},  {setAside, gate},
            {homes, gate}};

    Outside() {
        core::TemplateDefinition minimal;
        minimal.name = "minimal";
        minimal.systemSize = 8 * kGiB;
        minimal.homeSize = 2 * kGiB;
        minimal.sizes = {{"small", {512 * kMiB, 1}}, {"huge", {64 * kGiB, 8}}};
        minimal.defaultSize = "small";
        definitions.templates.push_back(minimal);
        templates.add("minimal", builder.hash);
    }
};

/// A daemon's core over fakes, composed as main() does it. Destroying one and making another over the same Outside is
/// what a killed and restarted daemon is.
struct Daemon {
    /// `patience`: for how long it tries to let a paused guest go on while the hypervisor is away.
    explicit Daemon(Outside& world, std::chrono::milliseconds patience = std::chrono::milliseconds(200))
        : outside(world)
        , pausePatience(patience) {
        lifecycleForEvents = &lifecycle;
        lifecycle.setKeeping({.suspend = [this](const DomainId& id) { kept.suspendSoon(id); },
                              .forget = [this](const DomainId& id) { return snapshots.forget(id); }});
        lifecycle.setTakeSnapshot([this](const DomainId& id, std::string_view reason, const core::JobContext& job) {
            return snapshots.keepHome(id, reason, job);
        });
        domains.whenRemoved([this] { snapshots.collect(); });
        trash.whenRemoved([this] { snapshots.collect(); });
        shellsForEvents = &shells;
        launcher.useShells(shells);
        warmImages.whenMade([this] { shells.onImagesChanged(); });
        templates.whenInstalled([this](const std::string&) { shells.onImagesChanged(); });
    }
    // Workers first: what they still run uses the services. Those of shells last: starts may end some.
    ~Daemon() {
        workers.reset();
        shellWork.reset();
    }

    Outside& outside;
    std::chrono::milliseconds pausePatience;
    RecordingEvents events;
    std::unique_ptr<core::WorkerPool> workers = std::make_unique<core::WorkerPool>(4);
    std::unique_ptr<core::WorkerPool> shellWork = std::make_unique<core::WorkerPool>(1);
    core::JobService jobs{*workers, events};
    core::TemplateService templates{{outside.gated.definitions, outside.templates, outside.builder,
                                     outside.acceleration, outside.gated.instances, outside.gated.snapshotRecords,
                                     events},
                                    jobs};
    core::DomainTable table{events};
    core::LineageTable lineage{
        {outside.gated.snapshotRecords, outside.gated.snapshots, events}, table, FakeSnapshotStore::kFolder};
    core::UidLeases leases;
    core::CidLeases cids{outside.cidCounter, [this](std::uint32_t cid) { return outside.transport.isCidFree(cid); },
                         [] { return 7U; }};
    core::LifecycleService* lifecycleForEvents = nullptr;
    core::ShellPool* shellsForEvents = nullptr;
    core::EmulatorMonitor monitor{outside.watch, [this](const InstanceId& id) {
                                      lifecycleForEvents->onEmulatorGone(id);
                                      shellsForEvents->onEmulatorGone(id);
                                  }};
    core::InstanceLauncher launcher{{outside.gated.hypervisor, outside.gated.store, outside.gated.lateHomes,
                                     outside.gated.instances, outside.gated.links, outside.gated.machines,
                                     outside.images, outside.gated.snapshots, outside.acceleration, outside.transport,
                                     outside.memory, outside.clock, [this] { return lineage.filesInUse(); }},
                                    templates,
                                    leases,
                                    cids,
                                    monitor,
                                    table};
    core::ShellPool shells{outside.waitingShells,
                           outside.images,
                           outside.memory,
                           launcher,
                           monitor,
                           *shellWork,
                           {.settle = std::chrono::milliseconds(0), .retry = std::chrono::milliseconds(1)}};
    core::WarmImageService warmImages{{outside.gated.hypervisor, outside.gated.machines, outside.gated.memoryCapturer,
                                       outside.images, outside.gated.links, [this] { return lineage.filesInUse(); }},
                                      launcher,
                                      templates,
                                      jobs,
                                      {.rest = std::chrono::seconds(5), .ask = std::chrono::milliseconds(1)}};
    core::LifecycleService lifecycle{table,
                                     outside.gated.domains,
                                     outside.gated.instances,
                                     outside.gated.links,
                                     launcher,
                                     monitor,
                                     lineage,
                                     jobs,
                                     {*workers, *workers},
                                     {.settle = std::chrono::milliseconds(20),
                                      .retry = std::chrono::milliseconds(20),
                                      .lookAgain = std::chrono::milliseconds(5),
                                      .busy = std::chrono::milliseconds(20)}};
    core::TrashService trash{{outside.gated.domains, outside.gated.definitions, outside.gated.setAside,
                              outside.gated.store, outside.gated.homes, outside.clock},
                             table,
                             jobs,
                             outside.keepDeleted};
    core::DomainService domains{{outside.gated.domains, outside.gated.definitions, outside.gated.store,
                                 outside.gated.links, outside.gated.snapshots, outside.gated.snapshotRecords,
                                 outside.clock},
                                table,
                                templates,
                                lifecycle,
                                trash,
                                jobs};
    core::SnapshotTaker taker{{outside.gated.hypervisor, outside.gated.machines, outside.gated.memoryCapturer,
                               outside.gated.snapshots, outside.gated.links, outside.clock},
                              lineage,
                              templates,
                              monitor,
                              pausePatience};
    core::SnapshotService snapshots{outside.gated.snapshots, table, domains, lifecycle, lineage, taker, jobs};
    std::chrono::steady_clock::time_point now; ///< of the idle suspender's clock
    core::IdleSuspender idle{
        table, outside.links, snapshots, [this] { return now; }, {.look = {}, .retry = std::chrono::minutes(10)}};
    core::KeptDisposables kept{snapshots, *workers, std::chrono::milliseconds(20)};
    core::Reconciler reconciler{{outside.gated.hypervisor, outside.gated.store, outside.templates, outside.builder,
                                 outside.gated.domains, outside.gated.instances, outside.gated.definitions,
                                 outside.gated.links, outside.gated.snapshotRecords, outside.gated.snapshots,
                                 outside.gated.machines, outside.clock},
                                table,
                                lineage,
                                leases,
                                launcher,
                                lifecycle,
                                monitor,
                                trash};

    core::JobInfo wait(const JobId& id) {
        const core::Caller root{0, {}};
        while (true) {
            auto info = jobs.describe(root, id);
            if (!info) {
                throw std::logic_error("the job vanished");
            }
            if (info->state != core::JobState::Running) {
                return *info;
            }
            std::this_thread::yield();
        }
    }
};

} // namespace bulkhead::tests

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/services/cid_leases.hpp"
#include "core/services/doctor_service.hpp"
#include "core/services/domain_service.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/reconciler.hpp"
#include "core/services/snapshot_service.hpp"
#include "core/services/snapshot_taker.hpp"
#include "core/services/space_guard.hpp"
#include "core/services/template_service.hpp"
#include "core/services/uid_leases.hpp"
#include "core/services/warm_image_service.hpp"
#include "core/services/worker_pool.hpp"
#include "support/fakes/fake_host.hpp"
#include "support/fakes/fake_hypervisor.hpp"
#include "support/fakes/fake_image_store.hpp"
#include "support/fakes/fake_images.hpp"
#include "support/fakes/fake_repositories.hpp"
#include "support/fakes/fake_snapshot_store.hpp"

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
    FakeTemplateStore templates;
    FakeInstanceStore store;
    FakeSnapshotStore snapshots{store};
    FakeHypervisor hypervisor;
    FakeGuestLinks links;
    FakeMachines machines;
    FakeWarmImageStore images;
    FakeMemoryCapturer memoryCapturer;
    FakeEmulatorWatch watch;
    FakeTemplateBuilder builder;
    FakeAcceleration acceleration;
    FakeTransport transport;
    FakeBootCounter cidCounter;
    FakeMemory memory;

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
    explicit Daemon(Outside& world)
        : outside(world) {
        lifecycleForEvents = &lifecycle;
    }
    // Workers first: what they still run uses the services.
    ~Daemon() { workers.reset(); }

    Outside& outside;
    RecordingEvents events;
    std::unique_ptr<core::WorkerPool> workers = std::make_unique<core::WorkerPool>(4);
    core::JobService jobs{*workers, events};
    core::TemplateService templates{{outside.definitions, outside.templates, outside.builder, outside.acceleration,
                                     outside.instances, outside.snapshotRecords, events},
                                    jobs};
    core::DomainTable table{events};
    core::LineageTable lineage{{outside.snapshotRecords, outside.snapshots, events}, table, FakeSnapshotStore::kFolder};
    core::UidLeases leases;
    core::CidLeases cids{outside.cidCounter, [this](std::uint32_t cid) { return outside.transport.isCidFree(cid); },
                         [] { return 7U; }};
    core::LifecycleService* lifecycleForEvents = nullptr;
    core::EmulatorMonitor monitor{outside.watch,
                                  [this](const InstanceId& id) { lifecycleForEvents->onEmulatorGone(id); }};
    core::InstanceLauncher launcher{{outside.hypervisor, outside.store, outside.instances, outside.links,
                                     outside.machines, outside.images, outside.snapshots, outside.acceleration,
                                     outside.transport, outside.memory, outside.clock},
                                    templates,
                                    leases,
                                    cids,
                                    monitor,
                                    table};
    core::WarmImageService warmImages{{outside.hypervisor, outside.machines, outside.memoryCapturer, outside.images,
                                       outside.links, [this] { return lineage.filesInUse(); }},
                                      launcher,
                                      templates,
                                      jobs,
                                      {.rest = std::chrono::seconds(5), .ask = std::chrono::milliseconds(1)}};
    core::LifecycleService lifecycle{table,
                                     outside.domains,
                                     outside.instances,
                                     outside.links,
                                     launcher,
                                     monitor,
                                     lineage,
                                     jobs,
                                     {*workers, *workers},
                                     {.settle = std::chrono::milliseconds(20),
                                      .retry = std::chrono::milliseconds(20),
                                      .lookAgain = std::chrono::milliseconds(5),
                                      .busy = std::chrono::milliseconds(20)}};
    core::DomainService domains{{outside.domains, outside.definitions, outside.store, outside.links, outside.snapshots,
                                 outside.snapshotRecords, outside.clock},
                                table,
                                templates,
                                lifecycle,
                                jobs};
    core::SnapshotTaker taker{
        {outside.hypervisor, outside.machines, outside.memoryCapturer, outside.snapshots, outside.links, outside.clock},
        lineage,
        templates,
        monitor,
        std::chrono::milliseconds(200)};
    core::SnapshotService snapshots{outside.snapshots, table, domains, lifecycle, lineage, taker, jobs};
    core::Reconciler reconciler{{outside.hypervisor, outside.store, outside.templates, outside.builder, outside.domains,
                                 outside.instances, outside.definitions, outside.links, outside.snapshotRecords,
                                 outside.snapshots, outside.machines, outside.clock},
                                table,
                                lineage,
                                leases,
                                launcher,
                                lifecycle,
                                monitor};

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

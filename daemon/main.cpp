// SPDX-License-Identifier: Apache-2.0
/// The composition root: the only place that knows which adapter stands behind which port.
#include "base/log.hpp"
#include "base/version.hpp"
#include "config/config_probes.hpp"
#include "config/file_definition_store.hpp"
#include "config/file_deleted_definitions.hpp"
#include "core/services/cid_leases.hpp"
#include "core/services/contain_service.hpp"
#include "core/services/display_service.hpp"
#include "core/services/doctor_service.hpp"
#include "core/services/domain_service.hpp"
#include "core/services/emulator_monitor.hpp"
#include "core/services/guest_clocks.hpp"
#include "core/services/guest_event_relay.hpp"
#include "core/services/idle_suspender.hpp"
#include "core/services/instance_launcher.hpp"
#include "core/services/kept_disposables.hpp"
#include "core/services/lifecycle_service.hpp"
#include "core/services/lineage_table.hpp"
#include "core/services/pause_service.hpp"
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
#include "dbus/bus_service.hpp"
#include "dbus/login_watch.hpp"
#include "hypervisor/acceleration_probe.hpp"
#include "hypervisor/libvirt_connection.hpp"
#include "hypervisor/libvirt_hypervisor.hpp"
#include "hypervisor/libvirt_machines.hpp"
#include "hypervisor/libvirt_probe.hpp"
#include "hypervisor/libvirt_runtime.hpp"
#include "imaging/disk_probe.hpp"
#include "imaging/file_instance_store.hpp"
#include "imaging/file_kept_homes.hpp"
#include "imaging/file_snapshot_store.hpp"
#include "imaging/file_template_store.hpp"
#include "imaging/file_warm_image_store.hpp"
#include "imaging/process_memory_capturer.hpp"
#include "imaging/template_builder.hpp"
#include "link/channel_links.hpp"
#include "link/channel_probe.hpp"
#include "link/host_time_zone.hpp"
#include "link/vsock_transport.hpp"
#include "process/boot_counter.hpp"
#include "process/child_reaper.hpp"
#include "process/host_clock_watch.hpp"
#include "process/host_memory.hpp"
#include "process/pidfd_watch.hpp"
#include "process/poller.hpp"
#include "process/system_clock.hpp"
#include "settings.hpp"
#include "storage/database.hpp"
#include "storage/sqlite_domain_repository.hpp"
#include "storage/sqlite_instance_repository.hpp"
#include "storage/sqlite_snapshot_repository.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>
#include <thread>

namespace bulkhead {
namespace {

constexpr unsigned kCallThreads = 8;
constexpr unsigned kJobThreads = 32;
constexpr unsigned kCleanUpThreads = 4;
constexpr unsigned kLinkThreads = 4;
constexpr std::chrono::seconds kShellsEndWithin{10};

/// Thrown for what the daemon cannot live without; the text is for the administrator.
class StartFailure : public std::runtime_error {
    using runtime_error::runtime_error;
};

void orFail(const Status& status) {
    if (!status) {
        throw StartFailure(status.error().message);
    }
}

template <class T> T orFail(Result<T> result) {
    if (!result) {
        throw StartFailure(result.error().message);
    }
    return std::move(*result);
}

gid_t groupId(const std::string& name) {
    const group* const found = ::getgrnam(name.c_str());
    if (found == nullptr) {
        throw StartFailure("the group \"" + name + "\" does not exist; it owns the template images. Add it with: " +
                           "groupadd --system " + name);
    }
    return found->gr_gid;
}

void reportReconciliation(const core::Reconciler::Report& report) {
    for (const auto& problem : report.problems) {
        log::error("found at start", {{"PROBLEM", problem.message}});
    }
    log::notice("records, emulators and disks agree", {{"ADOPTED", std::to_string(report.adopted)},
                                                       {"ENDED", std::to_string(report.ended)},
                                                       {"UNDONE", std::to_string(report.undone)},
                                                       {"REMOVED", std::to_string(report.removed)},
                                                       {"REBUILT", std::to_string(report.rebuilt)},
                                                       {"FOREIGN", std::to_string(report.foreign)}});
}

void reportClock(std::chrono::milliseconds slept) {
    if (slept.count() > 0) {
        log::notice("the host has woken", {{"SLEPT_SECONDS", std::to_string(slept.count() / 1000)}});
    } else {
        log::notice("the host's clock was set; guests follow");
    }
}

std::uint32_t randomNumber() {
    std::uint32_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
        throw StartFailure("the kernel gives no random numbers");
    }
    return number;
}

[[noreturn]] void onFault() {
    try {
        if (const auto error = std::current_exception()) {
            std::rethrow_exception(error);
        }
    } catch (const StartFailure& failure) {
        log::error("cannot start", {{"REASON", failure.what()}});
        std::_Exit(EXIT_FAILURE);
    } catch (const std::exception& error) {
        log::error("fault", {{"REASON", error.what()}});
    }
    std::abort(); // with a core: a fault is a bug
}

/// Beside the program, or where the packages put it; see daemon/preload.
std::optional<std::filesystem::path> readonlyPreload(const Settings& settings) {
    const auto path = settings.libraryDirectory / "libbulkhead-readonly.so";
    if (::access(path.c_str(), R_OK) == 0) {
        return path;
    }
    log::warning("the library that keeps memory images unchanged is missing; emulators before QEMU 8.2 open none, so "
                 "domains boot",
                 {{"PATH", path.string()}});
    return std::nullopt;
}

/// Two daemons over one state would end each other's domains. The lock goes with the process.
UniqueFd lockState(const std::filesystem::path& stateDirectory) {
    const auto path = stateDirectory / "lock";
    UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        throw StartFailure("another bulkheadd uses " + stateDirectory.string() + " (the lock " + path.string() +
                           " is held); stop it first");
    }
    return lock;
}

/// A hypervisor that is still starting is waited for; one that stays away ends us, and the service manager decides.
core::Reconciler::Report reconcile(core::Reconciler& reconciler) {
    constexpr int kTries = 30;
    for (int i = 1;; ++i) {
        auto report = reconciler.run();
        if (report || report.error().code != ErrorCode::Unavailable || i == kTries) {
            return orFail(std::move(report));
        }
        log::warning("the hypervisor cannot be reached yet", {{"ERROR", report.error().message}});
        std::this_thread::sleep_for(std::chrono::seconds(1)); // lint-allow(sleep): nothing tells when it is there
    }
}

/// noexcept: an exception ends the process where it is thrown (onFault), not after the destructors of half of what
/// worker threads still use. The next start reconciles.
int run(const Settings& settings) noexcept {
    const gid_t imageGroup = groupId(settings.imageGroup);
    // The trial emulator of the self-test runs as the first leased uid: never as root.
    const uid_t trialUid = core::UidLeases::emulatorUid(core::UidLeases::kSlots);

    dbus::Loop loop;
    dbus::BusEvents events(loop);
    process::SystemClock clock;
    process::Poller poller;
    process::ChildReaper reaper(poller);
    process::PidfdWatch watch(poller);
    process::ProcHostMemory memory;

    std::filesystem::create_directories(settings.stateDirectory);
    std::filesystem::create_directories(settings.runtimeDirectory);
    const imaging::ImageLayout layout(settings.stateDirectory, settings.runtimeDirectory, imageGroup);
    orFail(layout.prepare());
    const UniqueFd lock = lockState(settings.stateDirectory);
    const auto database = orFail(storage::Database::open(settings.stateDirectory / "bulkhead.db"));
    storage::SqliteDomainRepository domainRepository(*database);
    storage::SqliteInstanceRepository instanceRepository(*database);
    storage::SqliteSnapshotRepository snapshotRepository(*database);
    config::FileDefinitionStore definitions(
        {.adminDomains = settings.configDirectory / "domains.d",
         .userDomains = settings.stateDirectory / "domains",
         .templates = {settings.dataDirectory / "templates.d", settings.configDirectory / "templates.d"}});

    config::FileDeletedDefinitions deletedDefinitions(settings.stateDirectory / "domains");

    hypervisor::LibvirtRuntime libvirtRuntime;
    hypervisor::LibvirtConnection libvirt(libvirtRuntime, settings.libvirtUri);
    hypervisor::LibvirtHypervisorOptions hypervisorOptions;
    hypervisorOptions.readonlyPreload = readonlyPreload(settings);
    hypervisor::LibvirtHypervisor hypervisor(libvirt, hypervisorOptions);
    hypervisor::LibvirtMachines machines(libvirt);
    hypervisor::AccelerationSelfTest acceleration(
        {.cacheFile = settings.stateDirectory / "acceleration", .uid = trialUid, .gid = imageGroup});

    link::VsockTransport transport({.wish = orFail(link::transportWish(settings.transport))});
    process::FileBootCounter cidCounter(settings.runtimeDirectory / "cid-counter");
    core::CidLeases cids(
        cidCounter, [&transport](std::uint32_t cid) { return transport.isCidFree(cid); }, randomNumber);

    imaging::FileTemplateStore templateStore(layout, clock);
    imaging::FileInstanceStore instanceStore(layout);
    imaging::FileKeptHomes keptHomes(layout);
    imaging::FileWarmImageStore warmImageStore(layout, clock);
    imaging::FileSnapshotStore snapshotStore(layout);
    imaging::ProcessMemoryCapturer memoryCapturer(settings.libexecDirectory / "bulkhead-memcap");
    imaging::ProcessTemplateBuilder builder({.program = settings.libexecDirectory / "bulkhead-build",
                                             .agent = settings.libexecDirectory / "bulkhead-agent",
                                             .workDirectory = settings.cacheDirectory / "build",
                                             .user = settings.buildUser,
                                             .session = settings.libexecDirectory / "bulkhead-session"});

    core::WorkerPool calls(kCallThreads);
    core::WorkerPool jobThreads(kJobThreads);
    core::WorkerPool cleanUps(kCleanUpThreads);
    core::WorkerPool linkWork(kLinkThreads);
    core::JobService jobs(jobThreads, events);
    core::TemplateService templates({.definitions = definitions,
                                     .store = templateStore,
                                     .builder = builder,
                                     .acceleration = acceleration,
                                     .instances = instanceRepository,
                                     .snapshots = snapshotRepository,
                                     .events = events},
                                    jobs);
    core::DomainTable table(events);
    core::LineageTable lineage({.repository = snapshotRepository, .store = snapshotStore, .events = events}, table,
                               layout.snapshots());
    core::UidLeases leases;
    core::GuestEventRelay relay;
    link::ChannelLinks links(
        {.program = settings.libexecDirectory / "bulkhead-channel", .sockets = settings.runtimeDirectory / "channels"},
        poller, reaper, relay);
    core::GuestClocks clocks(links, table, linkWork, {});
    const link::HostTimeZoneWatch zoneWatch(poller, [&clocks] { clocks.setAllSoon(); });
    const process::HostClockWatch clockWatch(poller, [&clocks](std::chrono::milliseconds slept) {
        reportClock(slept);
        clocks.setAllSoon();
    });
    core::EmulatorMonitor monitor(watch, [&relay](const InstanceId& instance) { relay.onEmulatorGone(instance); });
    core::InstanceLauncher launcher({.hypervisor = hypervisor,
                                     .store = instanceStore,
                                     .homes = instanceStore,
                                     .instances = instanceRepository,
                                     .links = links,
                                     .machines = machines,
                                     .images = warmImageStore,
                                     .snapshots = snapshotStore,
                                     .acceleration = acceleration,
                                     .transport = transport,
                                     .memory = memory,
                                     .clock = clock,
                                     .filesInUse = [&lineage] { return lineage.filesInUse(); }},
                                    templates, leases, cids, monitor, table);
    core::WarmImageService warmImages({.hypervisor = hypervisor,
                                       .machines = machines,
                                       .memory = memoryCapturer,
                                       .images = warmImageStore,
                                       .links = links,
                                       .filesInUse = [&lineage] { return lineage.filesInUse(); }},
                                      launcher, templates, jobs, {});
    core::WorkerPool shellWork(1);
    core::ShellPool shells(settings.waitingShells, warmImageStore, memory, launcher, monitor, shellWork, {});
    launcher.useShells(shells);
    warmImages.whenMade([&shells] { shells.onImagesChanged(); });
    core::LifecycleService lifecycle(table, domainRepository, instanceRepository, links, launcher, monitor, lineage,
                                     jobs, {.cleanUps = cleanUps, .linkWork = linkWork}, {});
    const bool makesImages = settings.warmImages == "auto";
    templates.whenInstalled([&shells, &warmImages, makesImages](const std::string& name) {
        shells.onImagesChanged();
        if (makesImages) {
            warmImages.makeSoon(name, {});
        }
    });
    if (makesImages) {
        lifecycle.whenBooted([&warmImages](const core::InstanceRecord& instance, const std::string& name) {
            warmImages.makeSoon(name, instance.size, instance.audio);
        });
    }
    const core::GuestEventRelay::Targets targets{lifecycle, [&lifecycle, &shells](const InstanceId& instance) {
                                                     lifecycle.onEmulatorGone(instance);
                                                     shells.onEmulatorGone(instance);
                                                 }};
    relay.attach(targets);
    core::TrashService trash({.domains = domainRepository,
                              .definitions = definitions,
                              .setAside = deletedDefinitions,
                              .store = instanceStore,
                              .homes = keptHomes,
                              .clock = clock},
                             table, jobs, settings.keepDeleted);
    jobs.explainFullDisk([&trash](uid_t owner) { return trash.hint(owner); });
    core::DomainService domains({.domains = domainRepository,
                                 .definitions = definitions,
                                 .store = instanceStore,
                                 .links = links,
                                 .snapshots = snapshotStore,
                                 .heads = snapshotRepository,
                                 .clock = clock},
                                table, templates, lifecycle, trash, jobs);
    core::SnapshotTaker snapshotTaker({.hypervisor = hypervisor,
                                       .machines = machines,
                                       .memory = memoryCapturer,
                                       .store = snapshotStore,
                                       .links = links,
                                       .clock = clock},
                                      lineage, templates, monitor);
    core::PauseService pauses(table, {.hypervisor = hypervisor, .links = links, .instances = instanceRepository}, jobs);
    pauses.whenResumed([&clocks](const InstanceId& instance) { clocks.setSoon(instance); });
    core::ContainService containment(table, pauses, snapshotTaker, lineage, jobs);
    core::SnapshotService snapshots(snapshotStore, table, domains, lifecycle, lineage, snapshotTaker, jobs);
    domains.whenRemoved([&snapshots] { snapshots.collect(); });
    trash.whenRemoved([&snapshots] { snapshots.collect(); });
    core::KeptDisposables kept(snapshots, cleanUps);
    lifecycle.setKeeping({.suspend = [&kept](const DomainId& id) { kept.suspendSoon(id); },
                          .forget = [&snapshots](const DomainId& id) { return snapshots.forget(id); }});
    lifecycle.setTakeSnapshot([&snapshots](const DomainId& id, std::string_view reason, const core::JobContext& job) {
        return snapshots.keepHome(id, reason, job);
    });
    core::DisplayService displays(domains, hypervisor, links);
    hypervisor::LibvirtProbe libvirtProbe(libvirt, acceleration, {.uid = trialUid, .gid = imageGroup});
    link::ChannelProbe channelProbe(transport);
    imaging::DiskProbe diskProbe(settings.stateDirectory);
    imaging::MemoryProbe memoryProbe(memory, definitions);
    imaging::TemplatesProbe templatesProbe(definitions, templateStore, builder, clock);
    config::DefinitionsProbe definitionsProbe(definitions);
    config::PolicyProbe policyProbe(settings.configDirectory / "policy.d");
    core::DoctorService doctor(
        {.forEverybody = {&libvirtProbe, &channelProbe, &diskProbe, &memoryProbe, &templatesProbe, &policyProbe},
         .forRoot = {&definitionsProbe}},
        acceleration, templateStore, jobs);

    core::Reconciler reconciler({.hypervisor = hypervisor,
                                 .store = instanceStore,
                                 .templates = templateStore,
                                 .builder = builder,
                                 .domains = domainRepository,
                                 .instances = instanceRepository,
                                 .definitions = definitions,
                                 .links = links,
                                 .snapshots = snapshotRepository,
                                 .snapshotStore = snapshotStore,
                                 .machines = machines,
                                 .clock = clock},
                                table, lineage, leases, launcher, lifecycle, monitor, trash);
    reportReconciliation(reconcile(reconciler));
    cleanUps.post([&trash, &cleanUps] { trash.begin(cleanUps); });
    core::IdleSuspender idleSuspender(table, links, snapshots, [] { return std::chrono::steady_clock::now(); }, {});
    cleanUps.post([&idleSuspender, &cleanUps] { idleSuspender.begin(cleanUps); });
    core::SpaceGuard spaceGuard(hypervisor, instanceStore, table, cleanUps);
    spaceGuard.whenResumed([&clocks](const InstanceId& instance) { clocks.setSoon(instance); });
    cleanUps.post([&spaceGuard] { spaceGuard.begin(); });

    const auto connection = sdbus::createSystemBusConnection();
    dbus::Door door;
    dbus::CallLimiter limiter;
    {
        dbus::BusService bus(*connection,
                             {.loop = loop,
                              .door = door,
                              .calls = calls,
                              .table = table,
                              .domains = domains,
                              .trash = trash,
                              .displays = displays,
                              .lifecycle = lifecycle,
                              .pauses = pauses,
                              .containment = containment,
                              .templates = templates,
                              .warmImages = warmImages,
                              .snapshots = snapshots,
                              .doctor = doctor,
                              .jobs = jobs,
                              .syncObjects = {},
                              .limiter = limiter},
                             acceleration);
        const dbus::LoginWatch loginWatch(*connection, [&clocks] { clocks.setAllSoon(); });
        events.attach(&bus);
        loop.attach(*connection);
        ::sd_notify(0, "READY=1");
        log::notice("ready", {{"VERSION", kVersion}});
        loop.run();
        ::sd_notify(0, "STOPPING=1");
    }
    // There is one way to end, the one that a crash takes: what is under way is undone or finished by the reconciler of
    // the next start, and domains run on. So nothing here waits for jobs. Emulators that wait for domains are nobody's,
    // though, and it may be long until that start.
    shells.stop(kShellsEndWithin);
    std::_Exit(EXIT_SUCCESS);
}

} // namespace
} // namespace bulkhead

int main(int argc, char** argv) {
    const auto settings = bulkhead::readCommandLine(argc, argv);
    if (!settings) {
        std::fprintf(stderr, "bulkheadd: %s\n", settings.error().message.c_str());
        return 2;
    }
    if (settings->showHelp) {
        std::fputs(bulkhead::usageText().c_str(), stdout);
        return EXIT_SUCCESS;
    }
    if (settings->showVersion) {
        std::printf("bulkheadd %s\n", bulkhead::kVersion);
        return EXIT_SUCCESS;
    }
    std::set_terminate(bulkhead::onFault);
    return bulkhead::run(*settings);
}

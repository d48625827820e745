// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_instance_store.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "imaging/home_manifest.hpp"
#include "imaging/overlays.hpp"
#include "imaging/template_manifest.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <unistd.h>

namespace bulkhead::imaging {

namespace {

/// What a start writes at once: two empty overlays and small files.
constexpr Bytes kInstanceNeeds = 4 * kMiB;

std::string_view tokenBytes(const core::GuestToken& token) {
    const void* const data = token.data();
    return {static_cast<const char*>(data), token.size()};
}

std::int64_t secondsNow() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

} // namespace

Status FileInstanceStore::createHome(const DomainId& domain, uid_t owner, const std::string& name, Bytes size) {
    const std::lock_guard lock(m_homes);
    if (auto ready = m_layout.prepare(); !ready) {
        return ready;
    }
    const std::filesystem::path folder = m_layout.homeFolder(domain);
    if (isThere(folder)) {
        return fail(ErrorCode::AlreadyExists, "domain " + domain.text() + " has a home disk already");
    }
    if (auto room = checkSpace(m_space, m_layout.state(), kHomeFileSystemNeeds, "making a home disk"); !room) {
        return room;
    }
    const std::filesystem::path temporary = m_layout.homes() / (".new-" + domain.text());
    const HomeManifest manifest{owner, name, secondsNow(), {}};
    ScopeGuard undo([&] { [[maybe_unused]] const Status removed = removeTree(temporary); });
    const Status made =
        removeTree(temporary)
            .and_then([&] { return makeFolder(temporary, m_layout.sharedFolder()); })
            .and_then([&] { return makeHomeFileSystem(temporary / "home.img", size); })
            .and_then([&] { return setAccess(temporary / "home.img", m_layout.privateFile()); })
            .and_then([&] {
                // Before the home has its name: no home without it is ever seen.
                return writeNewFile(temporary / kManifestName, writeHomeManifest(manifest, m_layout.state()),
                                    m_layout.privateFile(), true);
            })
            .and_then([&] { return syncPath(temporary); })
            .and_then([&] { return renamePath(temporary, folder); })
            .and_then([&] { return syncPath(m_layout.homes()); });
    return made;
}

Status FileInstanceStore::growHome(const DomainId& domain, Bytes size) {
    const std::lock_guard lock(m_homes);
    if (!isThere(m_layout.homeFolder(domain))) {
        return {};
    }
    const auto claimant = m_layers.otherClaimantOf(domain, std::nullopt, LayerFiles::Unreadable::Fails);
    if (!claimant) {
        return fail(claimant.error().in("the home disk may be in use"));
    }
    if (*claimant) {
        return fail(ErrorCode::Busy, "the home disk is in use by instance " + (*claimant)->text());
    }
    const auto home = m_layers.home(domain);
    return home ? growLayer(home->layers.front(), size) : fail(home.error());
}

Status FileInstanceStore::removeHome(const DomainId& domain) {
    const std::lock_guard lock(m_homes);
    const std::filesystem::path folder = m_layout.homeFolder(domain);
    if (!isThere(folder)) {
        return {};
    }
    // First out of sight: a crash in the middle leaves something that removeLeftovers() takes, not half a home.
    const std::filesystem::path going = m_layout.homes() / (".old-" + domain.text());
    return removeTree(going)
        .and_then([&] { return renamePath(folder, going); })
        .and_then([&] { return syncPath(m_layout.homes()); })
        .and_then([&] { return removeTree(going); });
}

Result<core::Disk> FileInstanceStore::addOverlay(const core::InstancePlan& plan, const char* name,
                                                 core::Disk base) const {
    const std::filesystem::path overlay = m_layout.instance(plan.instance) / name;
    const Status made = makeOverlay(overlay, base.layers.front()).and_then([&] {
        return setAccess(overlay, emulatorFile(plan, 0600));
    });
    if (!made) {
        return fail(made.error());
    }
    base.layers.insert(base.layers.begin(), {overlay, core::DiskFormat::Qcow2});
    return base;
}

Result<core::Disk> FileInstanceStore::makeSystem(const core::InstancePlan& plan,
                                                 const std::filesystem::path& templateFolder) const {
    const core::Disk plain{{{templateFolder / "root.img", core::DiskFormat::Raw}}};
    return addOverlay(plan, "system.qcow2", plan.systemBase.layers.empty() ? plain : plan.systemBase);
}

Result<core::Disk> FileInstanceStore::claimHome(const core::InstancePlan& plan, const DomainId& domain) const {
    if (!plan.homeBase.layers.empty()) {
        return fail(ErrorCode::InvalidArgument, "a kept home has its own layers");
    }
    auto home = m_layers.home(domain);
    if (!home) {
        return home;
    }
    // Two emulators on one file system destroy it: a claim that cannot be read may be for this very home.
    const auto claimant = m_layers.otherClaimantOf(domain, plan.instance, LayerFiles::Unreadable::Fails);
    if (!claimant) {
        return fail(claimant.error().in("the home disk of domain " + domain.text() + " may be in use"));
    }
    if (*claimant) {
        return fail(ErrorCode::Busy, "the home disk of domain " + domain.text() + " is in use by instance " +
                                         (*claimant)->text() + "; stop that first");
    }
    if (auto shared = m_layers.shareFrozen(*home); !shared) {
        return fail(shared.error());
    }
    if (auto noted = m_layers.noteClaim(plan.instance, domain); !noted) {
        return fail(noted.error());
    }
    if (auto given = setAccessOfLayer(home->layers.front().path, emulatorFile(plan, 0600)); !given) {
        // Nothing was claimed, so nothing must be given back: the image may be what setAccess() refuses to touch.
        m_layers.dropClaim(plan.instance);
        return fail(given.error());
    }
    return home;
}

Result<std::filesystem::path> FileInstanceStore::homeBase(Bytes size) {
    std::filesystem::path base = m_layout.homeBase(size);
    if (isThere(base)) {
        return base;
    }
    if (auto room = checkSpace(m_space, m_layout.state(), kHomeFileSystemNeeds, "making a home disk"); !room) {
        return fail(room.error());
    }
    const std::filesystem::path temporary = m_layout.bases() / (".new-" + randomUuidText());
    ScopeGuard undo([&] { [[maybe_unused]] const Status removed = removeTree(temporary); });
    const Status made = makeHomeFileSystem(temporary, size)
                            .and_then([&] { return setAccess(temporary, m_layout.sharedFile()); })
                            .and_then([&] { return renamePath(temporary, base); })
                            .and_then([&] { return syncPath(m_layout.bases()); });
    if (!made) {
        return fail(made.error());
    }
    undo.dismiss();
    return base;
}

Result<core::Disk> FileInstanceStore::makeFreshHome(const core::InstancePlan& plan) {
    if (!plan.homeBase.layers.empty()) {
        return addOverlay(plan, "home.qcow2", plan.homeBase);
    }
    const auto base = homeBase(plan.homeSize);
    if (!base) {
        return fail(base.error());
    }
    return addOverlay(plan, "home.qcow2", core::Disk{{{*base, core::DiskFormat::Raw}}});
}

Result<core::InstanceFiles> FileInstanceStore::prepareInstance(const core::InstancePlan& plan) {
    if (plan.emulatorUid == 0) {
        return fail(ErrorCode::InvalidArgument, "an emulator must not run as root");
    }
    const auto templateFolder = m_layout.templateVersion(plan.templateName, plan.templateVersion);
    if (!templateFolder) {
        return fail(templateFolder.error());
    }
    if (!isThere(*templateFolder)) {
        return fail(ErrorCode::NotFound, "template \"" + plan.templateName + "\" version " + plan.templateVersion +
                                             " is not installed any more; start the domain again");
    }
    if (auto ready = m_layout.prepare(); !ready) {
        return fail(ready.error());
    }
    if (auto room = checkSpace(m_space, m_layout.state(), kInstanceNeeds, "starting a domain"); !room) {
        return fail(room.error());
    }
    const std::filesystem::path folder = m_layout.instance(plan.instance);
    const std::filesystem::path runtime = m_layout.runtimeInstance(plan.instance);
    if (auto made = makeFolder(folder, m_layout.sharedFolder()); !made) {
        return fail(made.error());
    }
    ScopeGuard undo([&] {
        if (auto removed = removeInstance(plan.instance, std::nullopt); !removed) {
            log::warning("files of a failed start cannot be removed",
                         {{"INSTANCE", plan.instance.text()}, {"ERROR", removed.error().message}});
        }
    });

    core::InstanceFiles files;
    auto system = makeSystem(plan, *templateFolder);
    if (!system) {
        return fail(system.error());
    }
    files.system = std::move(*system);
    {
        const std::lock_guard lock(m_homes);
        auto home = plan.keptHome ? claimHome(plan, *plan.keptHome) : makeFreshHome(plan);
        if (!home) {
            return fail(home.error());
        }
        files.home = std::move(*home);
    }
    std::vector<core::Disk> inspected;
    for (const core::InspectedDisk& wanted : plan.inspected) {
        auto disk = addOverlay(plan, (wanted.serial + ".qcow2").c_str(), wanted.disk);
        if (!disk) {
            return fail(disk.error().in("a disk to be looked into"));
        }
        inspected.push_back(*disk);
        files.inspected.push_back({wanted.serial, std::move(*disk)});
    }
    files.kernel = *templateFolder / "vmlinuz";
    files.initrd = *templateFolder / "initrd.img";
    files.tokenFile = folder / "token";
    files.agentSocket = runtime / "agent.sock";
    files.emulatorGid = m_layout.emulatorGroup();
    const Status rest =
        writeNewFile(files.tokenFile, tokenBytes(plan.token), emulatorFile(plan, 0400), false)
            .and_then([&] { return makeFolder(runtime, m_layout.privateFolder()); })
            .and_then([&] {
                return m_layers.noteDisks(plan.instance, {files.system, files.home, plan.memory, inspected});
            });
    if (!rest) {
        return fail(rest.error());
    }
    undo.dismiss();
    return files;
}

Result<Bytes> FileInstanceStore::sizeOfHome(const DomainId& domain) {
    const auto home = m_layers.home(domain);
    return home ? diskSizeOf(home->layers.front()) : fail(home.error());
}

Result<core::Disk> FileInstanceStore::giveHome(const core::InstancePlan& plan) {
    if (!plan.keptHome || plan.emulatorUid == 0) {
        return fail(ErrorCode::InvalidArgument, "no home to give, or nobody to give it to");
    }
    const std::lock_guard lock(m_homes);
    auto disks = m_layers.disksOf(plan.instance);
    if (!disks) {
        return fail(disks.error());
    }
    auto home = claimHome(plan, *plan.keptHome);
    if (!home) {
        return fail(home.error());
    }
    disks->home = *home;
    if (auto noted = m_layers.noteDisks(plan.instance, *disks); !noted) {
        return fail(noted.error());
    }
    return home;
}

/// When it is unknown what is active: whatever does not belong to root already.
Status FileInstanceStore::releaseAllOf(const DomainId& domain, const Error& why) const {
    log::warning("a home is taken back although it is damaged", {{"DOMAIN", domain.text()}, {"ERROR", why.message}});
    const std::filesystem::path folder = m_layout.homeFolder(domain);
    const auto names = listFolder(folder);
    if (!names) {
        return fail(names.error());
    }
    for (const std::string& name : *names) {
        const auto facts = factsOf(folder / name);
        if (!facts || facts->uid == m_layout.privateFile().uid) {
            continue;
        }
        if (auto taken = setAccessOfLayer(folder / name, m_layout.privateFile()); !taken) {
            return taken;
        }
    }
    return {};
}

Status FileInstanceStore::releaseHome(const DomainId& domain) const {
    const auto home = m_layers.home(domain);
    if (!home) {
        return home.error().code == ErrorCode::NotFound ? Status{} : releaseAllOf(domain, home.error());
    }
    const Status released = setAccessOfLayer(home->layers.front().path, m_layout.privateFile());
    if (!released) {
        return released.error().code == ErrorCode::NotFound ? Status{} : released;
    }
    m_layers.removeUnused(domain);
    return {};
}

Status FileInstanceStore::removeInstance(const InstanceId& instance, const std::optional<DomainId>& keptHome) {
    std::vector<DomainId> homes;
    if (keptHome) {
        homes.push_back(*keptHome);
    }
    if (const auto claimed = m_layers.claimedBy(instance); !claimed) {
        // It may be any. A damaged claim must not make its instance impossible to remove.
        log::warning("it cannot be read which home an instance has claimed; all that nobody else has are given back",
                     {{"INSTANCE", instance.text()}, {"ERROR", claimed.error().message}});
        const auto all = idsIn<DomainId>(m_layout.homes());
        if (!all) {
            return fail(all.error());
        }
        homes = *all;
    } else if (*claimed && *claimed != keptHome) {
        homes.push_back(**claimed);
    }
    for (const DomainId& home : homes) {
        // A home that another instance has claimed since is not ours to give back. (Where that cannot be read nothing
        // is lost: a running emulator keeps what it has opened, and the claim stays.)
        const auto claimant = m_layers.otherClaimantOf(home, instance, LayerFiles::Unreadable::ClaimsNothing);
        if (!claimant) {
            return fail(claimant.error());
        }
        if (*claimant) {
            continue;
        }
        if (auto released = releaseHome(home); !released) {
            return released;
        }
    }
    return removeTree(m_layout.runtimeInstance(instance)).and_then([&] {
        return removeTree(m_layout.instance(instance));
    });
}

Result<std::vector<InstanceId>> FileInstanceStore::instancesOnDisk() {
    auto ids = idsIn<InstanceId>(m_layout.instances());
    const auto running = idsIn<InstanceId>(m_layout.runtimeInstances());
    if (!ids || !running) {
        return fail(!ids ? ids.error() : running.error());
    }
    ids->insert(ids->end(), running->begin(), running->end());
    std::sort(ids->begin(), ids->end());
    ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
    return ids;
}

Result<std::vector<core::HomeOnDisk>> FileInstanceStore::homesOnDisk() {
    const auto ids = idsIn<DomainId>(m_layout.homes());
    if (!ids) {
        return fail(ids.error());
    }
    std::vector<core::HomeOnDisk> homes;
    for (const DomainId& id : *ids) {
        core::HomeOnDisk home{id, std::nullopt, {}};
        const auto manifest = m_layers.homeManifest(id);
        if (manifest) {
            home.owner = manifest->owner;
            home.name = manifest->name;
        } else {
            log::info("it cannot be read whose a home is",
                      {{"DOMAIN", id.text()}, {"ERROR", manifest.error().message}});
        }
        homes.push_back(std::move(home));
    }
    return homes;
}

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#include "imaging/file_snapshot_store.hpp"

#include "base/log.hpp"
#include "base/scope_guard.hpp"
#include "imaging/overlays.hpp"
#include "imaging/template_manifest.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace bulkhead::imaging {
namespace {

/// What begin() writes: two empty layers and small files.
constexpr Bytes kNodeNeeds = 4 * kMiB;
constexpr std::string_view kBegunName = "begun.toml";
constexpr std::int64_t kBegunFormat = 1;
constexpr std::size_t kMostBegun = std::size_t{16} * 1024;
constexpr core::DiskFormat kLayerFormat = core::DiskFormat::Qcow2;

/// `disk` with its first layer under another name.
core::Disk withFirst(core::Disk disk, std::filesystem::path file) {
    disk.layers.front().path = std::move(file);
    return disk;
}

core::Disk above(const std::filesystem::path& file, core::Disk below) {
    below.layers.insert(below.layers.begin(), {file, kLayerFormat});
    return below;
}

/// The other name of a file in a folder; none when there is none.
std::optional<std::filesystem::path> otherName(const std::filesystem::path& file, const std::filesystem::path& folder) {
    const auto facts = factsOf(file);
    const auto names = listFolder(folder);
    for (const std::string& name : facts&& names ? *names : std::vector<std::string>()) {
        if (const auto other = factsOf(folder / name); other && other->inode == facts->inode) {
            return folder / name;
        }
    }
    return std::nullopt;
}

/// The disk as it is when the emulator writes to `active`: as noted, or without the empty layer on top.
Result<core::Disk> settled(const core::Disk& noted, const std::optional<std::filesystem::path>& active) {
    if (!active || noted.layers.front().path == *active) {
        return noted;
    }
    const auto real = factsOf(*active);
    const auto below = noted.layers.size() > 1 ? factsOf(noted.layers[1].path) : Result<FileFacts>(FileFacts());
    if (!real || !below || real->inode != below->inode) {
        return fail(ErrorCode::HostFailure,
                    "the emulator writes to " + active->string() + " instead of " + noted.layers.front().path.string());
    }
    core::Disk disk{{noted.layers.begin() + 1, noted.layers.end()}};
    disk.layers.front().path = *active;
    return disk;
}

std::int64_t secondsNow() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

} // namespace

Result<core::SnapshotStore::InstanceDisks> FileSnapshotStore::activeDisks(const core::SnapshotSource& source) const {
    if (!source.instance && !source.keptHome) {
        return fail(ErrorCode::InvalidArgument, "a snapshot needs an instance or a home");
    }
    if (source.instance && source.emulatorUid == 0) {
        return fail(ErrorCode::InvalidArgument, "an emulator must not run as root");
    }
    if (source.keptHome) {
        const auto claimant =
            m_layers.otherClaimantOf(*source.keptHome, source.instance, LayerFiles::Unreadable::Fails);
        if (!claimant) {
            return fail(claimant.error().in("the home disk may be in use"));
        }
        if (*claimant) {
            return fail(ErrorCode::Busy, "the home disk is in use by instance " + (*claimant)->text());
        }
        // What it is made of is about to be written there, so the rest of it must be known.
        if (auto manifest = m_layers.homeManifest(*source.keptHome); !manifest) {
            return fail(manifest.error());
        }
    }
    if (!source.instance) {
        auto home = m_layers.home(*source.keptHome);
        return home ? Result<InstanceDisks>(InstanceDisks{{}, std::move(*home), std::nullopt, {}}) : fail(home.error());
    }
    const auto claimed = m_layers.claimedBy(*source.instance);
    if (!claimed) {
        return fail(claimed.error());
    }
    if (*claimed != source.keptHome) {
        return fail(ErrorCode::WrongState, "instance " + source.instance->text() + " has claimed another home");
    }
    return m_layers.disksOf(*source.instance);
}

Status FileSnapshotStore::makeLayer(const std::filesystem::path& file, const core::DiskLayer& below,
                                    const core::SnapshotSource& source) const {
    const Access access =
        source.instance ? Access{0600, source.emulatorUid, m_layout.emulatorGroup()} : m_layout.privateFile();
    return makeOverlay(file, below)
        .and_then([&] { return setAccess(file, access); })
        .and_then([&] { return syncPath(file); })
        .and_then([&] { return syncPath(file.parent_path()); });
}

Status FileSnapshotStore::makeFiles(core::SnapshotFiles& files, const core::SnapshotSource& source,
                                    const InstanceDisks& active) const {
    const std::filesystem::path newFolder =
        source.keptHome ? m_layout.homeFolder(*source.keptHome) : m_layout.instance(*source.instance);
    const bool isRaw = active.home.layers.front().format == core::DiskFormat::Raw;
    files.home = withFirst(active.home, files.folder / (isRaw ? "home.img" : "home.qcow2"));
    files.newHome = newFolder / newLayerName("home");
    files.devices = files.folder / kDevicesPart;
    files.delta = files.folder / kDeltaPart;
    toml::table note{{"format", kBegunFormat}, {"home", storedPath(files.newHome, m_layout.state())}};
    if (source.instance) {
        files.system = withFirst(active.system, files.folder / kSystemPart);
        files.newSystem = m_layout.instance(*source.instance) / newLayerName("system");
        note.insert_or_assign("system", storedPath(*files.newSystem, m_layout.state()));
    }
    return writeNewFile(files.folder / kBegunName, textOf(note), m_layout.sealedFile(), true)
        .and_then([&] { return linkFile(active.home.layers.front().path, files.home.layers.front().path); })
        .and_then([&] { return makeLayer(files.newHome, files.home.layers.front(), source); })
        .and_then([&] {
            return source.instance ? linkFile(active.system.layers.front().path, files.system.layers.front().path)
                                   : Status{};
        })
        .and_then([&] {
            return source.instance ? makeLayer(*files.newSystem, files.system.layers.front(), source) : Status{};
        })
        .and_then([&] { return syncPath(files.folder); })
        .and_then([&] { return syncPath(m_layout.snapshots()); });
}

Result<core::SnapshotFiles> FileSnapshotStore::begin(const SnapshotId& id, const core::SnapshotSource& source) {
    if (auto ready = m_layout.prepare(); !ready) {
        return fail(ready.error());
    }
    const auto active = activeDisks(source);
    if (!active) {
        return fail(active.error());
    }
    if (auto room = checkSpace(m_space, m_layout.state(), source.needs + kNodeNeeds, "taking a snapshot"); !room) {
        return fail(room.error());
    }
    core::SnapshotFiles files;
    files.folder = m_layout.snapshot(id);
    if (auto made = makeFolder(files.folder, m_layout.sharedFolder()); !made) {
        return fail(made.error());
    }
    if (auto made = makeFiles(files, source, *active); !made) {
        if (auto removed = remove(id); !removed) {
            log::warning("files of a failed snapshot cannot be removed",
                         {{"SNAPSHOT", id.text()}, {"ERROR", removed.error().message}});
        }
        return fail(made.error());
    }
    return files;
}

Status FileSnapshotStore::commit(const core::SnapshotFiles& files, const core::SnapshotSource& source) {
    // An instance that has ended meanwhile took them along.
    for (const auto& layer : {std::optional(files.newHome), files.newSystem}) {
        if (const auto facts = layer ? factsOf(*layer) : Result<FileFacts>(FileFacts()); !facts) {
            return fail(facts.error());
        }
    }
    if (source.keptHome) {
        auto manifest = m_layers.homeManifest(*source.keptHome);
        if (!manifest) {
            return fail(manifest.error());
        }
        manifest->disk = above(files.newHome, files.home);
        if (auto replaced = m_layers.replaceHome(*source.keptHome, *manifest); !replaced) {
            return replaced;
        }
    }
    if (!source.instance) {
        return {};
    }
    auto disks = m_layers.disksOf(*source.instance);
    if (!disks) {
        return fail(disks.error());
    }
    disks->system = above(*files.newSystem, files.system);
    disks->home = above(files.newHome, files.home);
    return m_layers.noteDisks(*source.instance, *disks);
}

Status FileSnapshotStore::rollBack(const core::SnapshotFiles& files, const core::SnapshotSource& source) {
    const auto home = otherName(files.home.layers.front().path, files.newHome.parent_path());
    const auto system =
        files.newSystem ? otherName(files.system.layers.front().path, files.newSystem->parent_path()) : std::nullopt;
    if (!home || (files.newSystem && !system)) {
        return fail(ErrorCode::WrongState,
                    "the layers from before the snapshot have no name any more; the new ones stay");
    }
    if (source.instance) {
        auto disks = m_layers.disksOf(*source.instance);
        if (!disks) {
            return fail(disks.error());
        }
        disks->system = withFirst(files.system, *system);
        disks->home = withFirst(files.home, *home);
        if (auto noted = m_layers.noteDisks(*source.instance, *disks); !noted) {
            return noted;
        }
    }
    if (source.keptHome) {
        auto manifest = m_layers.homeManifest(*source.keptHome);
        if (!manifest) {
            return fail(manifest.error());
        }
        manifest->disk = withFirst(files.home, *home);
        if (auto replaced = m_layers.replaceHome(*source.keptHome, *manifest); !replaced) {
            return replaced;
        }
    }
    return removeTree(files.newHome).and_then([&] {
        return files.newSystem ? removeTree(*files.newSystem) : Status{};
    });
}

Result<core::SnapshotRecord> FileSnapshotStore::publish(core::SnapshotRecord record, const core::SnapshotFiles& files) {
    record.system = files.system;
    record.home = files.home;
    record.phase = core::SnapshotRecord::Phase::Present;
    std::vector<std::filesystem::path> parts{files.home.layers.front().path};
    if (!files.system.layers.empty()) {
        parts.push_back(files.system.layers.front().path);
    }
    if (record.memory) {
        record.memory->delta = files.delta;
        record.memory->devices = files.devices;
        parts.insert(parts.end(), {files.delta, files.devices});
    }
    SnapshotManifest manifest;
    record.sizeOnDisk = 0;
    for (const std::filesystem::path& part : parts) {
        auto sealed = m_nodes.seal(part);
        const auto facts = factsOf(part);
        if (!sealed || !facts) {
            return fail(!sealed ? sealed.error() : facts.error());
        }
        record.sizeOnDisk += facts->allocated;
        manifest.parts.emplace(part.filename().string(), std::move(*sealed));
    }
    manifest.record = record;
    const Status published = m_layers.shareFrozen(files.home)
                                 .and_then([&] { return m_layers.shareFrozen(files.system); })
                                 .and_then([&] { return syncPath(files.folder); })
                                 .and_then([&] { return m_nodes.replaceManifest(manifest); });
    if (!published) {
        return fail(published.error());
    }
    if (auto removed = removeTree(files.folder / kBegunName); !removed) {
        log::warning("a note beside a snapshot cannot be removed", {{"ERROR", removed.error().message}});
    }
    // The home's own name for its frozen layer. An emulator may still need it: then it goes with that.
    const auto domain = DomainId::parse(files.newHome.parent_path().filename().native());
    if (domain && files.newHome.parent_path() == m_layout.homeFolder(*domain)) {
        const auto claimant = m_layers.otherClaimantOf(*domain, std::nullopt, LayerFiles::Unreadable::Fails);
        if (claimant && !*claimant) {
            m_layers.removeUnused(*domain);
        }
    }
    return record;
}

Status FileSnapshotStore::settle(const InstanceId& instance, const std::optional<DomainId>& keptHome,
                                 const core::Machines::NewLayers& active) {
    auto disks = m_layers.disksOf(instance);
    if (!disks) {
        return disks.error().code == ErrorCode::NotFound ? Status{} : fail(disks.error());
    }
    const auto system = settled(disks->system, active.system);
    const auto home = settled(disks->home, active.home);
    if (!system || !home) {
        return fail(!system ? system.error() : home.error());
    }
    for (const auto& [noted, real] : {std::pair(&disks->system, &*system), std::pair(&disks->home, &*home)}) {
        const auto id =
            *real != *noted ? SnapshotId::parse(noted->layers[1].path.parent_path().filename().native()) : std::nullopt;
        const auto node = id ? m_nodes.manifest(*id) : Result<SnapshotManifest>(SnapshotManifest());
        if (id && node && node->record.phase != core::SnapshotRecord::Phase::Removed) {
            return fail(ErrorCode::WrongState, "the emulator still has the layers that are of snapshot " + id->text() +
                                                   " by now; it must end before it writes to them");
        }
    }
    if (keptHome && *home != disks->home) {
        auto manifest = m_layers.homeManifest(*keptHome);
        if (!manifest) {
            return fail(manifest.error());
        }
        manifest->disk = *home;
        if (auto replaced = m_layers.replaceHome(*keptHome, *manifest); !replaced) {
            return replaced;
        }
    }
    if (*home == disks->home && *system == disks->system) {
        return {};
    }
    disks->system = *system;
    disks->home = *home;
    return m_layers.noteDisks(instance, *disks);
}

Status FileSnapshotStore::update(const core::SnapshotRecord& record) {
    return m_nodes.change(record.id, [&](SnapshotManifest& manifest) {
        core::SnapshotRecord& stored = manifest.record;
        stored.parent = record.parent; // nodes between them may go
        stored.phase = record.phase;
        stored.reason = record.reason;
        stored.label = record.label;
        stored.isPinned = record.isPinned;
        stored.suspect = record.suspect;
    });
}

Status FileSnapshotStore::checkUnused(const SnapshotId& id) {
    const std::filesystem::path folder = m_layout.snapshot(id);
    const auto used = filesInUse();
    if (!used) {
        return fail(used.error().in("a snapshot's files may be in use"));
    }
    const auto isInside = [&](const std::filesystem::path& file) { return file.parent_path() == folder; };
    if (std::any_of(used->begin(), used->end(), isInside)) {
        return fail(ErrorCode::Busy, "a home or an instance lies above snapshot " + id.text());
    }
    const auto others = all();
    if (!others) {
        return fail(others.error());
    }
    for (const core::SnapshotRecord& other : *others) {
        for (const core::Disk* const disk : {&other.system, &other.home}) {
            const bool isAbove =
                other.id != id && std::any_of(disk->layers.begin(), disk->layers.end(),
                                              [&](const core::DiskLayer& layer) { return isInside(layer.path); });
            if (isAbove) {
                return fail(ErrorCode::Busy, "snapshot " + other.id.text() + " lies above snapshot " + id.text());
            }
        }
    }
    return {};
}

/// Of a node that was not published. None of them is active, or the node would be in use.
void FileSnapshotStore::removeNewLayers(const SnapshotId& id) const {
    const std::filesystem::path file = m_layout.snapshot(id) / kBegunName;
    const auto table = readSmallFile(file, kMostBegun).and_then([&](const std::string& text) {
        return parseManifest(text, file.string(), kBegunFormat);
    });
    if (!table) {
        return; // it is published, or no layer had been made yet
    }
    for (const char* const key : {"home", "system"}) {
        const auto stored = (*table)[key].value_exact<std::string>();
        const auto layer = stored ? pathFromStored(*stored, m_layout.state()) : std::nullopt;
        if (!layer) {
            continue;
        }
        if (auto removed = removeTree(*layer); !removed) {
            log::warning("a layer that nobody uses cannot be removed", {{"ERROR", removed.error().message}});
        }
    }
}

Status FileSnapshotStore::remove(const SnapshotId& id) {
    const std::filesystem::path folder = m_layout.snapshot(id);
    if (!isThere(folder)) {
        return {};
    }
    if (auto unused = checkUnused(id); !unused) {
        return unused;
    }
    removeNewLayers(id);
    // First out of sight: a crash in the middle leaves no half of a node.
    const std::filesystem::path going = m_layout.snapshots() / (".old-" + id.text());
    const Status removed = removeTree(going)
                               .and_then([&] { return renamePath(folder, going); })
                               .and_then([&] { return syncPath(m_layout.snapshots()); })
                               .and_then([&] { return removeTree(going); });
    if (const auto used = filesInUse()) {
        m_images.removeUnused(*used);
    }
    return removed;
}

Status FileSnapshotStore::dropMemory(const SnapshotId& id) {
    const std::filesystem::path folder = m_layout.snapshot(id);
    for (const auto& file : {folder / kDeltaPart, folder / kDevicesPart}) {
        if (auto removed = removeTree(file); !removed) {
            return removed;
        }
    }
    if (const auto used = filesInUse()) {
        m_images.removeUnused(*used);
    }
    return {};
}

Result<std::vector<core::SnapshotRecord>> FileSnapshotStore::all() {
    const auto ids = onDisk();
    if (!ids) {
        return fail(ids.error());
    }
    std::vector<core::SnapshotRecord> records;
    for (const SnapshotId& id : *ids) {
        if (auto manifest = m_nodes.manifest(id)) {
            records.push_back(std::move(manifest->record));
        } else if (manifest.error().code != ErrorCode::NotFound) {
            log::warning("a snapshot cannot be read", {{"SNAPSHOT", id.text()}, {"ERROR", manifest.error().message}});
        }
    }
    return records;
}

Result<core::Disk> FileSnapshotStore::systemOf(const core::SnapshotRecord& record) {
    if (!record.system.layers.empty()) {
        return record.system;
    }
    return m_layout.templateVersion(record.templateName, record.templateVersion)
        .and_then([&](const std::filesystem::path& folder) -> Result<core::Disk> {
            if (!isThere(folder / "root.img")) {
                return fail(ErrorCode::NotFound, "version " + record.templateVersion + " of template \"" +
                                                     record.templateName + "\" is not installed any more");
            }
            return core::Disk{{{folder / "root.img", core::DiskFormat::Raw}}};
        });
}

Status FileSnapshotStore::resetHome(const DomainId& domain, uid_t owner, const std::string& name,
                                    const core::Disk& below) {
    if (below.layers.empty()) {
        return fail(ErrorCode::InvalidArgument, "a home needs something to lie above");
    }
    if (auto ready = m_layout.prepare(); !ready) {
        return ready;
    }
    const auto claimant = m_layers.otherClaimantOf(domain, std::nullopt, LayerFiles::Unreadable::Fails);
    if (!claimant) {
        return fail(claimant.error().in("the home disk may be in use"));
    }
    if (*claimant) {
        return fail(ErrorCode::Busy, "the home disk is in use by instance " + (*claimant)->text());
    }
    if (auto room = checkSpace(m_space, m_layout.state(), kNodeNeeds, "making a home disk"); !room) {
        return room;
    }
    const std::filesystem::path folder = m_layout.homeFolder(domain);
    const std::filesystem::path layer = folder / newLayerName("home");
    HomeManifest manifest{owner, name, secondsNow(), above(layer, below)};
    if (isThere(folder)) {
        if (const auto before = m_layers.homeManifest(domain)) {
            manifest.created = before->created;
        }
        ScopeGuard undo([&] { [[maybe_unused]] const Status removed = removeTree(layer); });
        const Status replaced =
            makeLayer(layer, below.layers.front(), {}).and_then([&] { return m_layers.replaceHome(domain, manifest); });
        if (replaced) {
            undo.dismiss();
            m_layers.removeUnused(domain);
        }
        return replaced;
    }
    const std::filesystem::path temporary = m_layout.homes() / (".new-" + domain.text());
    ScopeGuard undo([&] { [[maybe_unused]] const Status removed = removeTree(temporary); });
    return removeTree(temporary)
        .and_then([&] { return makeFolder(temporary, m_layout.sharedFolder()); })
        .and_then([&] { return makeLayer(temporary / layer.filename(), below.layers.front(), {}); })
        .and_then([&] {
            return writeNewFile(temporary / kManifestName, writeHomeManifest(manifest, m_layout.state()),
                                m_layout.privateFile(), true);
        })
        .and_then([&] { return syncPath(temporary); })
        .and_then([&] { return renamePath(temporary, folder); })
        .and_then([&] { return syncPath(m_layout.homes()); });
}

Result<std::vector<std::filesystem::path>> FileSnapshotStore::filesInUse() {
    std::vector<std::filesystem::path> files;
    const auto addBelow = [&](const core::Disk& disk) {
        for (std::size_t i = 1; i < disk.layers.size(); ++i) {
            files.push_back(disk.layers[i].path);
        }
    };
    const auto homes = idsIn<DomainId>(m_layout.homes());
    const auto instances = idsIn<InstanceId>(m_layout.instances());
    if (!homes || !instances) {
        return fail(!homes ? homes.error() : instances.error());
    }
    for (const DomainId& domain : *homes) {
        const auto disk = m_layers.home(domain);
        if (disk) {
            addBelow(*disk);
        } else if (disk.error().code != ErrorCode::NotFound) {
            return fail(disk.error());
        }
    }
    for (const InstanceId& instance : *instances) {
        const auto disks = m_layers.disksOf(instance);
        if (disks) {
            addBelow(disks->system);
            addBelow(disks->home);
            std::for_each(disks->inspected.begin(), disks->inspected.end(), addBelow);
            if (disks->memory) {
                files.push_back(disks->memory->file);
            }
        } else if (disks.error().code != ErrorCode::NotFound) {
            return fail(disks.error()); // NotFound: from before there were snapshots, so it lies above none
        }
    }
    std::sort(files.begin(), files.end());
    files.erase(std::unique(files.begin(), files.end()), files.end());
    return files;
}

} // namespace bulkhead::imaging

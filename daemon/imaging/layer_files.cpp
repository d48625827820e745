// SPDX-License-Identifier: Apache-2.0
#include "imaging/layer_files.hpp"

#include "base/log.hpp"
#include "imaging/file_tree.hpp"
#include "imaging/instance_disks.hpp"
#include "imaging/template_manifest.hpp"

#include <algorithm>

namespace bulkhead::imaging {
namespace {

/// In an instance's folder: the id of the domain whose home it has claimed. Written before the claim, so that the home
/// finds its way back even when the record of the instance is lost.
constexpr const char* kClaimName = "claim";
constexpr std::size_t kIdLength = 36;
/// Some hundred bytes for each layer.
constexpr std::size_t kMostManifest = std::size_t{1024} * 1024;

} // namespace

std::string newLayerName(std::string_view disk) {
    return std::string(disk) + "-" + randomUuidText() + ".qcow2";
}

Result<HomeManifest> LayerFiles::homeManifest(const DomainId& domain) const {
    const std::filesystem::path file = m_layout.homeFolder(domain) / kManifestName;
    const auto text = readSmallFile(file, kMostManifest);
    if (!text) {
        return fail(text.error());
    }
    auto manifest = readHomeManifest(*text, file.string(), m_layout.state());
    if (manifest && !manifest->disk.layers.empty() &&
        manifest->disk.layers.front().path.parent_path() != m_layout.homeFolder(domain)) {
        return fail(ErrorCode::HostFailure, file.string() + " is damaged: its active layer lies elsewhere");
    }
    return manifest;
}

Result<core::Disk> LayerFiles::home(const DomainId& domain) const {
    const std::filesystem::path folder = m_layout.homeFolder(domain);
    const auto names = listFolder(folder);
    if (!names) {
        return fail(names.error());
    }
    if (names->empty()) {
        return fail(ErrorCode::NotFound, "domain " + domain.text() + " has no home disk");
    }
    const core::Disk plain{{{m_layout.homeImage(domain), core::DiskFormat::Raw}}};
    const auto manifest = homeManifest(domain);
    if (manifest) {
        return manifest->disk.layers.empty() ? plain : manifest->disk;
    }
    // Without it a home can still be used where no other file could be the active layer.
    const bool isPlain =
        std::none_of(names->begin(), names->end(), [](const std::string& name) { return name.ends_with(".qcow2"); });
    if (isPlain && isThere(m_layout.homeImage(domain))) {
        return plain;
    }
    return fail(ErrorCode::HostFailure, "it is unknown which layers the home disk of domain " + domain.text() +
                                            " has: " + manifest.error().message);
}

Status LayerFiles::replaceHome(const DomainId& domain, const HomeManifest& manifest) const {
    return replaceFile(m_layout.homeFolder(domain) / kManifestName, writeHomeManifest(manifest, m_layout.state()),
                       m_layout.privateFile(), true);
}

void LayerFiles::removeUnused(const DomainId& domain) const {
    const std::filesystem::path folder = m_layout.homeFolder(domain);
    const auto manifest = homeManifest(domain);
    const auto names = listFolder(folder);
    if (!manifest || !names) {
        return;
    }
    const std::string active =
        manifest->disk.layers.empty() ? "home.img" : manifest->disk.layers.front().path.filename().string();
    for (const std::string& name : *names) {
        if (name == kManifestName || name == active) {
            continue;
        }
        if (auto removed = removeTree(folder / name); !removed) {
            log::warning("a file that a home does not need any more cannot be removed",
                         {{"DOMAIN", domain.text()}, {"ERROR", removed.error().message}});
        }
    }
}

Status LayerFiles::shareFrozen(const core::Disk& disk) const {
    const Access wanted = m_layout.sharedFile();
    for (std::size_t i = 1; i < disk.layers.size(); ++i) {
        const std::filesystem::path& file = disk.layers[i].path;
        const auto facts = factsOf(file);
        if (!facts) {
            return fail(facts.error().in("a disk's layer"));
        }
        if (file.parent_path().parent_path() != m_layout.snapshots() ||
            (facts->uid == wanted.uid && facts->gid == wanted.gid && facts->mode == wanted.mode)) {
            continue;
        }
        if (auto given = setAccessOfLayer(file, wanted); !given) {
            return given;
        }
    }
    return {};
}

Result<core::SnapshotStore::InstanceDisks> LayerFiles::disksOf(const InstanceId& instance) const {
    const std::filesystem::path file = m_layout.instance(instance) / kInstanceDisksName;
    const auto text = readSmallFile(file, kMostManifest);
    if (!text) {
        return fail(text.error());
    }
    auto disks = readInstanceDisks(*text, file.string(), m_layout.state());
    const auto claimed = claimedBy(instance);
    if (!disks || !claimed) {
        return !disks ? disks : fail(claimed.error());
    }
    if (*claimed) {
        auto kept = home(**claimed);
        if (!kept) {
            return fail(kept.error());
        }
        disks->home = std::move(*kept);
    }
    return disks;
}

Status LayerFiles::noteDisks(const InstanceId& instance, const core::SnapshotStore::InstanceDisks& disks) const {
    return replaceFile(m_layout.instance(instance) / kInstanceDisksName, writeInstanceDisks(disks, m_layout.state()),
                       m_layout.sealedFile(), false);
}

Status LayerFiles::noteClaim(const InstanceId& instance, const DomainId& domain) const {
    return writeNewFile(m_layout.instance(instance) / kClaimName, domain.text(), m_layout.sealedFile(), false);
}

void LayerFiles::dropClaim(const InstanceId& instance) const {
    [[maybe_unused]] const Status removed = removeTree(m_layout.instance(instance) / kClaimName);
}

Result<std::optional<DomainId>> LayerFiles::claimedBy(const InstanceId& instance) const {
    const std::filesystem::path file = m_layout.instance(instance) / kClaimName;
    const auto text = readSmallFile(file, kIdLength);
    if (!text) {
        if (text.error().code == ErrorCode::NotFound) {
            return std::optional<DomainId>{};
        }
        return fail(text.error());
    }
    const auto domain = DomainId::parse(*text);
    if (!domain) {
        return fail(ErrorCode::HostFailure, file.string() + " is damaged: it does not say which home is claimed");
    }
    return std::optional(*domain);
}

Result<std::optional<InstanceId>> LayerFiles::otherClaimantOf(const DomainId& domain,
                                                              const std::optional<InstanceId>& self,
                                                              Unreadable unreadable) const {
    const auto ids = idsIn<InstanceId>(m_layout.instances());
    if (!ids) {
        return fail(ids.error());
    }
    for (const InstanceId& id : *ids) {
        if (id == self) {
            continue;
        }
        const auto claimed = claimedBy(id);
        if (!claimed && unreadable == Unreadable::Fails) {
            return fail(claimed.error());
        }
        if (claimed && *claimed == domain) {
            return std::optional(id);
        }
    }
    return std::optional<InstanceId>{};
}

} // namespace bulkhead::imaging

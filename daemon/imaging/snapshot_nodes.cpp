// SPDX-License-Identifier: Apache-2.0
#include "imaging/snapshot_nodes.hpp"

#include "base/unique_fd.hpp"
#include "imaging/sparse_copy.hpp"
#include "imaging/template_manifest.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bulkhead::imaging {
namespace {

/// Some hundred bytes for each layer.
constexpr std::size_t kMostManifest = std::size_t{1024} * 1024;
constexpr Bytes kMostPart = 64 * 1024 * kGiB;
constexpr mode_t kAnyWrite = 0222;

} // namespace

bool SnapshotNodes::isLayer(std::string_view part) {
    return part != kDeltaPart && part != kDevicesPart;
}

std::filesystem::path SnapshotNodes::manifestFile(const SnapshotId& id) const {
    return m_layout.snapshot(id) / kManifestName;
}

Result<SnapshotManifest> SnapshotNodes::manifest(const SnapshotId& id) const {
    const std::filesystem::path file = manifestFile(id);
    auto manifest = readSmallFile(file, kMostManifest).and_then([&](const std::string& text) {
        return readSnapshotManifest(text, file.string(), m_layout.state());
    });
    if (manifest && manifest->record.id != id) {
        return fail(ErrorCode::HostFailure, file.string() + " is of another snapshot");
    }
    return manifest;
}

Status SnapshotNodes::replaceManifest(const SnapshotManifest& manifest) const {
    return replaceFile(manifestFile(manifest.record.id), writeSnapshotManifest(manifest, m_layout.state()),
                       m_layout.sealedFile(), true);
}

Status SnapshotNodes::change(const SnapshotId& id, const std::function<void(SnapshotManifest&)>& change) {
    const std::lock_guard lock(m_changing);
    auto found = manifest(id);
    if (!found) {
        return fail(found.error());
    }
    change(*found);
    return replaceManifest(*found);
}

Result<ManifestPart> SnapshotNodes::seal(const std::filesystem::path& file) const {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) {
        return failErrno("cannot open " + file.string(), errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::HostFailure, file.string() + " is not a regular file");
    }
    // First out of reach, then read.
    if (auto given = setAccess(fd.get(), accessOf(file), file); !given) {
        return fail(given.error());
    }
    if (::fsync(fd.get()) != 0) {
        return failErrno("cannot bring " + file.string() + " to the disk", errno);
    }
    auto content = contentDigest(fd.get(), file.string(), kMostPart);
    if (!content) {
        return fail(content.error());
    }
    return ManifestPart{content->size, std::move(content->digest)};
}

std::optional<core::DamagedPart> SnapshotNodes::findMissingPart(const std::filesystem::path& file,
                                                                const ManifestPart& part) const {
    const auto facts = factsOf(file);
    if (!facts) {
        return core::DamagedPart{file, facts.error().message};
    }
    if (facts->size != part.size) {
        return core::DamagedPart{file, "it has " + std::to_string(facts->size) + " bytes instead of " +
                                           std::to_string(part.size)};
    }
    const Access wanted = accessOf(file);
    if (facts->mode != wanted.mode || facts->uid != wanted.uid || facts->gid != wanted.gid) {
        return core::DamagedPart{file, "its owner or its mode was changed, so it may have been written to"};
    }
    return std::nullopt;
}

std::optional<core::DamagedPart> SnapshotNodes::findMissingBelow(const core::DiskLayer& layer) const {
    const std::filesystem::path folder = layer.path.parent_path();
    if (folder.parent_path() == m_layout.snapshots()) {
        const auto id = SnapshotId::parse(folder.filename().native());
        const auto below = id ? manifest(*id) : Result<SnapshotManifest>(fail(ErrorCode::NotFound, ""));
        const auto name = layer.path.filename().string();
        if (below && below->parts.contains(name)) {
            return findMissingPart(layer.path, below->parts.at(name));
        }
        // A snapshot that was not finished, but others were begun above it: all that can be said is said below.
    }
    const auto facts = factsOf(layer.path);
    if (!facts) {
        return core::DamagedPart{layer.path, facts.error().message};
    }
    if ((facts->mode & kAnyWrite) != 0) {
        return core::DamagedPart{layer.path, "it can be written to"};
    }
    return std::nullopt;
}

std::optional<core::DamagedPart> SnapshotNodes::findMissing(const core::MemoryImageRef& image, Bytes memory) {
    const auto facts = factsOf(image.file);
    if (!facts) {
        return core::DamagedPart{image.file, facts.error().message};
    }
    if (facts->size != memory) {
        return core::DamagedPart{image.file, "it has " + std::to_string(facts->size) + " bytes instead of " +
                                                 std::to_string(memory)};
    }
    if ((facts->mode & kAnyWrite) != 0) {
        return core::DamagedPart{image.file, "it can be written to"};
    }
    return std::nullopt;
}

std::optional<core::DamagedPart> SnapshotNodes::findMissing(const core::SnapshotRecord& record) const {
    const std::filesystem::path folder = m_layout.snapshot(record.id);
    const auto own = manifest(record.id);
    if (!own) {
        return core::DamagedPart{manifestFile(record.id), own.error().message};
    }
    for (const auto& [name, part] : own->parts) {
        if (auto missing = findMissingPart(folder / name, part)) {
            return missing;
        }
    }
    for (const core::Disk* const disk : {&record.system, &record.home}) {
        for (const core::DiskLayer& layer : disk->layers) {
            const bool isOwn = layer.path.parent_path() == folder;
            if (isOwn && !own->parts.contains(layer.path.filename().string())) {
                return core::DamagedPart{layer.path, "the snapshot's manifest does not know it"};
            }
            if (auto missing = isOwn ? std::nullopt : findMissingBelow(layer)) {
                return missing;
            }
        }
    }
    if (record.memory && record.memory->parent) {
        return findMissing(*record.memory->parent, record.memory->machine.memory);
    }
    return std::nullopt;
}

std::optional<core::DamagedPart> SnapshotNodes::findDamage(const std::filesystem::path& file,
                                                           const ManifestPart& part) {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) {
        return core::DamagedPart{file, failErrno("cannot open " + file.string(), errno).value().message};
    }
    const auto content = contentDigest(fd.get(), file.string(), kMostPart);
    if (!content) {
        return core::DamagedPart{file, content.error().message};
    }
    if (content->size != part.size || content->digest != part.digest) {
        return core::DamagedPart{file, "its digest is " + content->digest + " instead of " + part.digest};
    }
    return std::nullopt;
}

std::optional<core::DamagedPart> SnapshotNodes::findDamage(const core::SnapshotRecord& record) const {
    if (auto missing = findMissing(record)) {
        return missing;
    }
    const auto own = manifest(record.id);
    if (!own) {
        return core::DamagedPart{manifestFile(record.id), own.error().message};
    }
    for (const auto& [name, part] : own->parts) {
        if (auto damage = findDamage(m_layout.snapshot(record.id) / name, part)) {
            return damage;
        }
    }
    return std::nullopt;
}

} // namespace bulkhead::imaging

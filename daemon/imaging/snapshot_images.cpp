// SPDX-License-Identifier: Apache-2.0
#include "imaging/snapshot_images.hpp"

#include "base/log.hpp"
#include "imaging/layer_files.hpp"
#include "memory/memory_image.hpp"
#include "memory/packed_delta.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::imaging {

Result<core::MemoryImageRef> SnapshotImages::compose(const SnapshotManifest& manifest) const {
    const core::SnapshotMemory& stored = *manifest.record.memory;
    memory::ComposeSpec spec;
    spec.ram = stored.machine.memory;
    spec.folder = m_layout.memoryImages();
    spec.access = m_layout.sharedFile();
    Bytes needs = 0;
    std::string parent(memory::zeroParent());
    if (stored.parent) {
        if (const auto missing = SnapshotNodes::findMissing(*stored.parent, spec.ram)) {
            return fail(ErrorCode::HostFailure, missing->file.string() + ": " + missing->why);
        }
        spec.parent = stored.parent->file;
        spec.parentDigest = stored.parent->digest;
        parent = stored.parent->digest;
        const auto facts = factsOf(stored.parent->file);
        needs += facts ? facts->allocated : 0;
    }
    const auto part = manifest.parts.find(std::string(kDeltaPart));
    if (part == manifest.parts.end()) {
        return fail(ErrorCode::HostFailure, "the manifest of snapshot " + manifest.record.id.text() + " has no memory");
    }
    const std::filesystem::path delta = m_layout.snapshot(manifest.record.id) / kDeltaPart;
    if (const auto damage = SnapshotNodes::findDamage(delta, part->second)) {
        return fail(ErrorCode::HostFailure, damage->file.string() + ": " + damage->why);
    }
    needs = std::min(needs + part->second.size, spec.ram);
    if (auto room = checkSpace(m_space, m_layout.state(), needs, "making a memory image"); !room) {
        return fail(room.error());
    }
    spec.deltas.push_back({delta, parent});
    const auto image = memory::composeImage(spec);
    if (!image) {
        return fail(image.error());
    }
    return core::MemoryImageRef{image->file, image->digest};
}

Result<core::MemoryImageRef> SnapshotImages::image(const core::SnapshotRecord& record) {
    if (!record.memory) {
        return fail(ErrorCode::InvalidArgument, "snapshot " + record.id.text() + " has no memory");
    }
    if (auto ready = m_layout.prepare(); !ready) {
        return fail(ready.error());
    }
    const std::lock_guard lock(m_mutex);
    const auto manifest = m_nodes.manifest(record.id);
    if (!manifest) {
        return fail(manifest.error());
    }
    if (!manifest->record.memory) {
        return fail(ErrorCode::HostFailure, "the manifest of snapshot " + record.id.text() + " knows of no memory");
    }
    if (!manifest->memoryImage.empty()) {
        core::MemoryImageRef made{memory::imagePath(m_layout.memoryImages(), manifest->memoryImage),
                                  manifest->memoryImage};
        if (!SnapshotNodes::findMissing(made, record.memory->machine.memory)) {
            return made;
        }
    }
    auto image = compose(*manifest);
    if (!image) {
        return image;
    }
    const auto noted =
        m_nodes.change(record.id, [&](SnapshotManifest& changed) { changed.memoryImage = image->digest; });
    if (!noted) {
        return fail(noted.error());
    }
    return image;
}

Status SnapshotImages::keep(const std::vector<std::filesystem::path>& needed) {
    const std::lock_guard lock(m_mutex);
    const auto names = listFolder(m_layout.memoryImages());
    if (!names) {
        return fail(names.error());
    }
    Status first;
    for (const std::string& name : *names) {
        // The list of an image's chunks stays with the image.
        const auto image = (m_layout.memoryImages() / name).replace_extension(".ram");
        if (std::find(needed.begin(), needed.end(), image) != needed.end()) {
            continue;
        }
        if (auto removed = removeTree(m_layout.memoryImages() / name); !removed && first) {
            first = removed;
        }
    }
    return first;
}

void SnapshotImages::removeUnused(std::vector<std::filesystem::path> wanted) {
    const std::lock_guard lock(m_mutex);
    const auto ids = idsIn<SnapshotId>(m_layout.snapshots());
    const auto names = listFolder(m_layout.memoryImages());
    if (!ids || !names) {
        return;
    }
    for (const SnapshotId& id : *ids) {
        // One that is not finished may come from any.
        const auto node = m_nodes.manifest(id);
        if (!node) {
            return;
        }
        if (node->record.phase == core::SnapshotRecord::Phase::Removed) {
            continue; // nobody begins in its memory any more
        }
        if (!node->memoryImage.empty()) {
            wanted.push_back(memory::imagePath(m_layout.memoryImages(), node->memoryImage));
        }
        if (node->record.memory && node->record.memory->parent) {
            wanted.push_back(node->record.memory->parent->file);
        }
    }
    for (const std::string& name : *names) {
        const std::filesystem::path image = m_layout.memoryImages() / name;
        if (image.extension() != ".ram" || std::find(wanted.begin(), wanted.end(), image) != wanted.end()) {
            continue;
        }
        if (auto removed = memory::removeImage(image); !removed) {
            log::warning("a memory image cannot be removed", {{"ERROR", removed.error().message}});
        }
    }
}

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#include "imaging/snapshot_manifest.hpp"

#include "memory/packed_delta.hpp"

#include <array>
#include <limits>

namespace bulkhead::imaging {
namespace {

constexpr std::int64_t kFormat = 1;

toml::table storedMemory(const core::SnapshotMemory& memory, const std::filesystem::path& state) {
    const core::MachineKey& machine = memory.machine;
    toml::table table{{"size", static_cast<std::int64_t>(machine.memory)},
                      {"vcpus", static_cast<std::int64_t>(machine.vcpus)},
                      {"heads", static_cast<std::int64_t>(machine.heads)},
                      {"audio", nameOf(machine.audio)},
                      {"acceleration", nameOf(machine.acceleration)},
                      {"transport", nameOf(machine.transport)},
                      {"machine", machine.version},
                      {"delta", storedPath(memory.delta, state)},
                      {"devices", storedPath(memory.devices, state)}};
    if (memory.parent) {
        table.insert_or_assign("parent", storedImage(*memory.parent, state));
    }
    return table;
}

core::SnapshotMemory readMemory(ManifestReader& reader) {
    constexpr std::uint64_t kMostUnsigned = std::numeric_limits<unsigned>::max();
    core::SnapshotMemory memory;
    memory.machine.memory = reader.number("size");
    memory.machine.vcpus = static_cast<unsigned>(reader.number("vcpus", kMostUnsigned));
    memory.machine.heads = static_cast<unsigned>(reader.number("heads", kMostUnsigned));
    if (reader.has("audio")) { // not in those of earlier versions, which knew no sound
        memory.machine.audio = reader.word("audio", std::array{core::Audio::Off, core::Audio::Out});
    }
    memory.machine.acceleration =
        reader.word("acceleration", std::array{core::Acceleration::Kvm, core::Acceleration::Emulation});
    memory.machine.transport =
        reader.word("transport", std::array{core::Transport::VirtioSerial, core::Transport::Vsock});
    memory.machine.version = reader.text("machine");
    memory.delta = reader.path("delta");
    memory.devices = reader.path("devices");
    if (reader.has("parent")) {
        memory.parent = reader.image("parent");
        if (!memory::isDigest(memory.parent->digest)) {
            reader.setWrong("parent");
        }
    }
    return memory;
}

} // namespace

std::string writeSnapshotManifest(const SnapshotManifest& manifest, const std::filesystem::path& state) {
    const core::SnapshotRecord& record = manifest.record;
    toml::table table{{"format", kFormat},
                      {"id", record.id.text()},
                      {"domain", record.domain.text()},
                      {"owner", static_cast<std::int64_t>(record.owner)},
                      {"domain_name", record.domainName},
                      {"kind", nameOf(record.kind)},
                      {"removed", record.phase == core::SnapshotRecord::Phase::Removed},
                      {"created", record.createdAt},
                      {"reason", record.reason},
                      {"label", record.label},
                      {"pinned", record.isPinned},
                      {"suspect", record.suspect},
                      {"template", record.templateName},
                      {"template_version", record.templateVersion},
                      {"size", record.size},
                      {"size_on_disk", static_cast<std::int64_t>(record.sizeOnDisk)},
                      {"system", storedDisk(record.system, state)},
                      {"home", storedDisk(record.home, state)},
                      {"parts", storedParts(manifest.parts)}};
    if (record.parent) {
        table.insert_or_assign("parent", record.parent->text());
    }
    if (record.memory) {
        table.insert_or_assign("memory", storedMemory(*record.memory, state));
    }
    if (!manifest.memoryImage.empty()) {
        table.insert_or_assign("memory_image", manifest.memoryImage);
    }
    return textOf(table);
}

Result<SnapshotManifest> readSnapshotManifest(std::string_view text, const std::string& file,
                                              const std::filesystem::path& state) {
    const auto table = parseManifest(text, file, kFormat);
    if (!table) {
        return fail(table.error());
    }
    ManifestReader reader(*table, state);
    SnapshotManifest manifest;
    core::SnapshotRecord& record = manifest.record;
    record.id = reader.id<SnapshotId>("id");
    if (reader.has("parent")) {
        record.parent = reader.id<SnapshotId>("parent");
    }
    record.domain = reader.id<DomainId>("domain");
    // The last number means "no user" to the system.
    record.owner = static_cast<uid_t>(reader.number("owner", std::numeric_limits<uid_t>::max() - 1));
    record.domainName = reader.text("domain_name");
    record.kind = reader.word("kind", std::array{core::SnapshotKind::Disk, core::SnapshotKind::Full});
    record.phase = reader.flag("removed") ? core::SnapshotRecord::Phase::Removed : core::SnapshotRecord::Phase::Present;
    record.createdAt = static_cast<std::int64_t>(reader.number("created"));
    record.reason = reader.text("reason");
    record.label = reader.text("label");
    record.isPinned = reader.flag("pinned");
    record.suspect = reader.text("suspect");
    record.templateName = reader.text("template");
    record.templateVersion = reader.text("template_version");
    record.size = reader.text("size");
    record.sizeOnDisk = reader.number("size_on_disk");
    record.system = reader.disk("system");
    record.home = reader.disk("home");
    if (reader.has("memory")) {
        ManifestReader inner(reader.table("memory"), state);
        record.memory = readMemory(inner);
        if (!inner.wrong().empty()) {
            reader.setWrong("memory");
        }
    }
    if (reader.has("memory_image")) {
        manifest.memoryImage = reader.text("memory_image");
        if (!memory::isDigest(manifest.memoryImage)) {
            reader.setWrong("memory_image");
        }
    }
    manifest.parts = reader.parts("parts");
    if (record.home.layers.empty()) {
        reader.setWrong("home");
    }
    if (record.memory.has_value() != (record.kind == core::SnapshotKind::Full)) {
        reader.setWrong("memory");
    }
    if (auto good = reader.status(file); !good) {
        return fail(good.error());
    }
    return manifest;
}

} // namespace bulkhead::imaging

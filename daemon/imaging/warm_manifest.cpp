// SPDX-License-Identifier: Apache-2.0
#include "imaging/warm_manifest.hpp"

#include "memory/packed_delta.hpp"

#include <limits>

namespace bulkhead::imaging {
namespace {

constexpr std::int64_t kFormat = 2;

} // namespace

std::string writeWarmManifest(const WarmManifest& manifest) {
    const auto& key = manifest.key;
    toml::table table{{"format", kFormat},
                      {"template", key.templateName},
                      {"version", key.templateVersion},
                      {"size", key.size},
                      {"memory", static_cast<std::int64_t>(key.memory)},
                      {"memory_digest", manifest.memoryDigest},
                      {"vcpus", static_cast<std::int64_t>(key.vcpus)},
                      {"heads", static_cast<std::int64_t>(key.heads)},
                      {"audio", nameOf(key.audio)},
                      {"acceleration", nameOf(key.acceleration)},
                      {"transport", nameOf(key.transport)},
                      {"machine", key.machine},
                      {"made_at", manifest.madeAt},
                      {"parts", storedParts(manifest.parts)}};
    if (!key.label.empty()) {
        table.insert_or_assign("label", key.label);
    }
    return textOf(table);
}

Result<WarmManifest> readWarmManifest(std::string_view text, const std::string& file) {
    const auto table = parseManifest(text, file, kFormat);
    if (!table) {
        return fail(table.error());
    }
    constexpr std::uint64_t kMostUnsigned = std::numeric_limits<unsigned>::max();
    ManifestReader reader(*table);
    if (reader.number("format") != kFormat) {
        return fail(ErrorCode::HostFailure, file + " is of an earlier version; make the warm image again");
    }
    WarmManifest manifest;
    manifest.key.templateName = reader.text("template");
    manifest.key.templateVersion = reader.text("version");
    manifest.key.size = reader.text("size");
    manifest.key.memory = reader.number("memory");
    manifest.key.vcpus = static_cast<unsigned>(reader.number("vcpus", kMostUnsigned));
    manifest.key.heads = static_cast<unsigned>(reader.number("heads", kMostUnsigned));
    if (reader.has("audio")) { // not in those of earlier versions, which knew no sound
        manifest.key.audio = reader.word("audio", std::array{core::Audio::Off, core::Audio::Out});
    }
    manifest.key.acceleration =
        reader.word("acceleration", std::array{core::Acceleration::Kvm, core::Acceleration::Emulation});
    manifest.key.transport =
        reader.word("transport", std::array{core::Transport::VirtioSerial, core::Transport::Vsock});
    manifest.key.machine = reader.text("machine");
    if (reader.has("label")) {
        manifest.key.label = reader.text("label");
    }
    manifest.memoryDigest = reader.text("memory_digest");
    if (!memory::isDigest(manifest.memoryDigest)) {
        reader.setWrong("memory_digest");
    }
    manifest.madeAt = static_cast<std::int64_t>(reader.number("made_at"));
    manifest.parts = reader.parts("parts");
    if (auto good = reader.status(file); !good) {
        return fail(good.error());
    }
    return manifest;
}

} // namespace bulkhead::imaging

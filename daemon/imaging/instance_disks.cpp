// SPDX-License-Identifier: Apache-2.0
#include "imaging/instance_disks.hpp"

#include "imaging/manifest_reader.hpp"

namespace bulkhead::imaging {
namespace {

constexpr std::int64_t kFormat = 1;

std::string inspectedKey(std::size_t index) {
    return "inspected-" + std::to_string(index);
}

} // namespace

std::string writeInstanceDisks(const core::SnapshotStore::InstanceDisks& disks, const std::filesystem::path& state) {
    toml::table table{
        {"format", kFormat}, {"system", storedDisk(disks.system, state)}, {"home", storedDisk(disks.home, state)}};
    if (disks.memory) {
        table.insert_or_assign("memory", storedImage(*disks.memory, state));
    }
    for (std::size_t i = 0; i < disks.inspected.size(); ++i) {
        table.insert_or_assign(inspectedKey(i), storedDisk(disks.inspected[i], state));
    }
    return textOf(table);
}

Result<core::SnapshotStore::InstanceDisks> readInstanceDisks(std::string_view text, const std::string& file,
                                                             const std::filesystem::path& state) {
    const auto table = parseManifest(text, file, kFormat);
    if (!table) {
        return fail(table.error());
    }
    ManifestReader reader(*table, state);
    core::SnapshotStore::InstanceDisks disks{reader.disk("system"), reader.disk("home"), std::nullopt, {}};
    if (reader.has("memory")) {
        disks.memory = reader.image("memory");
    }
    for (std::size_t i = 0; i < core::kMostInspectedDisks && reader.has(inspectedKey(i).c_str()); ++i) {
        disks.inspected.push_back(reader.disk(inspectedKey(i).c_str()));
    }
    for (const auto& [key, disk] : {std::pair("system", &disks.system), std::pair("home", &disks.home)}) {
        if (disk->layers.empty()) {
            reader.setWrong(key);
        }
    }
    if (auto good = reader.status(file); !good) {
        return fail(good.error());
    }
    return disks;
}

} // namespace bulkhead::imaging

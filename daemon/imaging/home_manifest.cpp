// SPDX-License-Identifier: Apache-2.0
#include "imaging/home_manifest.hpp"

#include "core/model/domain.hpp"
#include "imaging/manifest_reader.hpp"

#include <limits>

namespace bulkhead::imaging {
namespace {

/// Without layers. A version that knows this alone must not take a home with layers for one: it would write to a layer
/// that others lie above.
constexpr std::int64_t kPlainFormat = 1;
constexpr std::int64_t kLayeredFormat = 2;

} // namespace

std::string writeHomeManifest(const HomeManifest& manifest, const std::filesystem::path& state) {
    toml::table table{{"format", manifest.disk.layers.empty() ? kPlainFormat : kLayeredFormat},
                      {"owner", static_cast<std::int64_t>(manifest.owner)},
                      {"name", manifest.name},
                      {"created", manifest.created}};
    if (!manifest.disk.layers.empty()) {
        table.insert_or_assign("layers", storedDisk(manifest.disk, state));
    }
    return textOf(table);
}

Result<HomeManifest> readHomeManifest(std::string_view text, const std::string& file,
                                      const std::filesystem::path& state) {
    const auto table = parseManifest(text, file, kLayeredFormat);
    if (!table) {
        return fail(table.error());
    }
    ManifestReader reader(*table, state);
    HomeManifest manifest;
    // The last number means "no user" to the system.
    manifest.owner = static_cast<uid_t>(reader.number("owner", std::numeric_limits<uid_t>::max() - 1));
    manifest.name = reader.text("name");
    manifest.created = static_cast<std::int64_t>(reader.number("created"));
    if (!core::checkDomainName(manifest.name)) {
        reader.setWrong("name");
    }
    manifest.disk = reader.disk("layers");
    if (reader.number("format") == kLayeredFormat && manifest.disk.layers.empty()) {
        reader.setWrong("layers");
    }
    if (auto good = reader.status(file); !good) {
        return fail(good.error());
    }
    return manifest;
}

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#include "imaging/template_manifest.hpp"

#include "base/escaping.hpp"

#include <sstream>
#include <toml++/toml.h>

namespace bulkhead::imaging {

namespace {

constexpr std::int64_t kFormat = 1;

} // namespace

std::string writeManifest(const core::InstalledTemplate& installed) {
    toml::table artefacts;
    for (const auto& [name, digest] : installed.artefacts) {
        artefacts.insert_or_assign(name, digest);
    }
    const toml::table table{{"format", kFormat},
                            {"name", installed.name},
                            {"version", installed.version},
                            {"definition_hash", installed.definitionHash},
                            {"built_at", installed.builtAt},
                            {"checked_at", installed.checkedAt},
                            {"size_on_disk", static_cast<std::int64_t>(installed.sizeOnDisk)},
                            {"system_size", static_cast<std::int64_t>(installed.systemSize)},
                            {"home_size", static_cast<std::int64_t>(installed.homeSize)},
                            {"init", nameOf(installed.init)},
                            {"heads", static_cast<std::int64_t>(installed.heads)},
                            {"artefacts", artefacts}};
    std::ostringstream text;
    text << toml::toml_formatter(table) << '\n';
    return text.str();
}

Result<core::InstalledTemplate> readManifest(std::string_view text, const std::string& file) {
    toml::table table;
    try {
        table = toml::parse(text, file);
    } catch (const toml::parse_error& error) {
        return fail(ErrorCode::HostFailure, file + " is damaged: " + escapeUntrusted(error.description(), 200));
    }
    if (table["format"].value<std::int64_t>() != kFormat) {
        return fail(ErrorCode::HostFailure, file + " has a format that this version does not know");
    }
    core::InstalledTemplate installed;
    std::string missing;
    const auto takeText = [&](const char* key, std::string& target) {
        if (const auto value = table[key].value_exact<std::string>()) {
            target = *value;
        } else {
            missing = key;
        }
    };
    const auto takeNumber = [&](const char* key, auto& target) {
        const auto value = table[key].value_exact<std::int64_t>();
        if (value && *value >= 0) {
            target = static_cast<std::remove_reference_t<decltype(target)>>(*value);
        } else {
            missing = key;
        }
    };
    takeText("name", installed.name);
    takeText("version", installed.version);
    takeText("definition_hash", installed.definitionHash);
    takeNumber("built_at", installed.builtAt);
    takeNumber("size_on_disk", installed.sizeOnDisk);
    takeNumber("system_size", installed.systemSize);
    takeNumber("home_size", installed.homeSize);
    // Not in manifests of before templates could be updated.
    installed.checkedAt = installed.builtAt;
    if (table.contains("checked_at")) {
        takeNumber("checked_at", installed.checkedAt);
    }
    // Not in manifests of before there were desktops.
    if (table.contains("init")) {
        std::string init;
        takeText("init", init);
        if (const auto known = core::templateInitFrom(init)) {
            installed.init = *known;
        } else {
            missing = "init";
        }
    }
    if (table.contains("heads")) {
        takeNumber("heads", installed.heads);
        if (installed.heads > core::kMostHeads) {
            missing = "heads";
        }
    }
    if (const auto* artefacts = table["artefacts"].as_table()) {
        for (const auto& [name, digest] : *artefacts) {
            if (const auto value = digest.value_exact<std::string>()) {
                installed.artefacts.emplace(std::string(name.str()), *value);
            } else {
                missing = "artefacts";
            }
        }
    } else {
        missing = "artefacts";
    }
    if (!missing.empty()) {
        return fail(ErrorCode::HostFailure, file + " is damaged: \"" + missing + "\" is missing or wrong");
    }
    return installed;
}

} // namespace bulkhead::imaging

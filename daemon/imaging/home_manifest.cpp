// SPDX-License-Identifier: Apache-2.0
#include "imaging/home_manifest.hpp"

#include "base/escaping.hpp"
#include "core/model/domain.hpp"

#include <limits>
#include <sstream>
#include <toml++/toml.h>

namespace bulkhead::imaging {

namespace {

constexpr std::int64_t kFormat = 1;

} // namespace

std::string writeHomeManifest(const HomeManifest& manifest) {
    const toml::table table{{"format", kFormat},
                            {"owner", static_cast<std::int64_t>(manifest.owner)},
                            {"name", manifest.name},
                            {"created", manifest.created}};
    std::ostringstream text;
    text << toml::toml_formatter(table) << '\n';
    return text.str();
}

Result<HomeManifest> readHomeManifest(std::string_view text, const std::string& file) {
    toml::table table;
    try {
        table = toml::parse(text, file);
    } catch (const toml::parse_error& error) {
        return fail(ErrorCode::HostFailure, file + " is damaged: " + escapeUntrusted(error.description(), 200));
    }
    if (table["format"].value_exact<std::int64_t>() != kFormat) {
        return fail(ErrorCode::HostFailure, file + " has a format that this version does not know");
    }
    const auto owner = table["owner"].value_exact<std::int64_t>();
    const auto name = table["name"].value_exact<std::string>();
    const auto created = table["created"].value_exact<std::int64_t>();
    // The last number means "no user" to the system.
    if (!owner || *owner < 0 || *owner >= std::int64_t{std::numeric_limits<uid_t>::max()} || !name ||
        !core::checkDomainName(*name) || !created) {
        return fail(ErrorCode::HostFailure,
                    file + " is damaged: \"owner\", \"name\" or \"created\" is missing or wrong");
    }
    return HomeManifest{static_cast<uid_t>(*owner), *name, *created};
}

} // namespace bulkhead::imaging

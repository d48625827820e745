// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/template.hpp"

#include <string>
#include <string_view>

namespace bulkhead::imaging {

constexpr std::string_view kManifestName = "manifest.toml";

/// The text of manifest.toml: all of InstalledTemplate but its folder.
std::string writeManifest(const core::InstalledTemplate& installed);
/// Reads what writeManifest() wrote; `file` is for messages. A manifest of a later format is an error.
Result<core::InstalledTemplate> readManifest(std::string_view text, const std::string& file);

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace bulkhead::imaging {

/// Whose a kept home is, and what it is made of. It lies beside the home, so that a home finds its domain again when
/// the database is lost.
struct HomeManifest {
    uid_t owner = 0;
    std::string name;         ///< of the domain
    std::int64_t created = 0; ///< seconds since the epoch; for people
    /// The active layer and those below. Empty: home.img, raw, nothing below (as homes were before there were
    /// snapshots, and still are until the first one).
    core::Disk disk;

    bool operator==(const HomeManifest&) const = default;
};

/// `state`: the folder of the store.
std::string writeHomeManifest(const HomeManifest& manifest, const std::filesystem::path& state);
/// Reads what writeHomeManifest() wrote; `file` is for messages. A manifest of a later format is an error.
Result<HomeManifest> readHomeManifest(std::string_view text, const std::string& file,
                                      const std::filesystem::path& state);

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace bulkhead::imaging {

/// Whose a kept home is. It lies beside the home, so that a home finds its domain again when the database is lost.
struct HomeManifest {
    uid_t owner = 0;
    std::string name;         ///< of the domain
    std::int64_t created = 0; ///< seconds since the epoch; for people

    bool operator==(const HomeManifest&) const = default;
};

std::string writeHomeManifest(const HomeManifest& manifest);
/// Reads what writeHomeManifest() wrote; `file` is for messages. A manifest of a later format is an error.
Result<HomeManifest> readHomeManifest(std::string_view text, const std::string& file);

} // namespace bulkhead::imaging

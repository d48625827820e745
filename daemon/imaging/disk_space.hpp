// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "core/ports/image_store.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace bulkhead::imaging {

using Space = core::InstanceStore::Space;
/// Gives the space of the file system that holds a path; a test may say something else than the truth.
using SpaceProbe = std::function<Result<Space>(const std::filesystem::path&)>;

/// As df(1) counts: `total` without what the file system reserves. Of the nearest folder that exists.
Result<Space> fileSystemSpace(const std::filesystem::path& path);

/// How full the file system may become by our own doing, in percent.
constexpr unsigned kMostPercentUsed = 95;
/// Percent used if `more` bytes were written.
unsigned percentUsed(const Space& space, Bytes more = 0);

/// NoSpace with the numbers when writing `needed` bytes would go beyond 95 %. `what` is "installing template x".
Status checkSpace(const SpaceProbe& probe, const std::filesystem::path& path, Bytes needed, const std::string& what);

} // namespace bulkhead::imaging

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/warm_image.hpp"
#include "imaging/manifest_reader.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace bulkhead::imaging {

/// What lies beside a warm image.
struct WarmManifest {
    core::WarmImageKey key;
    std::string memoryDigest; ///< see core::MemoryImageRef
    std::int64_t madeAt = 0;  ///< seconds since the epoch
    std::map<std::string, ManifestPart> parts;
};

std::string writeWarmManifest(const WarmManifest& manifest);
/// `file` is for messages. HostFailure says what is wrong; one of the first format, which had no digest of the memory,
/// is of no use any more either.
Result<WarmManifest> readWarmManifest(std::string_view text, const std::string& file);

} // namespace bulkhead::imaging

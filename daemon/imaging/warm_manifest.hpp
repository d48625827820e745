// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "core/model/warm_image.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace bulkhead::imaging {

/// What lies beside a warm image.
struct WarmManifest {
    struct Part {
        Bytes size = 0;
        std::string digest; ///< contentDigest()
        bool operator==(const Part&) const = default;
    };
    core::WarmImageKey key;
    std::int64_t madeAt = 0; ///< seconds since the epoch
    std::map<std::string, Part> parts;
};

std::string writeWarmManifest(const WarmManifest& manifest);
/// `file` is for messages. HostFailure says what is wrong.
Result<WarmManifest> readWarmManifest(std::string_view text, const std::string& file);

} // namespace bulkhead::imaging

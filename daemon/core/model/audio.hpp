// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace bulkhead::core {

/// What a domain has of sound: part of its devices, so a change takes effect at its next start.
enum class Audio {
    Off, ///< no sound device at all
    Out, ///< it can be heard; it hears nothing (no microphone)
};
std::string_view nameOf(Audio audio);
/// By its name: "off", "out".
std::optional<Audio> audioFrom(std::string_view name);

} // namespace bulkhead::core

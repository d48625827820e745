// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/validator.hpp"
#include "dbus/interfaces/session_stream.hpp"

namespace bulkhead::channel {

struct SessionIsUp {
    std::uint32_t heads; ///< 1 to kMostHeads
};
struct SessionIsDown {};
/// A window as clients are told of it: kind WindowChanged, texts cleaned.
struct WindowIsThere {
    session_stream::Event event;
};
struct WindowIsGone {
    std::uint32_t window;
};
struct WindowsAreListed {};
/// An app as clients are told of it: kind App, texts cleaned.
struct AppIsThere {
    session_stream::Event event;
};
struct AppsAreListed {};
struct AppIsLaunched {
    std::string app;
    std::int32_t errorNumber;
};
using SessionNews = std::variant<SessionIsUp, SessionIsDown, WindowIsThere, WindowIsGone, WindowsAreListed, AppIsThere,
                                 AppsAreListed, AppIsLaunched>;

/// Of a message on the session stream. Numbers out of range and texts that are too long are violations; within bounds,
/// a text may say anything, and is cleaned.
[[nodiscard]] Checked<SessionNews> checkSessionEvent(const GuestMessage& message);

/// What a window's width or height may be, from either side.
[[nodiscard]] bool isSide(std::uint32_t pixels);

} // namespace bulkhead::channel

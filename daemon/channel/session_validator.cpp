// SPDX-License-Identifier: Apache-2.0
#include "channel/session_validator.hpp"

#include "base/escaping.hpp"
#include "protocol/session.pb.h"
#include "protocol/session_limits.hpp"

#include <algorithm>

namespace bulkhead::channel {

using session_stream::EventKind;
using session_stream::WindowKind;

namespace {

using protocol::isAppId;

constexpr std::int32_t kMaxErrno = 4095;

tl::unexpected<protocol::Violation> bad() {
    return tl::unexpected(protocol::Violation::BadMessage);
}

/// Cleaned and cut, with the zero byte that the record's array has room for.
template <std::size_t N> void putText(std::array<char, N>& out, const std::string& text) {
    const auto clean = cleanUntrusted(text, N - 1);
    std::ranges::copy(clean, out.begin());
}

Checked<SessionNews> windowOf(const session::WindowChanged& window) {
    if (window.window() == 0 || window.head() >= session_stream::kMostHeads || !isSide(window.width()) ||
        !isSide(window.height()) || !session::WindowChanged::Kind_IsValid(window.kind()) ||
        window.min_width() > session_stream::kLargestSide || window.min_height() > session_stream::kLargestSide ||
        window.title().size() > protocol::kMostTitle || window.app_class().size() > protocol::kMostClass) {
        return bad();
    }
    WindowIsThere there;
    auto& event = there.event;
    event.kind = EventKind::WindowChanged;
    event.window = window.window();
    event.head = window.head();
    event.width = window.width();
    event.height = window.height();
    event.minWidth = window.min_width();
    event.minHeight = window.min_height();
    event.transientFor = window.transient_for();
    event.windowKind = static_cast<WindowKind>(window.kind());
    event.flags = (window.shares_head() ? session_stream::kSharesHead : 0) |
                  (window.wants_attention() ? session_stream::kWantsAttention : 0) |
                  (window.active() ? session_stream::kActive : 0);
    putText(event.text, window.title());
    putText(event.name, window.app_class());
    return there;
}

Checked<SessionNews> appOf(const session::App& app) {
    if (!isAppId(app.id()) || app.name().empty() || app.name().size() > protocol::kMostAppName ||
        app.categories().size() > protocol::kMostCategories || app.comment().size() > protocol::kMostComment) {
        return bad();
    }
    AppIsThere there;
    there.event.kind = EventKind::App;
    putText(there.event.text, app.name());
    putText(there.event.name, app.id());
    putText(there.event.extra, app.categories());
    return there;
}

Checked<SessionNews> newsOf(const std::string& bytes) {
    session::Event event;
    if (!event.ParseFromString(bytes)) {
        return bad();
    }
    switch (event.kind_case()) {
    case session::Event::kUp:
        if (event.up().heads() == 0 || event.up().heads() > session_stream::kMostHeads) {
            return bad();
        }
        return SessionIsUp{event.up().heads()};
    case session::Event::kDown:
        return SessionIsDown{};
    case session::Event::kWindowChanged:
        return windowOf(event.window_changed());
    case session::Event::kWindowGone:
        if (event.window_gone().window() == 0) {
            return bad();
        }
        return WindowIsGone{event.window_gone().window()};
    case session::Event::kWindowsListed:
        return WindowsAreListed{};
    case session::Event::kApp:
        return appOf(event.app());
    case session::Event::kAppsListed:
        return AppsAreListed{};
    case session::Event::kAppLaunched:
        if (!isAppId(event.app_launched().app()) || event.app_launched().error_number() < 0 ||
            event.app_launched().error_number() > kMaxErrno) {
            return bad();
        }
        return AppIsLaunched{event.app_launched().app(), event.app_launched().error_number()};
    case session::Event::KIND_NOT_SET:
        break;
    }
    return bad();
}

// The clients' contract, which cannot include the guest's, says the same.
static_assert(session_stream::kMostHeads == protocol::kMostHeads);
static_assert(session_stream::kSmallestSide == protocol::kSmallestSide);
static_assert(session_stream::kLargestSide == protocol::kLargestSide);

} // namespace

bool isSide(std::uint32_t pixels) {
    return pixels >= session_stream::kSmallestSide && pixels <= session_stream::kLargestSide;
}

Checked<SessionNews> checkSessionEvent(const GuestMessage& message) {
    return message.validate(newsOf);
}

} // namespace bulkhead::channel

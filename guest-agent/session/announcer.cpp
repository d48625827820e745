// SPDX-License-Identifier: Apache-2.0
#include "session/announcer.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::session {
namespace {

/// The host launches one at a time; what is beyond this got no answer because nobody took any.
constexpr std::size_t kMostLaunches = 64;
/// Windows told of at once, as many as the host keeps; others are told of when some of these went.
constexpr std::size_t kMostWindows = 64;

WindowChanged::Kind kindOf(Kind kind) {
    switch (kind) {
    case Kind::Normal:
        return WindowChanged::NORMAL;
    case Kind::Dialog:
        return WindowChanged::DIALOG;
    case Kind::Utility:
        return WindowChanged::UTILITY;
    }
    return WindowChanged::NORMAL;
}

std::uint32_t positive(int value) {
    return static_cast<std::uint32_t>(std::max(value, 0));
}

} // namespace

WindowChanged describeWindow(const Windows& windows, const Window& window, XWindow active) {
    WindowChanged changed;
    changed.set_window(window.number);
    changed.set_head(window.head.value_or(0));
    // Within the limits also where a device shows something else than it was asked for.
    const Size size = clampToHead(windows.headSizes().at(window.head.value_or(0)).value_or(Size{}));
    changed.set_width(positive(size.width));
    changed.set_height(positive(size.height));
    changed.set_kind(kindOf(window.facts.kind));
    if (const Window* const parent = windows.find(window.facts.transientFor); parent != nullptr && parent != &window) {
        changed.set_transient_for(parent->number);
    }
    changed.set_title(window.facts.title);
    changed.set_app_class(window.facts.appClass);
    changed.set_shares_head(window.sharesHead);
    const bool isActive = window.xid == active;
    const bool isUrgent = std::any_of(windows.all().begin(), windows.all().end(), [&](const Window& other) {
        return (other.facts.urgent || other.demandsAttention) &&
               (other.xid == window.xid || other.anchor == window.xid);
    });
    changed.set_wants_attention(isUrgent && !isActive);
    changed.set_min_width(positive(window.facts.least.width));
    changed.set_min_height(positive(window.facts.least.height));
    changed.set_active(isActive);
    return changed;
}

void Announcer::startOver(unsigned heads) {
    stop();
    m_isListening = true;
    Event event;
    event.mutable_up()->set_heads(heads);
    m_first.push_back(std::move(event));
}

void Announcer::stop() {
    m_isListening = false;
    m_told.clear();
    m_repeat.clear();
    m_first.clear();
    m_apps.clear();
    m_launches.clear();
    m_endOfList = false;
    m_endOfApps = false;
}

void Announcer::windowsAre(const Windows& windows, XWindow active) {
    m_now.clear();
    for (const Window& window : windows.all()) {
        if (window.ownsHead && window.head && m_now.size() < kMostWindows) {
            m_now.emplace(window.number, describeWindow(windows, window, active).SerializeAsString());
        }
    }
}

void Announcer::listWindows() {
    for (const auto& [number, told] : m_told) {
        m_repeat.insert(number);
    }
    m_endOfList = true;
}

void Announcer::listApps(const AppPlaces& places) {
    if (!m_apps.empty()) {
        return; // the list that is under way answers this one too
    }
    auto apps = session::listApps(places);
    m_appCount = static_cast<std::uint32_t>(apps.size());
    m_apps.assign(std::make_move_iterator(apps.begin()), std::make_move_iterator(apps.end()));
    m_endOfApps = true;
}

void Announcer::launched(const std::string& app, int error) {
    if (m_launches.size() >= kMostLaunches) {
        return;
    }
    Event event;
    event.mutable_app_launched()->set_app(app);
    event.mutable_app_launched()->set_error_number(error);
    m_launches.push_back(std::move(event));
}

bool Announcer::sendWindows() {
    for (auto told = m_told.begin(); told != m_told.end();) {
        if (m_now.contains(told->first)) {
            ++told;
            continue;
        }
        if (!m_sink.hasRoom()) {
            return false;
        }
        Event event;
        event.mutable_window_gone()->set_window(told->first);
        m_sink.send(event);
        told = m_told.erase(told);
    }
    for (const auto& [number, now] : m_now) {
        const auto told = m_told.find(number);
        if (told != m_told.end() && told->second == now && !m_repeat.contains(number)) {
            continue;
        }
        if (!m_sink.hasRoom()) {
            return false;
        }
        Event event;
        event.mutable_window_changed()->ParseFromString(now);
        m_sink.send(event);
        m_told[number] = now;
        m_repeat.erase(number);
    }
    return true;
}

void Announcer::pump() {
    if (!m_isListening) {
        return;
    }
    const auto sendAll = [this](std::deque<Event>& events) {
        for (; !events.empty() && m_sink.hasRoom(); events.pop_front()) {
            m_sink.send(events.front());
        }
        return events.empty();
    };
    if (!sendAll(m_first) || !sendWindows()) {
        return;
    }
    if (m_endOfList && m_sink.hasRoom()) {
        Event event;
        event.mutable_windows_listed();
        m_sink.send(event);
        m_endOfList = false;
    }
    if (!sendAll(m_launches)) {
        return;
    }
    for (; !m_apps.empty() && m_sink.hasRoom(); m_apps.pop_front()) {
        Event event;
        App& app = *event.mutable_app();
        app.set_id(m_apps.front().id);
        app.set_name(m_apps.front().entry.name);
        app.set_categories(m_apps.front().entry.categories);
        app.set_comment(m_apps.front().entry.comment);
        m_sink.send(event);
    }
    if (m_endOfApps && m_apps.empty() && m_sink.hasRoom()) {
        Event event;
        event.mutable_apps_listed()->set_count(m_appCount);
        m_sink.send(event);
        m_endOfApps = false;
    }
}

} // namespace bulkhead::session

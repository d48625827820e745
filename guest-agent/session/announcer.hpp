// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "protocol/session.pb.h"
#include "session/app_list.hpp"
#include "session/windows.hpp"

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bulkhead::session {

/// Keeps the host's idea of the windows true. It remembers what the host was told and tells what differs, not every
/// step on the way; so a host that is slow to listen makes nothing grow here.
class Announcer {
public:
    /// Where events go, and whether it takes another one.
    struct Sink {
        std::function<bool()> hasRoom;
        std::function<void(const Event&)> send;
    };
    explicit Announcer(Sink sink)
        : m_sink(std::move(sink)) {}

    /// Somebody new listens: everything is to be told, beginning with the session.
    void startOver(unsigned heads);
    /// Nobody listens any more.
    void stop();

    /// What is true now. `active` is the window (with a head of its own) that has the keyboard, or 0.
    void windowsAre(const Windows& windows, XWindow active);
    /// All windows once more, and then the mark that these were all.
    void listWindows();
    void listApps(const AppPlaces& places);
    void launched(const std::string& app, int error);

    /// Sends as much as the sink takes.
    void pump();

private:
    bool sendWindows();

    Sink m_sink;
    bool m_isListening = false;
    std::map<Number, std::string> m_now;  ///< WindowChanged, as bytes
    std::map<Number, std::string> m_told; ///< what the host knows
    std::set<Number> m_repeat;            ///< of these, what it wants to hear again
    std::deque<Event> m_first;            ///< before the windows
    bool m_endOfList = false;
    std::deque<AppEntry> m_apps;
    std::uint32_t m_appCount = 0;
    bool m_endOfApps = false;
    std::deque<Event> m_launches;
};

/// What the host is told of a window: one with a head of its own.
[[nodiscard]] WindowChanged describeWindow(const Windows& windows, const Window& window, XWindow active);

} // namespace bulkhead::session

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/guest_window_info.hpp"

#include <map>
#include <set>
#include <vector>

namespace bulkhead::viewer {

/// Names a host window for as long as the viewer runs.
using HostWindowId = std::uint32_t;

/// A window on the host's desktop: what one head of the guest shows. Usually one guest window; several once the guest
/// has run out of heads, and then one of them is in front.
struct HostWindow {
    HostWindowId id = 0;
    std::uint32_t head = 0;
    std::vector<std::uint32_t> windows; ///< guest windows, in the order in which they came; never empty
    std::uint32_t current = 0;          ///< the one in front
};

/// What became of a host window.
struct HostWindowChange {
    enum class Kind { Opened, Updated, Closed };
    Kind kind = Kind::Updated;
    HostWindowId host = 0;
    bool operator==(const HostWindowChange&) const = default;
};

/// The rules by which guest windows become host windows. No I/O, no clock; one thread.
///
/// One host window for each head that has guest windows. A guest window that moves to a free head keeps its host
/// window. Never more than kMostWindows guest windows, whatever is told.
class WindowModel {
public:
    using Changes = std::vector<HostWindowChange>;

    Changes changed(const GuestWindow& window);
    Changes gone(std::uint32_t window);
    /// The session is gone, and with it every window.
    Changes clear();

    /// Around the list that a new connection begins with: what was not told of again by endRefresh() is gone.
    void beginRefresh();
    Changes endRefresh();

    /// The user chose one of several windows on a head.
    Changes select(HostWindowId host, std::uint32_t window);

    [[nodiscard]] const HostWindow* host(HostWindowId id) const;
    [[nodiscard]] const GuestWindow* window(std::uint32_t id) const;
    /// The host window that shows a guest window.
    [[nodiscard]] const HostWindow* hostOf(std::uint32_t window) const;
    [[nodiscard]] const std::map<HostWindowId, HostWindow>& hosts() const { return m_hosts; }
    [[nodiscard]] bool empty() const { return m_hosts.empty(); }

private:
    HostWindow* hostOfHead(std::uint32_t head);
    HostWindow* ownerOf(std::uint32_t window);
    void place(const GuestWindow& window, Changes& changes);
    void leave(std::uint32_t window, Changes& changes);

    std::map<std::uint32_t, GuestWindow> m_windows;
    std::map<HostWindowId, HostWindow> m_hosts;
    std::set<std::uint32_t> m_unconfirmed;
    HostWindowId m_last = 0;
};

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#include "viewer/window_model.hpp"

#include <algorithm>

namespace bulkhead::viewer {
namespace {

using Kind = HostWindowChange::Kind;

bool contains(const std::vector<std::uint32_t>& windows, std::uint32_t window) {
    return std::find(windows.begin(), windows.end(), window) != windows.end();
}

} // namespace

HostWindow* WindowModel::hostOfHead(std::uint32_t head) {
    const auto found =
        std::find_if(m_hosts.begin(), m_hosts.end(), [head](const auto& entry) { return entry.second.head == head; });
    return found == m_hosts.end() ? nullptr : &found->second;
}

HostWindow* WindowModel::ownerOf(std::uint32_t window) {
    const auto found = std::find_if(m_hosts.begin(), m_hosts.end(),
                                    [window](const auto& entry) { return contains(entry.second.windows, window); });
    return found == m_hosts.end() ? nullptr : &found->second;
}

void WindowModel::place(const GuestWindow& window, Changes& changes) {
    if (HostWindow* host = hostOfHead(window.head)) {
        host->windows.push_back(window.id);
        changes.push_back({Kind::Updated, host->id});
        return;
    }
    const HostWindowId id = ++m_last;
    m_hosts.emplace(id, HostWindow{id, window.head, {window.id}, window.id});
    changes.push_back({Kind::Opened, id});
}

void WindowModel::leave(std::uint32_t window, Changes& changes) {
    HostWindow* host = ownerOf(window);
    if (host == nullptr) {
        return;
    }
    std::erase(host->windows, window);
    if (host->windows.empty()) {
        changes.push_back({Kind::Closed, host->id});
        m_hosts.erase(host->id);
        return;
    }
    if (host->current == window) {
        host->current = host->windows.back();
    }
    changes.push_back({Kind::Updated, host->id});
}

WindowModel::Changes WindowModel::changed(const GuestWindow& window) {
    Changes changes;
    m_unconfirmed.erase(window.id);
    const auto known = m_windows.find(window.id);
    if (known == m_windows.end()) {
        if (m_windows.size() >= session_stream::kMostWindows) {
            return changes;
        }
        m_windows.emplace(window.id, window);
        place(window, changes);
    } else {
        const std::uint32_t before = known->second.head;
        if (known->second == window) {
            return changes;
        }
        known->second = window;
        HostWindow* host = ownerOf(window.id);
        if (before == window.head || host == nullptr) {
            changes.push_back({Kind::Updated, host == nullptr ? 0 : host->id});
        } else if (host->windows.size() == 1 && hostOfHead(window.head) == nullptr) {
            host->head = window.head;
            changes.push_back({Kind::Updated, host->id});
        } else {
            leave(window.id, changes);
            place(window, changes);
        }
    }
    if (HostWindow* host = ownerOf(window.id); host != nullptr && window.active) {
        host->current = window.id;
    }
    return changes;
}

WindowModel::Changes WindowModel::gone(std::uint32_t window) {
    Changes changes;
    m_unconfirmed.erase(window);
    if (m_windows.erase(window) > 0) {
        leave(window, changes);
    }
    return changes;
}

WindowModel::Changes WindowModel::clear() {
    Changes changes;
    for (const auto& [id, host] : m_hosts) {
        changes.push_back({Kind::Closed, id});
    }
    m_hosts.clear();
    m_windows.clear();
    m_unconfirmed.clear();
    return changes;
}

void WindowModel::beginRefresh() {
    for (const auto& [id, window] : m_windows) {
        m_unconfirmed.insert(id);
    }
}

WindowModel::Changes WindowModel::endRefresh() {
    Changes changes;
    for (const std::uint32_t window : std::set<std::uint32_t>(m_unconfirmed)) {
        const Changes more = gone(window);
        changes.insert(changes.end(), more.begin(), more.end());
    }
    return changes;
}

WindowModel::Changes WindowModel::select(HostWindowId host, std::uint32_t window) {
    const auto found = m_hosts.find(host);
    if (found == m_hosts.end() || !contains(found->second.windows, window) || found->second.current == window) {
        return {};
    }
    found->second.current = window;
    return {{Kind::Updated, host}};
}

const HostWindow* WindowModel::host(HostWindowId id) const {
    const auto found = m_hosts.find(id);
    return found == m_hosts.end() ? nullptr : &found->second;
}

const GuestWindow* WindowModel::window(std::uint32_t id) const {
    const auto found = m_windows.find(id);
    return found == m_windows.end() ? nullptr : &found->second;
}

const HostWindow* WindowModel::hostOf(std::uint32_t window) const {
    const auto found = std::find_if(m_hosts.begin(), m_hosts.end(),
                                    [window](const auto& entry) { return contains(entry.second.windows, window); });
    return found == m_hosts.end() ? nullptr : &found->second;
}

} // namespace bulkhead::viewer

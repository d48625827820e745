// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/poller.hpp"
#include "channel/records.hpp"

#include <cstddef>

namespace bulkhead::channel {

/// Decides whether a domain's windows carry it, and when the last one has closed for good. They do when the first one
/// came before any program was run through us: from then on a program's end is not the domain's. Pure: it is told the
/// time. It lives here, and not in the daemon, so that a restart of that loses nothing.
class WindowWatch {
public:
    /// Between a splash window and the one after it, on a slow emulated host.
    static constexpr std::chrono::seconds kGrace{10};

    /// A program was started through us.
    void programStarted() { m_isCarriedByProgram = m_isCarriedByProgram || m_state == WindowsState::None; }
    /// `isUp`: the guest's session is there. While it is not, nothing is known of its windows and no time passes.
    WindowsState turn(bool isUp, std::size_t windows, TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const { return m_deadline; }
    [[nodiscard]] WindowsState state() const { return m_state; }

private:
    WindowsState m_state = WindowsState::None;
    bool m_isCarriedByProgram = false;
    TimePoint m_deadline = TimePoint::max(); ///< since when none is open, plus the grace
};

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace bulkhead::viewer {

/// The PC (set 1) scancode that SPICE wants for a Linux key code (KEY_A…): 0x100 is added for those with an E0 prefix.
/// nullopt for keys that a PC keyboard does not have, and for those that are the host's alone (power, sleep).
std::optional<std::uint16_t> pcScancode(std::uint32_t evdevCode);

/// Caps, Num or Scroll Lock.
bool isLockKey(std::uint32_t evdevCode);

/// Which keys the guest believes to be down, so that none stays down for ever: a release goes to the guest only for a
/// key that it was told of, and letting go of the keyboard releases all.
class KeyTracker {
public:
    /// Returns the scancode to press now; nullopt when nothing is to be sent (unknown key, or down already).
    std::optional<std::uint16_t> press(std::uint32_t evdevCode);
    /// Returns the scancode to release now.
    std::optional<std::uint16_t> release(std::uint32_t evdevCode);
    /// Returns what to release; afterwards no key is down.
    std::vector<std::uint16_t> releaseAll();
    [[nodiscard]] bool empty() const { return m_down.empty(); }
    /// Key codes that are down.
    [[nodiscard]] const std::set<std::uint32_t>& held() const { return m_down; }

private:
    std::set<std::uint32_t> m_down;
};

} // namespace bulkhead::viewer

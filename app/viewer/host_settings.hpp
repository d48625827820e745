// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QString>

#include <bitset>
#include <optional>

class QScreen;

namespace bulkhead::viewer {

/// The user's keyboard as XKB names it.
struct KeyboardNames {
    QString model;
    QString layout;
    QString variant;
    QString options;
    bool operator==(const KeyboardNames&) const = default;
};

/// What the host's desktop uses now: asked of the X server, or taken from XKB_DEFAULT_* where there is none. nullopt:
/// not known.
std::optional<KeyboardNames> hostKeyboard();

/// Reads the value of X's _XKB_RULES_NAMES: rules, model, layout, variant, options, each ended by a zero byte.
std::optional<KeyboardNames> keyboardNamesFrom(const QByteArray& property);

/// The keys that are down on the host's keyboard now, by Linux key code; nullopt where that cannot be asked (Wayland
/// needs it less: a compositor that takes the keyboard says so).
std::optional<std::bitset<256>> hostKeysDown();

/// Dots per inch for a guest that paints pixels of this screen.
int guestDpi(const QScreen& screen);

} // namespace bulkhead::viewer

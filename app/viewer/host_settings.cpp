// SPDX-License-Identifier: Apache-2.0
#include "viewer/host_settings.hpp"

#include <QGuiApplication>
#include <QList>
#include <QScreen>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <xcb/xcb.h>

namespace bulkhead::viewer {
namespace {

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
template <class T> using Reply = std::unique_ptr<T, Free>;

QByteArray rulesProperty(xcb_connection_t* connection) {
    static constexpr char kName[] = "_XKB_RULES_NAMES";
    const Reply<xcb_intern_atom_reply_t> atom(xcb_intern_atom_reply(
        connection, xcb_intern_atom(connection, 1, sizeof kName - 1, static_cast<const char*>(kName)), nullptr));
    const xcb_screen_t* screen = xcb_setup_roots_iterator(xcb_get_setup(connection)).data;
    if (!atom || atom->atom == XCB_ATOM_NONE || screen == nullptr) {
        return {};
    }
    constexpr std::uint32_t kMostWords = 256;
    const Reply<xcb_get_property_reply_t> value(xcb_get_property_reply(
        connection, xcb_get_property(connection, 0, screen->root, atom->atom, XCB_ATOM_STRING, 0, kMostWords),
        nullptr));
    if (!value) {
        return {};
    }
    return {static_cast<const char*>(xcb_get_property_value(value.get())), xcb_get_property_value_length(value.get())};
}

std::optional<KeyboardNames> fromEnvironment() {
    const KeyboardNames names{qEnvironmentVariable("XKB_DEFAULT_MODEL"), qEnvironmentVariable("XKB_DEFAULT_LAYOUT"),
                              qEnvironmentVariable("XKB_DEFAULT_VARIANT"), qEnvironmentVariable("XKB_DEFAULT_OPTIONS")};
    return names.layout.isEmpty() ? std::nullopt : std::optional(names);
}

} // namespace

std::optional<KeyboardNames> keyboardNamesFrom(const QByteArray& property) {
    const QList<QByteArray> parts = property.split('\0');
    constexpr qsizetype kLayout = 2;
    if (parts.size() <= kLayout || parts.at(kLayout).isEmpty()) {
        return std::nullopt;
    }
    return KeyboardNames{QString::fromLatin1(parts.at(1)), QString::fromLatin1(parts.at(2)),
                         QString::fromLatin1(parts.value(3)), QString::fromLatin1(parts.value(4))};
}

std::optional<KeyboardNames> hostKeyboard() {
    if (const auto* x11 = qGuiApp->nativeInterface<QNativeInterface::QX11Application>()) {
        if (auto names = keyboardNamesFrom(rulesProperty(x11->connection()))) {
            return names;
        }
    }
    return fromEnvironment();
}

std::optional<std::bitset<256>> hostKeysDown() {
    const auto* x11 = qGuiApp->nativeInterface<QNativeInterface::QX11Application>();
    if (x11 == nullptr) {
        return std::nullopt;
    }
    constexpr std::size_t kFirstKeycode = 8; // X counts from there
    const Reply<xcb_query_keymap_reply_t> reply(
        xcb_query_keymap_reply(x11->connection(), xcb_query_keymap(x11->connection()), nullptr));
    if (!reply) {
        return std::nullopt;
    }
    std::bitset<256> down;
    for (std::size_t keycode = kFirstKeycode; keycode < down.size(); ++keycode) {
        down.set(keycode - kFirstKeycode, (reply->keys[keycode / 8] >> keycode % 8 & 1) != 0);
    }
    return down;
}

int guestDpi(const QScreen& screen) {
    return std::clamp(static_cast<int>(std::lround(screen.logicalDotsPerInch() * screen.devicePixelRatio())), 48, 480);
}

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#include "viewer/scancodes.hpp"

#include <linux/input-event-codes.h>

#include <algorithm>
#include <array>
#include <utility>

namespace bulkhead::viewer {
namespace {

using Entry = std::pair<std::uint16_t, std::uint16_t>;

constexpr std::uint16_t e0(int code) {
    return static_cast<std::uint16_t>(0x100 | code);
}

// Linux numbered its first keys after this very scancode set; here is the rest, by key code.
constexpr std::array kRest{
    Entry{KEY_ZENKAKUHANKAKU, 0x76},
    Entry{KEY_102ND, 0x56},
    Entry{KEY_F11, 0x57},
    Entry{KEY_F12, 0x58},
    Entry{KEY_RO, 0x73},
    Entry{KEY_KATAKANA, 0x78},
    Entry{KEY_HIRAGANA, 0x77},
    Entry{KEY_HENKAN, 0x79},
    Entry{KEY_KATAKANAHIRAGANA, 0x70},
    Entry{KEY_MUHENKAN, 0x7b},
    Entry{KEY_KPJPCOMMA, 0x5c},
    Entry{KEY_KPENTER, e0(0x1c)},
    Entry{KEY_RIGHTCTRL, e0(0x1d)},
    Entry{KEY_KPSLASH, e0(0x35)},
    Entry{KEY_SYSRQ, e0(0x37)},
    Entry{KEY_RIGHTALT, e0(0x38)},
    Entry{KEY_LINEFEED, 0x5b},
    Entry{KEY_HOME, e0(0x47)},
    Entry{KEY_UP, e0(0x48)},
    Entry{KEY_PAGEUP, e0(0x49)},
    Entry{KEY_LEFT, e0(0x4b)},
    Entry{KEY_RIGHT, e0(0x4d)},
    Entry{KEY_END, e0(0x4f)},
    Entry{KEY_DOWN, e0(0x50)},
    Entry{KEY_PAGEDOWN, e0(0x51)},
    Entry{KEY_INSERT, e0(0x52)},
    Entry{KEY_DELETE, e0(0x53)},
    Entry{KEY_MUTE, e0(0x20)},
    Entry{KEY_VOLUMEDOWN, e0(0x2e)},
    Entry{KEY_VOLUMEUP, e0(0x30)},
    Entry{KEY_KPEQUAL, 0x59},
    Entry{KEY_PAUSE, e0(0x46)},
    Entry{KEY_KPCOMMA, 0x7e},
    Entry{KEY_HANGEUL, 0x72},
    Entry{KEY_HANJA, 0x71},
    Entry{KEY_YEN, 0x7d},
    Entry{KEY_LEFTMETA, e0(0x5b)},
    Entry{KEY_RIGHTMETA, e0(0x5c)},
    Entry{KEY_COMPOSE, e0(0x5d)},
    Entry{KEY_STOP, e0(0x68)},
    Entry{KEY_AGAIN, e0(0x05)},
    Entry{KEY_PROPS, e0(0x06)},
    Entry{KEY_UNDO, e0(0x07)},
    Entry{KEY_FRONT, e0(0x0c)},
    Entry{KEY_COPY, e0(0x78)},
    Entry{KEY_OPEN, 0x64},
    Entry{KEY_PASTE, 0x65},
    Entry{KEY_FIND, e0(0x41)},
    Entry{KEY_CUT, e0(0x3c)},
    Entry{KEY_HELP, e0(0x75)},
    Entry{KEY_MENU, e0(0x1e)},
    Entry{KEY_CALC, e0(0x21)},
    Entry{KEY_MAIL, e0(0x6c)},
    Entry{KEY_BOOKMARKS, e0(0x66)},
    Entry{KEY_COMPUTER, e0(0x6b)},
    Entry{KEY_BACK, e0(0x6a)},
    Entry{KEY_FORWARD, e0(0x69)},
    Entry{KEY_NEXTSONG, e0(0x19)},
    Entry{KEY_PLAYPAUSE, e0(0x22)},
    Entry{KEY_PREVIOUSSONG, e0(0x10)},
    Entry{KEY_STOPCD, e0(0x24)},
    Entry{KEY_HOMEPAGE, e0(0x32)},
    Entry{KEY_REFRESH, e0(0x67)},
    Entry{KEY_F13, 0x5d},
    Entry{KEY_F14, 0x5e},
    Entry{KEY_F15, 0x5f},
    Entry{KEY_F16, 0x55},
    Entry{KEY_F17, e0(0x03)},
    Entry{KEY_F18, e0(0x77)},
    Entry{KEY_F19, e0(0x04)},
    Entry{KEY_F20, 0x5a},
    Entry{KEY_F21, 0x74},
    Entry{KEY_F22, e0(0x79)},
    Entry{KEY_F23, 0x6d},
    Entry{KEY_F24, 0x6f},
    Entry{KEY_SEARCH, e0(0x65)},
    Entry{KEY_MEDIA, e0(0x6d)},
};

} // namespace

std::optional<std::uint16_t> pcScancode(std::uint32_t evdevCode) {
    if (evdevCode >= KEY_ESC && evdevCode <= KEY_KPDOT) {
        return static_cast<std::uint16_t>(evdevCode);
    }
    const auto* found =
        std::find_if(kRest.begin(), kRest.end(), [evdevCode](const Entry& entry) { return entry.first == evdevCode; });
    return found == kRest.end() ? std::nullopt : std::optional(found->second);
}

bool isLockKey(std::uint32_t evdevCode) {
    return evdevCode == KEY_CAPSLOCK || evdevCode == KEY_NUMLOCK || evdevCode == KEY_SCROLLLOCK;
}

std::optional<std::uint16_t> KeyTracker::press(std::uint32_t evdevCode) {
    const auto code = pcScancode(evdevCode);
    return code && m_down.insert(evdevCode).second ? code : std::nullopt;
}

std::optional<std::uint16_t> KeyTracker::release(std::uint32_t evdevCode) {
    return m_down.erase(evdevCode) > 0 ? pcScancode(evdevCode) : std::nullopt;
}

std::vector<std::uint16_t> KeyTracker::releaseAll() {
    std::vector<std::uint16_t> codes;
    for (const std::uint32_t key : std::exchange(m_down, {})) {
        codes.push_back(*pcScancode(key));
    }
    return codes;
}

} // namespace bulkhead::viewer

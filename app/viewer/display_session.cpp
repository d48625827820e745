// SPDX-License-Identifier: Apache-2.0
#include "viewer/display_session.hpp"

#include "dbus/interfaces/session_stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace bulkhead::viewer {
namespace {

struct ButtonCodes {
    int button;
    int mask;
};

ButtonCodes codesOf(PointerButton button) {
    switch (button) {
    case PointerButton::Left:
        return {SPICE_MOUSE_BUTTON_LEFT, SPICE_MOUSE_BUTTON_MASK_LEFT};
    case PointerButton::Middle:
        return {SPICE_MOUSE_BUTTON_MIDDLE, SPICE_MOUSE_BUTTON_MASK_MIDDLE};
    case PointerButton::Right:
        return {SPICE_MOUSE_BUTTON_RIGHT, SPICE_MOUSE_BUTTON_MASK_RIGHT};
    case PointerButton::Side:
        return {SPICE_MOUSE_BUTTON_SIDE, SPICE_MOUSE_BUTTON_MASK_SIDE};
    case PointerButton::Extra:
        return {SPICE_MOUSE_BUTTON_EXTRA, SPICE_MOUSE_BUTTON_MASK_EXTRA};
    }
    return {SPICE_MOUSE_BUTTON_INVALID, 0};
}

} // namespace

DisplaySession::DisplaySession(SpiceConnection::OpenChannel openChannel, QObject* parent)
    : QObject(parent)
    , m_openChannel(std::move(openChannel)) {}

DisplaySession::~DisplaySession() = default;

SpiceHead& DisplaySession::head(std::uint32_t number) {
    auto& head = m_heads[std::min(number, session_stream::kMostHeads - 1)];
    if (!head) {
        head = std::make_unique<SpiceHead>(number, *this);
    }
    return *head;
}

void DisplaySession::start() {
    retire();
    m_startWanted = !m_retiring.empty();
    if (m_startWanted) {
        return;
    }
    m_connection = std::make_unique<SpiceConnection>(
        m_openChannel, [this](std::uint32_t number) -> SpiceHead& { return head(number); }, m_sound);
    connect(m_connection.get(), &SpiceConnection::connected, this, [this] {
        m_connected = true;
        Q_EMIT connected();
    });
    connect(m_connection.get(), &SpiceConnection::failed, this, [this](const QString& why) {
        retire();
        Q_EMIT lost(why);
    });
    m_connection->open();
}

void DisplaySession::stop() {
    m_startWanted = false;
    retire();
}

void DisplaySession::retire() {
    m_connected = false;
    m_buttons = 0;
    for (auto& [number, head] : m_heads) {
        head->detach();
    }
    if (!m_connection) {
        return;
    }
    SpiceConnection* old = m_connection.release();
    old->setParent(this);
    m_retiring.insert(old);
    disconnect(old, nullptr, this, nullptr);
    connect(old, &SpiceConnection::retired, this, [this, old] {
        m_retiring.erase(old);
        old->deleteLater();
        if (!m_retiring.empty()) {
            return;
        }
        if (std::exchange(m_startWanted, false)) {
            start();
        } else if (isIdle()) {
            Q_EMIT idle();
        }
    });
    old->retire();
}

void DisplaySession::requestHeadSize(std::uint32_t head, QSize pixels) {
    SpiceMainChannel* main = m_connection ? m_connection->mainChannel() : nullptr;
    if (main == nullptr || numberProperty(main, "agent-connected") == 0) {
        return; // the library asserts that there is an agent
    }
    spice_main_channel_update_display(main, static_cast<int>(head), 0, 0, pixels.width(), pixels.height(), FALSE);
    spice_main_channel_update_display_enabled(main, static_cast<int>(head), TRUE, FALSE);
    spice_main_channel_send_monitor_config(main);
}

void DisplaySession::sendPosition(std::uint32_t head, QPoint position) {
    SpiceInputsChannel* channel = inputs();
    if (channel == nullptr) {
        return;
    }
    if (numberProperty(m_connection->mainChannel(), "mouse-mode") == SPICE_MOUSE_MODE_CLIENT) {
        spice_inputs_channel_position(channel, position.x(), position.y(), static_cast<int>(head), m_buttons);
    } else { // a guest without a pointing device for positions gets the difference
        const QPoint delta = position - m_position;
        spice_inputs_channel_motion(channel, delta.x(), delta.y(), m_buttons);
    }
    m_position = position;
}

void DisplaySession::sendButton(PointerButton button, bool down) {
    SpiceInputsChannel* channel = inputs();
    const ButtonCodes codes = codesOf(button);
    m_buttons = down ? m_buttons | codes.mask : m_buttons & ~codes.mask;
    if (channel == nullptr) {
        return;
    }
    if (down) {
        spice_inputs_channel_button_press(channel, codes.button, m_buttons);
    } else {
        spice_inputs_channel_button_release(channel, codes.button, m_buttons);
    }
}

void DisplaySession::sendWheel(int notches) {
    SpiceInputsChannel* channel = inputs();
    if (channel == nullptr) {
        return;
    }
    const int button = notches > 0 ? SPICE_MOUSE_BUTTON_UP : SPICE_MOUSE_BUTTON_DOWN;
    for (int i = 0; i < std::abs(notches); ++i) {
        spice_inputs_channel_button_press(channel, button, m_buttons);
        spice_inputs_channel_button_release(channel, button, m_buttons);
    }
}

void DisplaySession::pressKey(std::uint16_t scancode) {
    if (SpiceInputsChannel* channel = inputs()) {
        spice_inputs_channel_key_press(channel, scancode);
    }
}

void DisplaySession::releaseKey(std::uint16_t scancode) {
    if (SpiceInputsChannel* channel = inputs()) {
        spice_inputs_channel_key_release(channel, scancode);
    }
}

void DisplaySession::setLocks(bool caps, bool num) {
    SpiceInputsChannel* channel = inputs();
    if (channel == nullptr) {
        return;
    }
    const int now = numberProperty(channel, "key-modifiers");
    const int wanted =
        (now & SPICE_INPUTS_SCROLL_LOCK) | (caps ? SPICE_INPUTS_CAPS_LOCK : 0) | (num ? SPICE_INPUTS_NUM_LOCK : 0);
    if (wanted != now) {
        spice_inputs_channel_set_key_locks(channel, static_cast<guint>(wanted));
    }
}

} // namespace bulkhead::viewer

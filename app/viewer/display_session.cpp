// SPDX-License-Identifier: Apache-2.0
#include "viewer/display_session.hpp"

#include "dbus/interfaces/session_stream.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace bulkhead::viewer {
namespace {

DisplaySession& sessionOf(gpointer self) {
    return *static_cast<DisplaySession*>(self);
}

template <class T, class U> T* as(U* object) {
    return reinterpret_cast<T*>(object); // what GObject's own cast macros come down to
}

template <class T> void watch(T* object, const char* signal, GCallback callback, gpointer self) {
    g_signal_connect_data(object, signal, callback, self, nullptr, GConnectFlags{});
}

int numberProperty(gpointer object, const char* name) {
    gint value = 0;
    g_object_get(object, name, &value, nullptr);
    return value;
}

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

QString wordsFor(SpiceChannelEvent event, SpiceChannel* channel) {
    const GError* error = spice_channel_get_error(channel);
    if (error != nullptr && error->message != nullptr) {
        return QString::fromUtf8(error->message);
    }
    switch (event) {
    case SPICE_CHANNEL_ERROR_CONNECT:
        return QStringLiteral("the display could not be reached");
    case SPICE_CHANNEL_ERROR_TLS:
    case SPICE_CHANNEL_ERROR_LINK:
    case SPICE_CHANNEL_ERROR_AUTH:
        return QStringLiteral("the display refused the connection");
    case SPICE_CHANNEL_ERROR_IO:
        return QStringLiteral("the display's connection broke");
    case SPICE_CHANNEL_NONE:
    case SPICE_CHANNEL_OPENED:
    case SPICE_CHANNEL_SWITCHING:
    case SPICE_CHANNEL_CLOSED:
        break;
    }
    return QStringLiteral("the display was closed");
}

} // namespace

DisplaySession::DisplaySession(OpenChannel openChannel, QObject* parent)
    : QObject(parent)
    , m_openChannel(std::move(openChannel)) {}

DisplaySession::~DisplaySession() {
    stop();
}

SpiceHead& DisplaySession::head(std::uint32_t number) {
    auto& head = m_heads[std::min(number, session_stream::kMostHeads - 1)];
    if (!head) {
        head = std::make_unique<SpiceHead>(number, *this);
    }
    return *head;
}

void DisplaySession::start() {
    stop();
    m_failed = false;
    m_generation = std::make_shared<int>(0);
    m_session = GObjectPtr<SpiceSession>::adopt(spice_session_new());
    g_object_set(m_session.get(), "enable-audio", FALSE, "enable-usbredir", FALSE, "enable-smartcard", FALSE, nullptr);
    watch(m_session.get(), "channel-new", reinterpret_cast<GCallback>(&DisplaySession::onChannelNew), this);
    m_openChannel([this, alive = std::weak_ptr<int>(m_generation)](client::Outcome<client::Descriptor> opened) {
        if (alive.expired()) {
            return;
        }
        if (!opened) {
            fail(QString::fromStdString(opened.error().message));
            return;
        }
        // The library owns the descriptor from here on.
        if (!spice_session_open_fd(m_session.get(), opened->release())) {
            fail(QStringLiteral("the display could not be opened"));
        }
    });
}

void DisplaySession::stop() {
    m_generation.reset();
    m_connected = false;
    m_buttons = 0;
    for (auto& [number, head] : m_heads) {
        head->detach();
    }
    for (const auto& channel : m_channels) {
        g_signal_handlers_disconnect_by_data(channel.get(), this);
    }
    m_channels.clear();
    m_inputs.reset();
    m_main.reset();
    if (m_session) {
        g_signal_handlers_disconnect_by_data(m_session.get(), this);
        spice_session_disconnect(m_session.get());
        m_session.reset();
    }
}

void DisplaySession::onChannelNew(SpiceSession* /*session*/, SpiceChannel* channel, gpointer self) {
    sessionOf(self).takeChannel(channel);
}

void DisplaySession::onOpenFd(SpiceChannel* channel, gint /*withTls*/, gpointer self) {
    sessionOf(self).openFor(channel);
}

void DisplaySession::onChannelEvent(SpiceChannel* channel, SpiceChannelEvent event, gpointer self) {
    sessionOf(self).noteEvent(channel, event);
}

void DisplaySession::takeChannel(SpiceChannel* channel) {
    const int number = numberProperty(channel, "channel-id");
    const auto headNumber = static_cast<std::uint32_t>(number);
    const bool isHead = number >= 0 && headNumber < session_stream::kMostHeads;
    switch (numberProperty(channel, "channel-type")) {
    case SPICE_CHANNEL_MAIN:
        m_main = GObjectPtr<SpiceChannel>::share(channel);
        break;
    case SPICE_CHANNEL_INPUTS:
        m_inputs = GObjectPtr<SpiceChannel>::share(channel);
        break;
    case SPICE_CHANNEL_DISPLAY:
        if (!isHead) {
            return;
        }
        head(headNumber).attachDisplay(channel);
        break;
    case SPICE_CHANNEL_CURSOR:
        if (!isHead) {
            return;
        }
        head(headNumber).attachCursor(channel);
        break;
    default: // offered, but nothing of ours
        return;
    }
    m_channels.push_back(GObjectPtr<SpiceChannel>::share(channel));
    watch(channel, "channel-event", reinterpret_cast<GCallback>(&DisplaySession::onChannelEvent), this);
    if (m_main.get() != channel) { // the library connects that one itself
        watch(channel, "open-fd", reinterpret_cast<GCallback>(&DisplaySession::onOpenFd), this);
        spice_channel_connect(channel);
    }
}

void DisplaySession::openFor(SpiceChannel* channel) {
    m_openChannel([this, alive = std::weak_ptr<int>(m_generation),
                   kept = GObjectPtr<SpiceChannel>::share(channel)](client::Outcome<client::Descriptor> opened) {
        if (alive.expired()) {
            return;
        }
        if (!opened) {
            fail(QString::fromStdString(opened.error().message));
        } else {
            spice_channel_open_fd(kept.get(), opened->release());
        }
    });
}

void DisplaySession::noteEvent(SpiceChannel* channel, SpiceChannelEvent event) {
    if (event == SPICE_CHANNEL_OPENED) {
        if (channel == m_main.get()) {
            m_connected = true;
            spice_main_channel_request_mouse_mode(as<SpiceMainChannel>(channel), SPICE_MOUSE_MODE_CLIENT);
            Q_EMIT connected();
        }
        return;
    }
    if (event >= SPICE_CHANNEL_CLOSED) {
        fail(wordsFor(event, channel));
    }
}

void DisplaySession::fail(const QString& why) {
    if (std::exchange(m_failed, true)) {
        return;
    }
    m_connected = false;
    // We may be inside a callback of the library, which must not lose its objects under its feet.
    QMetaObject::invokeMethod(
        this,
        [this, why, alive = std::weak_ptr<int>(m_generation)] {
            if (!alive.expired()) {
                stop();
                Q_EMIT lost(why);
            }
        },
        Qt::QueuedConnection);
}

SpiceInputsChannel* DisplaySession::inputs() const {
    return m_connected && m_inputs ? as<SpiceInputsChannel>(m_inputs.get()) : nullptr;
}

void DisplaySession::requestHeadSize(std::uint32_t head, QSize pixels) {
    if (!m_connected || !m_main) {
        return;
    }
    gboolean agent = FALSE;
    g_object_get(m_main.get(), "agent-connected", &agent, nullptr);
    if (agent == FALSE) {
        return; // the library asserts that there is one
    }
    auto* main = as<SpiceMainChannel>(m_main.get());
    spice_main_channel_update_display(main, static_cast<int>(head), 0, 0, pixels.width(), pixels.height(), FALSE);
    spice_main_channel_update_display_enabled(main, static_cast<int>(head), TRUE, FALSE);
    spice_main_channel_send_monitor_config(main);
}

void DisplaySession::sendPosition(std::uint32_t head, QPoint position) {
    SpiceInputsChannel* channel = inputs();
    if (channel == nullptr) {
        return;
    }
    if (numberProperty(m_main.get(), "mouse-mode") == SPICE_MOUSE_MODE_CLIENT) {
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

// SPDX-License-Identifier: Apache-2.0
#include "viewer/spice_connection.hpp"

#include "dbus/interfaces/session_stream.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::viewer {
namespace {

constexpr int kLookInterval = 20; ///< ms
constexpr int kMostLooks = 100;   ///< then it is closed come what may

SpiceConnection& connectionOf(gpointer self) {
    return *static_cast<SpiceConnection*>(self);
}

template <class T> void watch(T* object, const char* signal, GCallback callback, gpointer self) {
    g_signal_connect_data(object, signal, callback, self, nullptr, GConnectFlags{});
}

gulong bytesRead(SpiceChannel* channel) {
    gulong bytes = 0;
    g_object_get(channel, "total-read-bytes", &bytes, nullptr);
    return bytes;
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

int numberProperty(gpointer object, const char* name) {
    gint value = 0;
    g_object_get(object, name, &value, nullptr);
    return value;
}

SpiceConnection::SpiceConnection(OpenChannel openChannel, HeadOf headOf, SoundOutput* sound, QObject* parent)
    : QObject(parent)
    , m_openChannel(std::move(openChannel))
    , m_headOf(std::move(headOf)) {
    if (sound != nullptr) {
        m_playback.emplace(*sound);
    }
    m_look.setInterval(kLookInterval);
    connect(&m_look, &QTimer::timeout, this, &SpiceConnection::look);
}

SpiceConnection::~SpiceConnection() {
    close();
}

void SpiceConnection::open() {
    m_openChannel([this, alive = std::weak_ptr<int>(m_alive)](client::Outcome<client::Descriptor> opened) {
        if (alive.expired() || m_retiring) {
            return;
        }
        if (!opened) {
            fail(QString::fromStdString(opened.error().message));
            return;
        }
        m_session = GObjectPtr<SpiceSession>::adopt(spice_session_new());
        // With sound the library makes both of its channels; only that for playback is ever connected.
        g_object_set(m_session.get(), "enable-audio", m_playback ? TRUE : FALSE, "enable-usbredir", FALSE,
                     "enable-smartcard", FALSE, nullptr);
        watch(m_session.get(), "channel-new", reinterpret_cast<GCallback>(&SpiceConnection::onChannelNew), this);
        // The library owns the descriptor from here on.
        if (!spice_session_open_fd(m_session.get(), opened->release())) {
            fail(QStringLiteral("the display could not be opened"));
        }
    });
}

void SpiceConnection::onChannelNew(SpiceSession* /*session*/, SpiceChannel* channel, gpointer self) {
    connectionOf(self).takeChannel(channel);
}

void SpiceConnection::onOpenFd(SpiceChannel* channel, gint /*withTls*/, gpointer self) {
    connectionOf(self).openFor(channel);
}

void SpiceConnection::onChannelEvent(SpiceChannel* channel, SpiceChannelEvent event, gpointer self) {
    connectionOf(self).noteEvent(channel, event);
}

void SpiceConnection::takeChannel(SpiceChannel* channel) {
    if (m_retiring) {
        return;
    }
    const int type = numberProperty(channel, "channel-type");
    const int number = numberProperty(channel, "channel-id");
    const auto head = static_cast<std::uint32_t>(number);
    const bool isHead = number >= 0 && head < session_stream::kMostHeads;
    if (type == SPICE_CHANNEL_DISPLAY && isHead) {
        m_headOf(head).attachDisplay(channel);
    } else if (type == SPICE_CHANNEL_CURSOR && isHead) {
        m_headOf(head).attachCursor(channel);
    } else if (type == SPICE_CHANNEL_PLAYBACK && m_playback) {
        m_playback->attach(channel);
    } else if (type != SPICE_CHANNEL_MAIN && type != SPICE_CHANNEL_INPUTS) {
        return; // offered, but nothing of ours
    }
    m_channels.push_back({GObjectPtr<SpiceChannel>::share(channel)});
    watch(channel, "channel-event", reinterpret_cast<GCallback>(&SpiceConnection::onChannelEvent), this);
    if (type != SPICE_CHANNEL_MAIN) { // the library connects that one itself
        watch(channel, "open-fd", reinterpret_cast<GCallback>(&SpiceConnection::onOpenFd), this);
        spice_channel_connect(channel);
    }
}

void SpiceConnection::openFor(SpiceChannel* channel) {
    m_openChannel([this, alive = std::weak_ptr<int>(m_alive),
                   kept = GObjectPtr<SpiceChannel>::share(channel)](client::Outcome<client::Descriptor> opened) {
        if (alive.expired()) {
            return;
        }
        if (opened) {
            // Even when retiring meanwhile: what has begun is to come to its end.
            spice_channel_open_fd(kept.get(), opened->release());
        } else {
            noteEvent(kept.get(), SPICE_CHANNEL_ERROR_CONNECT);
        }
    });
}

void SpiceConnection::noteEvent(SpiceChannel* channel, SpiceChannelEvent event) {
    const auto known = std::find_if(m_channels.begin(), m_channels.end(),
                                    [channel](const Channel& one) { return one.object.get() == channel; });
    if (known == m_channels.end()) {
        return;
    }
    if (event == SPICE_CHANNEL_OPENED) {
        known->isUp = true;
        known->bytesAtUp = bytesRead(channel);
        if (channel == channelOf(SPICE_CHANNEL_MAIN) && !m_retiring) {
            m_connected = true;
            spice_main_channel_request_mouse_mode(mainChannel(), SPICE_MOUSE_MODE_CLIENT);
            Q_EMIT connected();
        }
    } else if (event >= SPICE_CHANNEL_CLOSED) {
        known->isOver = true;
        fail(wordsFor(event, channel));
    }
}

void SpiceConnection::fail(const QString& why) {
    if (std::exchange(m_failed, true) || m_retiring) {
        return;
    }
    m_connected = false;
    // We may be inside a callback of the library, which must not lose its objects under its feet.
    QMetaObject::invokeMethod(
        this,
        [this, why] {
            if (!m_retiring) {
                Q_EMIT failed(why);
            }
        },
        Qt::QueuedConnection);
}

SpiceChannel* SpiceConnection::channelOf(int type) const {
    const auto found = std::find_if(m_channels.begin(), m_channels.end(), [type](const Channel& one) {
        return numberProperty(one.object.get(), "channel-type") == type;
    });
    return found == m_channels.end() ? nullptr : found->object.get();
}

SpiceMainChannel* SpiceConnection::mainChannel() const {
    // What GObject's own cast macros come down to.
    return m_connected && !m_retiring ? reinterpret_cast<SpiceMainChannel*>(channelOf(SPICE_CHANNEL_MAIN)) : nullptr;
}

SpiceInputsChannel* SpiceConnection::inputs() const {
    return m_connected && !m_retiring ? reinterpret_cast<SpiceInputsChannel*>(channelOf(SPICE_CHANNEL_INPUTS))
                                      : nullptr;
}

void SpiceConnection::retire() {
    if (std::exchange(m_retiring, true)) {
        return;
    }
    if (m_playback) {
        m_playback->detach(); // deaf from now on
    }
    look();
    if (m_session) {
        m_look.start();
    }
}

/// The first bytes after the link say that the thread behind the channel has it.
bool SpiceConnection::isSettled(const Channel& channel) {
    return channel.isOver || (channel.isUp && bytesRead(channel.object.get()) > channel.bytesAtUp);
}

void SpiceConnection::look() {
    const bool settled = std::all_of(m_channels.begin(), m_channels.end(), &SpiceConnection::isSettled);
    if (settled || ++m_looks >= kMostLooks) {
        m_look.stop();
        close();
        // Never from within retire(): the caller may be about to wait for it.
        QMetaObject::invokeMethod(this, &SpiceConnection::retired, Qt::QueuedConnection);
    }
}

void SpiceConnection::close() {
    m_alive.reset();
    if (m_playback) {
        m_playback->detach();
    }
    for (const Channel& channel : m_channels) {
        g_signal_handlers_disconnect_by_data(channel.object.get(), this);
    }
    m_channels.clear();
    if (m_session) {
        g_signal_handlers_disconnect_by_data(m_session.get(), this);
        spice_session_disconnect(m_session.get());
        m_session.reset();
    }
}

} // namespace bulkhead::viewer

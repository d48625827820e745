// SPDX-License-Identifier: Apache-2.0
#include "viewer/pulse_sound.hpp"

#include <QByteArray>
#include <pulse/glib-mainloop.h>
#include <pulse/pulseaudio.h>

#include <cstdint>
#include <utility>

namespace bulkhead::viewer {
namespace {

constexpr int kBurst = 3;
constexpr int kPerSecond = 1;
constexpr unsigned kTargetMs = 120; ///< what the server keeps in hand
constexpr unsigned kMostMs = 400;
constexpr unsigned kBeginMs = 40; ///< before it is heard
constexpr unsigned kStepMs = 10;  ///< in which the server asks for more: as SPICE sends it

std::uint32_t bytesIn(const SoundFormat& format, unsigned milliseconds) {
    constexpr unsigned kBytesPerSample = 2;
    return format.rate / 1000 * milliseconds * format.channels * kBytesPerSample;
}

/// The library looks through the folder of the socket, which a viewer may not, and gives up. Empty: as the environment
/// says.
QByteArray ownServer() {
    const QByteArray runtime = qgetenv("XDG_RUNTIME_DIR");
    return runtime.isEmpty() || qEnvironmentVariableIsSet("PULSE_SERVER") ? QByteArray()
                                                                          : "unix:" + runtime + "/pulse/native";
}

} // namespace

PulseSound::PulseSound(QString name)
    : m_name(std::move(name))
    , m_opening(kBurst, kPerSecond) {}

PulseSound::~PulseSound() {
    disconnect();
    if (m_loop != nullptr) {
        pa_glib_mainloop_free(m_loop);
    }
}

void PulseSound::begin(const SoundFormat& format) {
    m_wanted = format;
    connect();
    openStream();
}

void PulseSound::end() {
    m_wanted.reset();
    // The stream stays: a guest that begins and ends all the time makes no work for the sound server.
}

void PulseSound::setMuted(bool isMuted) {
    m_isMuted = isMuted;
    if (m_isMuted) {
        disconnect();
    }
}

void PulseSound::play(std::span<const std::byte> samples) {
    if (!m_wanted || m_isMuted || samples.empty()) {
        return;
    }
    if (m_context == nullptr) { // unmuted, or the server went away
        connect();
    }
    openStream();
    if (m_stream == nullptr || m_streamed != m_wanted || pa_stream_get_state(m_stream) != PA_STREAM_READY) {
        return;
    }
    const std::size_t room = pa_stream_writable_size(m_stream);
    if (room == static_cast<std::size_t>(-1) || samples.size() > room) {
        return;
    }
    pa_stream_write(m_stream, samples.data(), samples.size(), nullptr, 0, PA_SEEK_RELATIVE);
}

void PulseSound::connect() {
    if (m_isMuted || m_context != nullptr || !m_opening.take(Clock::now())) {
        return;
    }
    if (m_loop == nullptr) {
        m_loop = pa_glib_mainloop_new(nullptr);
    }
    pa_proplist* properties = pa_proplist_new();
    pa_proplist_sets(properties, PA_PROP_APPLICATION_NAME, m_name.toUtf8().constData());
    pa_proplist_sets(properties, PA_PROP_APPLICATION_ID, "org.bulkhead.viewer");
    m_context = pa_context_new_with_proplist(pa_glib_mainloop_get_api(m_loop), m_name.toUtf8().constData(), properties);
    pa_proplist_free(properties);
    pa_context_set_state_callback(m_context, &PulseSound::onContextState, this);
    const QByteArray server = ownServer();
    if (pa_context_connect(m_context, server.isEmpty() ? nullptr : server.constData(), PA_CONTEXT_NOAUTOSPAWN,
                           nullptr) < 0) {
        disconnect();
    }
}

void PulseSound::disconnect() {
    closeStream();
    if (m_context != nullptr) {
        pa_context_set_state_callback(m_context, nullptr, nullptr);
        pa_context_disconnect(m_context);
        pa_context_unref(std::exchange(m_context, nullptr));
    }
}

void PulseSound::openStream() {
    if (!m_wanted || m_context == nullptr || pa_context_get_state(m_context) != PA_CONTEXT_READY ||
        (m_stream != nullptr && m_streamed == m_wanted) || !m_opening.take(Clock::now())) {
        return;
    }
    closeStream();
    const pa_sample_spec form{
        .format = PA_SAMPLE_S16NE, .rate = m_wanted->rate, .channels = static_cast<std::uint8_t>(m_wanted->channels)};
    m_stream = pa_stream_new(m_context, "Sound", &form, nullptr);
    if (m_stream == nullptr) {
        return;
    }
    m_streamed = m_wanted;
    pa_stream_set_state_callback(m_stream, &PulseSound::onStreamState, this);
    constexpr auto kServersChoice = static_cast<std::uint32_t>(-1);
    const pa_buffer_attr buffer{.maxlength = bytesIn(*m_wanted, kMostMs),
                                .tlength = bytesIn(*m_wanted, kTargetMs),
                                .prebuf = bytesIn(*m_wanted, kBeginMs),
                                .minreq = bytesIn(*m_wanted, kStepMs),
                                .fragsize = kServersChoice};
    if (pa_stream_connect_playback(m_stream, nullptr, &buffer, PA_STREAM_ADJUST_LATENCY, nullptr, nullptr) < 0) {
        closeStream();
    }
}

void PulseSound::closeStream() {
    m_streamed.reset();
    if (m_stream != nullptr) {
        pa_stream_set_state_callback(m_stream, nullptr, nullptr);
        pa_stream_disconnect(m_stream);
        pa_stream_unref(std::exchange(m_stream, nullptr));
    }
}

void PulseSound::onContextState(pa_context* context, void* self) {
    auto& sound = *static_cast<PulseSound*>(self);
    const pa_context_state_t state = pa_context_get_state(context);
    if (state == PA_CONTEXT_READY) {
        sound.openStream();
    } else if (!PA_CONTEXT_IS_GOOD(state)) {
        sound.disconnect();
    }
}

void PulseSound::onStreamState(pa_stream* stream, void* self) {
    if (!PA_STREAM_IS_GOOD(pa_stream_get_state(stream))) {
        static_cast<PulseSound*>(self)->closeStream();
    }
}

} // namespace bulkhead::viewer

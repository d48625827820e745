// SPDX-License-Identifier: Apache-2.0
#include "viewer/spice_playback.hpp"

#include <utility>

namespace bulkhead::viewer {
namespace {

/// SPICE sends a few milliseconds at a time.
constexpr gint kMostBytes = 64 * 1024;

SpicePlayback& playbackOf(gpointer self) {
    return *static_cast<SpicePlayback*>(self);
}

} // namespace

void SpicePlayback::attach(SpiceChannel* channel) {
    if (m_channel) {
        return;
    }
    m_channel = GObjectPtr<SpiceChannel>::share(channel);
    const auto watch = [&](const char* signal, GCallback callback) {
        g_signal_connect_data(channel, signal, callback, this, nullptr, GConnectFlags{});
    };
    watch("playback-start", reinterpret_cast<GCallback>(&SpicePlayback::onStart));
    watch("playback-data", reinterpret_cast<GCallback>(&SpicePlayback::onData));
    watch("playback-stop", reinterpret_cast<GCallback>(&SpicePlayback::onStop));
}

void SpicePlayback::detach() {
    if (m_channel) {
        g_signal_handlers_disconnect_by_data(m_channel.get(), this);
        m_channel.reset();
    }
    if (std::exchange(m_plays, false)) {
        m_sound.end();
    }
}

void SpicePlayback::onStart(SpiceChannel* /*channel*/, gint format, gint channels, gint rate, gpointer self) {
    SpicePlayback& playback = playbackOf(self);
    const SoundFormat wanted{static_cast<unsigned>(channels), static_cast<unsigned>(rate)};
    if (format == SPICE_AUDIO_FMT_S16 && isPlayable(wanted)) {
        playback.m_plays = true;
        playback.m_sound.begin(wanted);
    } else if (std::exchange(playback.m_plays, false)) {
        playback.m_sound.end();
    }
}

void SpicePlayback::onData(SpiceChannel* /*channel*/, gpointer samples, gint size, gpointer self) {
    SpicePlayback& playback = playbackOf(self);
    if (playback.m_plays && samples != nullptr && size > 0 && size <= kMostBytes) {
        playback.m_sound.play({static_cast<const std::byte*>(samples), static_cast<std::size_t>(size)});
    }
}

void SpicePlayback::onStop(SpiceChannel* /*channel*/, gpointer self) {
    SpicePlayback& playback = playbackOf(self);
    if (std::exchange(playback.m_plays, false)) {
        playback.m_sound.end();
    }
}

} // namespace bulkhead::viewer

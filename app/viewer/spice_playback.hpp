// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/gobject_ptr.hpp"
#include "viewer/sound_output.hpp"

#include <spice-client.h>

namespace bulkhead::viewer {

/// The playback channel of a connection: hands on what is plain and in bounds. The machine's description has the server
/// send plain samples; whatever else a channel says is dropped. GUI thread.
class SpicePlayback {
public:
    explicit SpicePlayback(SoundOutput& sound)
        : m_sound(sound) {}
    SpicePlayback(const SpicePlayback&) = delete;
    SpicePlayback& operator=(const SpicePlayback&) = delete;
    ~SpicePlayback() { detach(); }

    /// One channel; a second one is not heard.
    void attach(SpiceChannel* channel);
    void detach();

private:
    static void onStart(SpiceChannel* channel, gint format, gint channels, gint rate, gpointer self);
    static void onData(SpiceChannel* channel, gpointer samples, gint size, gpointer self);
    static void onStop(SpiceChannel* channel, gpointer self);

    SoundOutput& m_sound;
    GObjectPtr<SpiceChannel> m_channel;
    bool m_plays = false;
};

} // namespace bulkhead::viewer

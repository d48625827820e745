// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/pacing.hpp"
#include "viewer/sound_output.hpp"

#include <QString>

#include <memory>
#include <optional>

struct pa_context;
struct pa_glib_mainloop;
struct pa_stream;

namespace bulkhead::viewer {

/// Plays through the user's PulseAudio, or PipeWire in its place: the socket is all that is asked of it, and no server
/// is started. Each domain is a client of its own there, with its own volume. Connects when there is something to hear;
/// without a server there is silence. Needs Qt's GLib event loop.
class PulseSound final : public SoundOutput {
public:
    /// `name`: what the user's mixer calls it.
    explicit PulseSound(QString name);
    ~PulseSound() override;

    void begin(const SoundFormat& format) override;
    void play(std::span<const std::byte> samples) override;
    void end() override;
    void setMuted(bool isMuted) override;

private:
    void connect();
    void disconnect();
    void openStream();
    void closeStream();
    static void onContextState(pa_context* context, void* self);
    static void onStreamState(pa_stream* stream, void* self);

    QString m_name;
    pa_glib_mainloop* m_loop = nullptr;
    pa_context* m_context = nullptr;
    pa_stream* m_stream = nullptr;
    std::optional<SoundFormat> m_wanted;   ///< none: the guest plays nothing
    std::optional<SoundFormat> m_streamed; ///< of m_stream
    RateLimit m_opening;                   ///< of connections and streams
    bool m_isMuted = false;
};

} // namespace bulkhead::viewer

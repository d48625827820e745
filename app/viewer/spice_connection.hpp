// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/spice_head.hpp"
#include "viewer/spice_playback.hpp"

#include "client/descriptor.hpp"
#include "client/failure.hpp"

#include <QObject>
#include <QTimer>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace bulkhead::viewer {

/// One connection to a SPICE server: a session of spice-client-glib and its main, display, cursor and inputs channels,
/// with sound the playback channel too, each over a descriptor of its own. Used once. GUI thread.
///
/// A SPICE server whose client goes away while channels are being linked follows freed memory, and takes its guest
/// with it (seen with spice-server 0.15.1). So a connection is not dropped but retired: it stays, deaf and mute, until
/// the server has begun to serve every channel.
class SpiceConnection : public QObject {
    Q_OBJECT

public:
    /// Asks for one more channel; the answer may come late, or after this object is gone.
    using OpenChannel = std::function<void(client::Callback<client::Descriptor>)>;
    using HeadOf = std::function<SpiceHead&(std::uint32_t number)>;

    /// `sound`: where the guest's goes; null: it has none. Outlives this.
    SpiceConnection(OpenChannel openChannel, HeadOf headOf, SoundOutput* sound, QObject* parent = nullptr);
    ~SpiceConnection() override;

    void open();
    /// Ends it as soon as that does no harm; retired() follows, at once or within two seconds.
    void retire();

    /// nullptr before connected() and after retire().
    [[nodiscard]] SpiceMainChannel* mainChannel() const;
    [[nodiscard]] SpiceInputsChannel* inputs() const;

Q_SIGNALS:
    void connected();
    /// It is of no use any more: retire() it. Once.
    void failed(const QString& why);
    void retired();

private:
    /// A channel that we asked for.
    struct Channel {
        GObjectPtr<SpiceChannel> object;
        bool isUp = false;
        bool isOver = false;
        gulong bytesAtUp = 0;
    };

    void takeChannel(SpiceChannel* channel);
    void openFor(SpiceChannel* channel);
    void noteEvent(SpiceChannel* channel, SpiceChannelEvent event);
    void fail(const QString& why);
    void look();
    void close();
    [[nodiscard]] static bool isSettled(const Channel& channel);
    [[nodiscard]] SpiceChannel* channelOf(int type) const;

    static void onChannelNew(SpiceSession* session, SpiceChannel* channel, gpointer self);
    static void onOpenFd(SpiceChannel* channel, gint withTls, gpointer self);
    static void onChannelEvent(SpiceChannel* channel, SpiceChannelEvent event, gpointer self);

    OpenChannel m_openChannel;
    HeadOf m_headOf;
    std::optional<SpicePlayback> m_playback;
    GObjectPtr<SpiceSession> m_session;
    std::vector<Channel> m_channels;
    std::shared_ptr<int> m_alive = std::make_shared<int>(0); ///< late answers find it gone
    QTimer m_look;
    int m_looks = 0;
    bool m_connected = false;
    bool m_failed = false;
    bool m_retiring = false;
};

/// An integer property of a GObject.
int numberProperty(gpointer object, const char* name);

} // namespace bulkhead::viewer

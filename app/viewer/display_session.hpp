// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/spice_head.hpp"

#include "client/descriptor.hpp"
#include "client/failure.hpp"

#include <QObject>
#include <QSize>

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace bulkhead::viewer {

/// The SPICE connection to one guest: main, display, cursor and inputs channels, each over a descriptor of its own.
/// Nothing else of SPICE is used: no clipboard, no files, no USB, no smart card, no sound, no folders, though a server
/// may offer them. Needs Qt's GLib event loop. GUI thread.
class DisplaySession : public QObject, public PointerSink, public KeySink {
    Q_OBJECT

public:
    /// Asks for one more channel; the answer may come late, or after this object is gone.
    using OpenChannel = std::function<void(client::Callback<client::Descriptor>)>;

    explicit DisplaySession(OpenChannel openChannel, QObject* parent = nullptr);
    ~DisplaySession() override;

    /// Connects; any connection before is given up. Answered by connected() or lost().
    void start();
    void stop();
    [[nodiscard]] bool isConnected() const { return m_connected; }

    /// The head of that number, below kMostHeads; has no image while it is not connected.
    SpiceHead& head(std::uint32_t number);

    /// Asks the device for another size, where no session in the guest does it. Only while SPICE's own agent is there.
    void requestHeadSize(std::uint32_t head, QSize pixels);

    void sendPosition(std::uint32_t head, QPoint position) override;
    void sendButton(PointerButton button, bool down) override;
    void sendWheel(int notches) override;
    void pressKey(std::uint16_t scancode) override;
    void releaseKey(std::uint16_t scancode) override;
    void setLocks(bool caps, bool num) override;

Q_SIGNALS:
    void connected();
    /// The connection is over: start() again, not from here.
    void lost(const QString& why);

private:
    void takeChannel(SpiceChannel* channel);
    void openFor(SpiceChannel* channel);
    void noteEvent(SpiceChannel* channel, SpiceChannelEvent event);
    void fail(const QString& why);
    [[nodiscard]] SpiceInputsChannel* inputs() const;

    static void onChannelNew(SpiceSession* session, SpiceChannel* channel, gpointer self);
    static void onOpenFd(SpiceChannel* channel, gint withTls, gpointer self);
    static void onChannelEvent(SpiceChannel* channel, SpiceChannelEvent event, gpointer self);

    OpenChannel m_openChannel;
    GObjectPtr<SpiceSession> m_session;
    GObjectPtr<SpiceChannel> m_main;
    GObjectPtr<SpiceChannel> m_inputs;
    std::vector<GObjectPtr<SpiceChannel>> m_channels; ///< those that have our handlers
    std::map<std::uint32_t, std::unique_ptr<SpiceHead>> m_heads;
    std::shared_ptr<int> m_generation; ///< answers that come for an earlier connection find it gone
    QPoint m_position;
    int m_buttons = 0;
    bool m_connected = false;
    bool m_failed = false;
};

} // namespace bulkhead::viewer

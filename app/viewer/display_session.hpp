// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/spice_connection.hpp"

#include <QObject>
#include <QSize>

#include <map>
#include <memory>
#include <set>

namespace bulkhead::viewer {

/// The SPICE side of one guest: its heads, which outlive connections, and the way of keys and pointer to it. Nothing
/// else of SPICE is used: no clipboard, no files, no USB, no smart card, no microphone, no folders, though a server may
/// offer them. Needs Qt's GLib event loop. GUI thread.
class DisplaySession : public QObject, public PointerSink, public KeySink {
    Q_OBJECT

public:
    explicit DisplaySession(SpiceConnection::OpenChannel openChannel, QObject* parent = nullptr);
    ~DisplaySession() override;

    /// Where its sound goes from the next start() on; null: it is not heard. Outlives this.
    void setSound(SoundOutput* sound) { m_sound = sound; }
    /// Connects, once an earlier connection is out of the way. Answered by connected() or lost().
    void start();
    void stop();
    [[nodiscard]] bool isConnected() const { return m_connected; }
    /// No connection is there any more. The process should not end before.
    [[nodiscard]] bool isIdle() const { return !m_connection && m_retiring.empty(); }

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
    /// The connection is over; start() may follow at once.
    void lost(const QString& why);
    /// isIdle() became true.
    void idle();

private:
    void retire();
    [[nodiscard]] SpiceInputsChannel* inputs() const { return m_connection ? m_connection->inputs() : nullptr; }

    SpiceConnection::OpenChannel m_openChannel;
    SoundOutput* m_sound = nullptr;
    std::map<std::uint32_t, std::unique_ptr<SpiceHead>> m_heads;
    std::unique_ptr<SpiceConnection> m_connection;
    std::set<SpiceConnection*> m_retiring; ///< children of this object
    QPoint m_position;
    int m_buttons = 0;
    bool m_connected = false;
    bool m_startWanted = false;
};

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"
#include "viewer/guest_window_info.hpp"

#include <QObject>

#include <deque>
#include <memory>

class QSocketNotifier;

namespace bulkhead::viewer {

/// The client's end of a session stream (dbus/interfaces/session_stream.hpp). Checks each record before it says a word
/// about it; reads a bounded number of them per turn of the event loop, so that a peer that talks without pause does
/// not freeze the windows. GUI thread.
class SessionLink : public QObject {
    Q_OBJECT

public:
    /// Takes over the descriptor, and makes it non-blocking.
    explicit SessionLink(client::Descriptor descriptor, QObject* parent = nullptr);
    ~SessionLink() override;

    void closeWindow(std::uint32_t window);
    void resizeWindow(std::uint32_t window, QSize pixels);
    void activateWindow(std::uint32_t window);
    void setKeyboard(const QString& model, const QString& layout, const QString& variant, const QString& options);
    void setDpi(int dpi);

    /// Records that made no sense and were dropped.
    [[nodiscard]] std::uint64_t malformed() const { return m_malformed; }
    /// Commands that wait because the peer does not read.
    [[nodiscard]] std::size_t waiting() const { return m_outgoing.size(); }

Q_SIGNALS:
    /// `up` false: the guest has no session (yet, or any more).
    void sessionState(bool up, int heads);
    void windowChanged(const bulkhead::viewer::GuestWindow& window);
    void windowGone(quint32 window);
    /// The stream is over. Last signal; delete the link later, not from here.
    void ended(const QString& why);

private:
    void readSome();
    void flush();
    void take(const session_stream::Event& event);
    void send(const session_stream::Command& command);
    void end(const QString& why);

    client::Descriptor m_descriptor;
    std::unique_ptr<QSocketNotifier> m_readable;
    std::unique_ptr<QSocketNotifier> m_writable;
    std::deque<session_stream::Command> m_outgoing;
    std::uint64_t m_malformed = 0;
    bool m_ended = false;
};

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/session_stream.hpp"
#include "viewer/guest_window_info.hpp"

#include <QObject>
#include <QTimer>

#include <deque>

namespace bulkhead::viewer {

/// The viewer's end of a session stream: checks what each record says of a window, and keeps commands that the other
/// side does not take yet, of each kind the latest for a window. GUI thread.
class SessionLink : public QObject {
    Q_OBJECT

public:
    explicit SessionLink(client::Descriptor descriptor, QObject* parent = nullptr);
    ~SessionLink() override;

    void closeWindow(std::uint32_t window);
    void resizeWindow(std::uint32_t window, QSize pixels);
    void activateWindow(std::uint32_t window);
    void setKeyboard(const QString& model, const QString& layout, const QString& variant, const QString& options);
    void setDpi(int dpi);
    void setLocale(const QString& locale);

    /// Records that made no sense and were dropped.
    [[nodiscard]] std::uint64_t malformed() const { return m_malformed; }
    /// Commands that wait because the peer does not read.
    [[nodiscard]] std::size_t waiting() const { return m_outgoing.size(); }

Q_SIGNALS:
    /// First on each connection. `up` false: the guest has no session (yet, or any more). `anew`: not the first of this
    /// connection, so all windows told of before are gone.
    void sessionState(bool up, bool anew);
    void windowChanged(const bulkhead::viewer::GuestWindow& window);
    void windowGone(quint32 window);
    /// The stream is over. Last signal; delete the link later, not from here.
    void ended();

private:
    void flush();
    void take(const session_stream::Event& event);
    void send(const session_stream::Command& command);

    client::SessionStream m_stream;
    std::deque<session_stream::Command> m_outgoing;
    QTimer m_retry;
    std::uint64_t m_malformed = 0;
    bool m_hadState = false;
};

} // namespace bulkhead::viewer

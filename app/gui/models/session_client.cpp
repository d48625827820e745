// SPDX-License-Identifier: Apache-2.0
#include "gui/models/session_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace bulkhead::gui {
namespace {

using namespace session_stream;

/// Texts are said to end by a zero byte; one that does not ends with its array.
template <std::size_t size> QString textOf(const std::array<char, size>& bytes) {
    return QString::fromUtf8(bytes.data(), static_cast<qsizetype>(::strnlen(bytes.data(), bytes.size())));
}

} // namespace

SessionClient::SessionClient(client::Descriptor stream, QObject* parent)
    : QObject(parent)
    , m_stream(std::move(stream))
    , m_notifier(m_stream.get(), QSocketNotifier::Read) {
    connect(&m_notifier, &QSocketNotifier::activated, this, &SessionClient::read);
}

void SessionClient::listApps() {
    send({.kind = CommandKind::ListApps});
}

void SessionClient::launch(const QString& appId) {
    const QByteArray id = appId.toUtf8();
    Command command{.kind = CommandKind::LaunchApp};
    if (id.size() >= static_cast<qsizetype>(command.text.size())) {
        Q_EMIT launched(appId, ENAMETOOLONG);
        return;
    }
    std::copy(id.begin(), id.end(), command.text.begin());
    send(command);
}

void SessionClient::send(const Command& command) {
    if (!m_stream.isOpen()) {
        return;
    }
    // A peer that reads nothing while its socket is full is as good as gone; waiting for it would freeze the window.
    const ssize_t sent = ::send(m_stream.get(), &command, sizeof command, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != static_cast<ssize_t>(sizeof command)) {
        close();
    }
}

void SessionClient::read() {
    // A guest may keep records coming for ever: after some of them the rest of the program has its turn.
    constexpr int kAtOnce = 256;
    for (int count = 0; count < kAtOnce && m_stream.isOpen(); ++count) {
        Event event;
        const ssize_t got = ::recv(m_stream.get(), &event, sizeof event, MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        if (got != static_cast<ssize_t>(sizeof event)) {
            close(); // its end, or a record of another version
            return;
        }
        take(event);
    }
}

void SessionClient::take(const Event& event) {
    switch (event.kind) {
    case EventKind::SessionUp:
        m_listing.clear();
        Q_EMIT sessionChanged(event.b != 0);
        break;
    case EventKind::App:
        if (m_listing.size() < static_cast<qsizetype>(kMostApps)) {
            m_listing.append({textOf(event.name), textOf(event.text),
                              textOf(event.extra).split(QLatin1Char(';'), Qt::SkipEmptyParts)});
        }
        break;
    case EventKind::AppsListed:
        Q_EMIT appsListed(std::exchange(m_listing, {}));
        break;
    case EventKind::AppLaunched:
        Q_EMIT launched(textOf(event.name), static_cast<int>(event.a));
        break;
    case EventKind::Refused:
        Q_EMIT refused(static_cast<CommandKind>(event.a));
        break;
    case EventKind::WindowChanged:
    case EventKind::WindowGone:
        break; // the viewer's
    }
}

void SessionClient::close() {
    if (m_stream.isOpen()) {
        m_notifier.setEnabled(false);
        m_stream.close();
        Q_EMIT closed();
    }
}

} // namespace bulkhead::gui

// SPDX-License-Identifier: Apache-2.0
#include "viewer/session_link.hpp"

#include <QByteArray>
#include <QSocketNotifier>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>

namespace bulkhead::viewer {
namespace {

namespace stream = session_stream;
using stream::CommandKind;
using stream::EventKind;

constexpr int kRecordsPerTurn = 64;
constexpr std::size_t kMostWaiting = 256;

stream::Command commandOf(CommandKind kind, std::uint32_t window) {
    stream::Command command;
    command.kind = kind;
    command.window = window;
    return command;
}

/// Only the last size of a window, the last settings and one activation matter: a newer command takes the place of one
/// that has not left yet.
bool replaces(const stream::Command& newer, const stream::Command& older) {
    return newer.kind == older.kind && newer.window == older.window;
}

} // namespace

SessionLink::SessionLink(client::Descriptor descriptor, QObject* parent)
    : QObject(parent)
    , m_descriptor(std::move(descriptor)) {
    const int flags = ::fcntl(m_descriptor.get(), F_GETFL);
    ::fcntl(m_descriptor.get(), F_SETFL, flags | O_NONBLOCK);
    m_readable = std::make_unique<QSocketNotifier>(m_descriptor.get(), QSocketNotifier::Read);
    m_writable = std::make_unique<QSocketNotifier>(m_descriptor.get(), QSocketNotifier::Write);
    m_writable->setEnabled(false);
    connect(m_readable.get(), &QSocketNotifier::activated, this, [this] { readSome(); });
    connect(m_writable.get(), &QSocketNotifier::activated, this, [this] { flush(); });
}

SessionLink::~SessionLink() = default;

void SessionLink::readSome() {
    for (int i = 0; i < kRecordsPerTurn && !m_ended; ++i) {
        stream::Event event;
        const ssize_t size = ::recv(m_descriptor.get(), &event, sizeof event, MSG_TRUNC);
        if (size < 0) {
            if (errno == EINTR) {
                continue;
            }
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                end(QStringLiteral("cannot read the session stream: %1").arg(QString::fromLocal8Bit(strerror(errno))));
            }
            return;
        }
        if (size == 0) {
            // A packet without bytes looks the same; nobody has a reason to send one.
            end(QStringLiteral("the session stream was closed"));
        } else if (size != static_cast<ssize_t>(sizeof event)) {
            ++m_malformed;
        } else {
            take(event);
        }
    }
}

void SessionLink::take(const stream::Event& event) {
    switch (event.kind) {
    case EventKind::SessionUp:
        Q_EMIT sessionState(event.b != 0, static_cast<int>(std::min(event.a, stream::kMostHeads)));
        return;
    case EventKind::WindowChanged:
        if (const auto window = guestWindowFrom(event)) {
            Q_EMIT windowChanged(*window);
        } else {
            ++m_malformed;
        }
        return;
    case EventKind::WindowGone:
        Q_EMIT windowGone(event.window);
        return;
    case EventKind::App:
    case EventKind::AppsListed:
    case EventKind::AppLaunched:
    case EventKind::Refused:
        return; // nothing that a viewer asks for
    }
    ++m_malformed;
}

void SessionLink::send(const stream::Command& command) {
    if (m_ended) {
        return;
    }
    const auto older = std::find_if(m_outgoing.begin(), m_outgoing.end(),
                                    [&](const stream::Command& waiting) { return replaces(command, waiting); });
    if (older != m_outgoing.end()) {
        m_outgoing.erase(older);
    }
    if (m_outgoing.size() >= kMostWaiting) {
        m_outgoing.pop_front();
    }
    m_outgoing.push_back(command);
    flush();
}

void SessionLink::flush() {
    while (!m_outgoing.empty() && !m_ended) {
        const ssize_t size = ::send(m_descriptor.get(), &m_outgoing.front(), sizeof m_outgoing.front(), MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            const bool busy = errno == EAGAIN || errno == EWOULDBLOCK;
            m_writable->setEnabled(busy);
            if (!busy) {
                m_outgoing.clear(); // the end of the stream tells itself by reading
            }
            return;
        }
        m_outgoing.pop_front();
    }
    m_writable->setEnabled(false);
}

void SessionLink::end(const QString& why) {
    m_ended = true;
    m_readable->setEnabled(false);
    m_writable->setEnabled(false);
    m_outgoing.clear();
    Q_EMIT ended(why);
}

void SessionLink::closeWindow(std::uint32_t window) {
    send(commandOf(CommandKind::CloseWindow, window));
}

void SessionLink::resizeWindow(std::uint32_t window, QSize pixels) {
    const auto side = [](int value) {
        return std::clamp(static_cast<std::uint32_t>(std::max(value, 0)), stream::kSmallestSide, stream::kLargestSide);
    };
    stream::Command command = commandOf(CommandKind::ResizeWindow, window);
    command.a = side(pixels.width());
    command.b = side(pixels.height());
    send(command);
}

void SessionLink::activateWindow(std::uint32_t window) {
    send(commandOf(CommandKind::ActivateWindow, window));
}

void SessionLink::setKeyboard(const QString& model, const QString& layout, const QString& variant,
                              const QString& options) {
    stream::Command command = commandOf(CommandKind::Keyboard, 0);
    const QByteArray text = QStringList{model, layout, variant, options}.join(QLatin1Char('\n')).toUtf8();
    if (static_cast<std::size_t>(text.size()) >= command.text.size()) {
        return; // no keyboard is described by that much; half of it would be another one
    }
    std::copy(text.begin(), text.end(), command.text.begin());
    send(command);
}

void SessionLink::setDpi(int dpi) {
    stream::Command command = commandOf(CommandKind::Dpi, 0);
    command.a = static_cast<std::uint32_t>(std::clamp(dpi, 48, 480));
    send(command);
}

} // namespace bulkhead::viewer

// SPDX-License-Identifier: Apache-2.0
#include "client/session_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/socket.h>

namespace bulkhead::client {

using session_stream::Command;
using session_stream::Event;

namespace {
/// So many in a row, then the event loop has its turn; the rest comes in the next one.
constexpr int kMostAtOnce = 64;
} // namespace

SessionStream::SessionStream(Descriptor descriptor, Events events)
    : m_descriptor(std::move(descriptor))
    , m_events(std::move(events))
    , m_notifier(m_descriptor.get(), QSocketNotifier::Read) {
    QObject::connect(&m_notifier, &QSocketNotifier::activated, &m_notifier, [this] { onReadable(); });
}

void SessionStream::onReadable() {
    const std::weak_ptr<bool> isAlive = m_isAlive;
    for (int i = 0; i < kMostAtOnce; ++i) {
        Event event;
        const ssize_t size = ::recv(m_descriptor.get(), &event, sizeof event, MSG_DONTWAIT | MSG_TRUNC);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (size != static_cast<ssize_t>(sizeof event)) {
            m_notifier.setEnabled(false);
            m_descriptor.close();
            m_events.ended();
            return;
        }
        event.text.back() = event.name.back() = event.extra.back() = '\0';
        m_events.received(event);
        if (isAlive.expired()) {
            return;
        }
    }
}

bool SessionStream::send(const Command& command) {
    return m_descriptor.isOpen() && ::send(m_descriptor.get(), &command, sizeof command, MSG_DONTWAIT | MSG_NOSIGNAL) ==
                                        static_cast<ssize_t>(sizeof command);
}

Command commandWith(session_stream::CommandKind kind, const QString& text) {
    Command command;
    command.kind = kind;
    const QByteArray bytes = text.toUtf8().left(static_cast<qsizetype>(command.text.size()) - 1);
    std::copy(bytes.begin(), bytes.end(), command.text.begin());
    return command;
}

} // namespace bulkhead::client

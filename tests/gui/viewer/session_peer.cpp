// SPDX-License-Identifier: Apache-2.0
#include "session_peer.hpp"

#include <algorithm>
#include <sys/socket.h>

namespace bulkhead::test {

namespace stream = session_stream;

bool SessionPeer::sendBytes(const QByteArray& bytes) {
    return ::send(m_descriptor.get(), bytes.constData(), static_cast<std::size_t>(bytes.size()),
                  MSG_DONTWAIT | MSG_NOSIGNAL) == bytes.size();
}

bool SessionPeer::send(const stream::Event& event) {
    return ::send(m_descriptor.get(), &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           static_cast<ssize_t>(sizeof event);
}

void SessionPeer::up(std::uint32_t heads) {
    stream::Event event;
    event.kind = stream::EventKind::SessionUp;
    event.a = heads;
    event.b = 1;
    send(event);
}

void SessionPeer::down() {
    stream::Event event;
    event.kind = stream::EventKind::SessionUp;
    send(event);
}

stream::Event windowEvent(std::uint32_t id, std::uint32_t head, const QByteArray& title, std::uint32_t flags,
                          std::uint32_t width, std::uint32_t height) {
    stream::Event event;
    event.kind = stream::EventKind::WindowChanged;
    event.window = id;
    event.head = head;
    event.width = width;
    event.height = height;
    event.flags = flags;
    std::copy_n(title.constData(), std::min<std::size_t>(static_cast<std::size_t>(title.size()), event.text.size() - 1),
                event.text.begin());
    return event;
}

void SessionPeer::window(std::uint32_t id, std::uint32_t head, const char* title, std::uint32_t flags,
                         std::uint32_t width, std::uint32_t height) {
    send(windowEvent(id, head, title, flags, width, height));
}

void SessionPeer::gone(std::uint32_t id) {
    stream::Event event;
    event.kind = stream::EventKind::WindowGone;
    event.window = id;
    send(event);
}

std::vector<stream::Command> SessionPeer::commands() {
    std::vector<stream::Command> all;
    stream::Command command;
    while (::recv(m_descriptor.get(), &command, sizeof command, MSG_DONTWAIT) == static_cast<ssize_t>(sizeof command)) {
        all.push_back(command);
    }
    return all;
}

} // namespace bulkhead::test

// SPDX-License-Identifier: Apache-2.0
#include "fake_guest.hpp"

#include <QFile>
#include <QTimer>

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>

namespace bulkhead::test {

namespace stream = session_stream;

ScreenWithoutGuest::ScreenWithoutGuest(int heads) {
    const QString socket = m_folder.filePath("spice");
    m_argv = QStringList{
        "qemu-system-x86_64",
        "-nodefaults",
        "-machine",
        "q35,accel=tcg",
        "-m",
        "64",
        "-display",
        "none",
        "-device",
        QStringLiteral("virtio-vga,max_outputs=%1").arg(heads),
        "-device",
        "qemu-xhci",
        "-device",
        "usb-tablet",
        "-trace",
        "enable=input_event_*",
        "-D",
        m_folder.filePath("trace"),
        "-spice",
        QStringLiteral("unix=on,addr=%1,disable-ticketing=on,image-compression=off,streaming-video=off").arg(socket)};
    restart();
}

void ScreenWithoutGuest::restart() {
    m_qemu.reset();
    QFile::remove(m_folder.filePath("spice"));
    m_qemu = std::make_unique<Child>(m_argv);
}

int ScreenWithoutGuest::connectOnce() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const QByteArray path = m_folder.filePath("spice").toLocal8Bit();
    std::strncpy(address.sun_path, path.constData(), sizeof address.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(fd);
        return -1;
    }
    return fd;
}

QByteArray ScreenWithoutGuest::inputTrace() const {
    QFile file(m_folder.filePath("trace"));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

SessionPeer::SessionPeer(client::Descriptor& theirs) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0) {
        m_descriptor = client::Descriptor(ends[0]);
        theirs = client::Descriptor(ends[1]);
    }
}

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

void FakeDomain::setState(const QString& state, const QString& reason) {
    facts.state = state;
    facts.reason = reason;
    Q_EMIT factsChanged(facts);
}

void FakeDomain::watch() {
    QTimer::singleShot(0, this, [this] { Q_EMIT factsChanged(facts); });
}

void FakeDomain::openDisplay(client::Callback<client::Descriptor> done) {
    QTimer::singleShot(0, this, [this, done = std::move(done)] {
        ++displays;
        const int fd = m_screen == nullptr ? -1 : m_screen->connectOnce();
        if (fd < 0) {
            done(client::failed(client::code::kHostFailure, "nothing listens"));
        } else {
            done(client::Descriptor(fd));
        }
    });
}

void FakeDomain::openSession(client::Callback<client::Descriptor> done) {
    QTimer::singleShot(0, this, [this, done = std::move(done)] {
        if (sessionRefused) {
            done(client::failed(client::code::kGuestFailure, "the guest has no desktop"));
            return;
        }
        client::Descriptor theirs;
        peer = std::make_unique<SessionPeer>(theirs);
        ++sessions;
        done(std::move(theirs));
    });
}

} // namespace bulkhead::test

// SPDX-License-Identifier: Apache-2.0
#include "screen_without_guest.hpp"

#include <QFile>

#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace bulkhead::test {

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

} // namespace bulkhead::test

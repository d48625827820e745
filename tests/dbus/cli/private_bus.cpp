// SPDX-License-Identifier: Apache-2.0
#include "private_bus.hpp"

#include <QFile>

#include <stdexcept>

namespace bulkhead::tests {

PrivateBus::PrivateBus() {
    QFile config(m_dir.filePath("bus.conf"));
    if (!config.open(QIODevice::WriteOnly)) {
        throw std::runtime_error("cannot write the bus's configuration");
    }
    config.write("<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
                 "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n<busconfig><type>session</"
                 "type><listen>unix:path=" +
                 m_dir.filePath("bus").toUtf8() +
                 "</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow send_destination=\"*\"/>"
                 "<allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>\n");
    config.close();
    // Where nobody may raise limits dbus-daemon complains about that; it is none of the tests' business.
    m_daemon.setProcessChannelMode(QProcess::SeparateChannels);
    m_daemon.start("dbus-daemon", {"--config-file=" + config.fileName(), "--nofork", "--nopidfile", "--print-address"});
    if (!m_daemon.waitForReadyRead(10'000)) {
        throw std::runtime_error("dbus-daemon does not start");
    }
    m_address = QString::fromUtf8(m_daemon.readLine()).trimmed();
}

PrivateBus::~PrivateBus() {
    m_daemon.kill();
    m_daemon.waitForFinished();
}

} // namespace bulkhead::tests

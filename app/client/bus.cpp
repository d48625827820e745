// SPDX-License-Identifier: Apache-2.0
#include "client/bus.hpp"

#include "client/bus_types.hpp"

#include <QDBusError>

namespace bulkhead::client {

std::string busDescription() {
    const QString address = qEnvironmentVariable(kBusAddressVariable);
    return address.isEmpty() ? "the system bus" : "the bus at " + address.toStdString();
}

Outcome<QDBusConnection> connectToBus() {
    registerBusTypes();
    const QString address = qEnvironmentVariable(kBusAddressVariable);
    const QString name = QStringLiteral("bulkhead");
    const QDBusConnection connection = address.isEmpty()
                                           ? QDBusConnection::connectToBus(QDBusConnection::SystemBus, name)
                                           : QDBusConnection::connectToBus(address, name);
    if (!connection.isConnected()) {
        return failed(code::kBusUnavailable,
                      "cannot reach " + busDescription() + ": " + connection.lastError().message().toStdString());
    }
    return connection;
}

} // namespace bulkhead::client

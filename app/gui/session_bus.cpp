// SPDX-License-Identifier: Apache-2.0
#include "gui/session_bus.hpp"

#include <QFileInfo>

namespace bulkhead::gui {

QDBusConnection sessionBusIfThere() {
    const QString runtime = qEnvironmentVariable("XDG_RUNTIME_DIR");
    const bool isThere = qEnvironmentVariableIsSet("DBUS_SESSION_BUS_ADDRESS") ||
                         (!runtime.isEmpty() && QFileInfo::exists(runtime + QStringLiteral("/bus")));
    return isThere ? QDBusConnection::sessionBus() : QDBusConnection(QString());
}

} // namespace bulkhead::gui

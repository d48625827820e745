// SPDX-License-Identifier: Apache-2.0
#include "gui/single_instance.hpp"

#include "gui/session_bus.hpp"

#include <QDBusConnection>
#include <QDBusMessage>

namespace bulkhead::gui {
namespace {

const QString kName = QStringLiteral("org.bulkhead.Tray");
const QString kPath = QStringLiteral("/org/bulkhead/Tray");
constexpr int kAnswerMs = 3000;

} // namespace

SingleInstance::SingleInstance(QObject* parent)
    : QObject(parent) {}

bool SingleInstance::claim(bool isQuiet) {
    QDBusConnection session = sessionBusIfThere();
    if (!session.isConnected()) {
        return true;
    }
    session.registerObject(kPath, this, QDBusConnection::ExportScriptableSlots);
    if (session.registerService(kName)) {
        return true;
    }
    if (!isQuiet) {
        // There is no window yet that waiting could freeze, and leaving at once would lose the message.
        session.call(QDBusMessage::createMethodCall(kName, kPath, QStringLiteral("org.bulkhead.Tray1"),
                                                    QStringLiteral("Present")),
                     QDBus::Block, kAnswerMs);
    }
    return false;
}

} // namespace bulkhead::gui

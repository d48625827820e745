// SPDX-License-Identifier: Apache-2.0
#include "viewer/single_instance.hpp"

#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QFileInfo>
#include <QMetaObject>

#include <utility>

namespace bulkhead::viewer {
namespace {

constexpr const char* kObjectPath = "/org/bulkhead1/Viewer";
constexpr uint kDoNotQueue = 4;
constexpr uint kPrimaryOwner = 1;
constexpr uint kAlreadyOwner = 4;

/// Whether there is a bus that would not have to be started first.
bool hasSessionBus() {
    const QString runtime = qEnvironmentVariable("XDG_RUNTIME_DIR");
    return qEnvironmentVariableIsSet("DBUS_SESSION_BUS_ADDRESS") ||
           (!runtime.isEmpty() && QFileInfo::exists(runtime + QStringLiteral("/bus")));
}

} // namespace

QString SingleInstance::busNameFor(const QString& domainId) {
    return QStringLiteral("org.bulkhead1.Viewer.d") + QString(domainId).replace(QLatin1Char('-'), QLatin1Char('_'));
}

SingleInstance::SingleInstance(const QString& domainId, QObject* parent)
    : QObject(parent)
    , m_name(busNameFor(domainId)) {}

void SingleInstance::claim(std::function<void(Outcome)> done) {
    QDBusConnection bus = hasSessionBus() ? QDBusConnection::sessionBus() : QDBusConnection(QString());
    if (!bus.isConnected()) {
        QMetaObject::invokeMethod(
            this, [done = std::move(done)] { done(Outcome::First); }, Qt::QueuedConnection);
        return;
    }
    bus.registerObject(QLatin1String(kObjectPath), this, QDBusConnection::ExportScriptableSlots);
    QDBusMessage request =
        QDBusMessage::createMethodCall(QStringLiteral("org.freedesktop.DBus"), QStringLiteral("/org/freedesktop/DBus"),
                                       QStringLiteral("org.freedesktop.DBus"), QStringLiteral("RequestName"));
    request << m_name << kDoNotQueue;
    auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(request), this);
    connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, bus, done = std::move(done)](auto* finished) {
        finished->deleteLater();
        const QDBusPendingReply<uint> reply = *finished;
        const bool first = reply.isError() || reply.value() == kPrimaryOwner || reply.value() == kAlreadyOwner;
        if (!first) {
            bus.send(QDBusMessage::createMethodCall(m_name, QLatin1String(kObjectPath),
                                                    QStringLiteral("org.bulkhead1.Viewer"), QStringLiteral("Raise")));
        }
        done(first ? Outcome::First : Outcome::Second);
    });
}

} // namespace bulkhead::viewer

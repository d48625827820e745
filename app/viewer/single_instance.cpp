// SPDX-License-Identifier: Apache-2.0
#include "viewer/single_instance.hpp"

#include <QByteArray>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QFileInfo>

#include <algorithm>
#include <cstddef>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace bulkhead::viewer {
namespace {

constexpr const char* kObjectPath = "/org/bulkhead1/Viewer";
constexpr uint kDoNotQueue = 4;

/// Whether there is a bus that would not have to be started first.
bool hasSessionBus() {
    const QString runtime = qEnvironmentVariable("XDG_RUNTIME_DIR");
    return qEnvironmentVariableIsSet("DBUS_SESSION_BUS_ADDRESS") ||
           (!runtime.isEmpty() && QFileInfo::exists(runtime + QStringLiteral("/bus")));
}

/// A name that is no file: it begins with a zero byte.
struct Address {
    sockaddr_un value{};
    socklen_t size = 0;
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&value); }
};

Address addressOf(const QString& domainId) {
    const QByteArray name = "bulkhead-viewer/" + QByteArray::number(::getuid()) + '/' + domainId.toUtf8();
    Address address;
    address.value.sun_family = AF_UNIX;
    const std::size_t length = std::min(static_cast<std::size_t>(name.size()), sizeof address.value.sun_path - 1);
    std::copy_n(name.constData(), length, address.value.sun_path + 1);
    address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    return address;
}

bool isOurs(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::getuid();
}

} // namespace

QString SingleInstance::busNameFor(const QString& domainId) {
    return QStringLiteral("org.bulkhead1.Viewer.d") + QString(domainId).replace(QLatin1Char('-'), QLatin1Char('_'));
}

SingleInstance::SingleInstance(const QString& domainId, QObject* parent)
    : QObject(parent)
    , m_domainId(domainId) {}

SingleInstance::Outcome SingleInstance::claim() {
    if (!listen()) {
        const client::Descriptor first(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const Address address = addressOf(m_domainId);
        if (::connect(first.get(), address.get(), address.size) == 0 && isOurs(first.get())) {
            return Outcome::Second; // to come is to ask
        }
        // Another user has taken the name, to keep us out: then nothing keeps a second viewer of ours away.
    }
    offerOnBus();
    return Outcome::First;
}

bool SingleInstance::listen() {
    m_socket = client::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Address address = addressOf(m_domainId);
    constexpr int kVisitors = 8;
    if (::bind(m_socket.get(), address.get(), address.size) != 0 || ::listen(m_socket.get(), kVisitors) != 0) {
        m_socket.close();
        return false;
    }
    m_visitors = std::make_unique<QSocketNotifier>(m_socket.get(), QSocketNotifier::Read);
    connect(m_visitors.get(), &QSocketNotifier::activated, this, &SingleInstance::answer);
    return true;
}

void SingleInstance::answer() {
    const client::Descriptor visitor(::accept4(m_socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (visitor.isOpen() && isOurs(visitor.get())) {
        Q_EMIT raiseAsked();
    }
}

void SingleInstance::offerOnBus() {
    QDBusConnection bus = hasSessionBus() ? QDBusConnection::sessionBus() : QDBusConnection(QString());
    if (!bus.isConnected()) {
        return;
    }
    bus.registerObject(QLatin1String(kObjectPath), this, QDBusConnection::ExportScriptableSlots);
    QDBusMessage request =
        QDBusMessage::createMethodCall(QStringLiteral("org.freedesktop.DBus"), QStringLiteral("/org/freedesktop/DBus"),
                                       QStringLiteral("org.freedesktop.DBus"), QStringLiteral("RequestName"));
    request << busNameFor(m_domainId) << kDoNotQueue;
    bus.send(request);
}

} // namespace bulkhead::viewer

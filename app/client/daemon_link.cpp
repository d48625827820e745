// SPDX-License-Identifier: Apache-2.0
#include "client/daemon_link.hpp"

#include "client/bus.hpp"

#include <QDBusMessage>
#include <QDBusServiceWatcher>

#include <algorithm>
#include <chrono>

namespace bulkhead::client {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kFirstWait = 2s;
constexpr std::chrono::milliseconds kLongestWait = 30s;

} // namespace

DaemonLink::DaemonLink(QObject* parent)
    : QObject(parent)
    , m_connection(QString()) {
    m_retry.setSingleShot(true);
    m_retry.setInterval(kFirstWait);
    connect(&m_retry, &QTimer::timeout, this, &DaemonLink::retry);
}

DaemonLink::~DaemonLink() {
    m_manager.reset();
    if (!m_connection.name().isEmpty()) {
        QDBusConnection::disconnectFromBus(m_connection.name());
    }
}

void DaemonLink::open() {
    connectBus();
}

void DaemonLink::retry() {
    if (m_state == State::Available) {
        return;
    }
    if (m_connection.isConnected()) {
        ask();
    } else {
        connectBus();
    }
}

void DaemonLink::connectBus() {
    m_manager.reset();
    delete std::exchange(m_watcher, nullptr);
    m_asking = false;
    m_askAgain = false;
    if (!m_connection.name().isEmpty()) {
        // The name of a connection that broke would be given out again, broken.
        QDBusConnection::disconnectFromBus(m_connection.name());
    }
    auto connection = connectToBus();
    if (!connection) {
        lose(connection.error());
        return;
    }
    m_connection = *connection;
    watch();
    m_manager = std::make_unique<Manager>(m_connection);
    ask();
}

void DaemonLink::watch() {
    const QString service = QLatin1String(kServiceName);
    m_watcher = new QDBusServiceWatcher(service, m_connection, QDBusServiceWatcher::WatchForOwnerChange, this);
    connect(m_watcher, &QDBusServiceWatcher::serviceOwnerChanged, this,
            [this](const QString& /*service*/, const QString& /*before*/, const QString& now) {
                if (now.isEmpty()) {
                    lose({code::kDaemonNotRunning, "bulkheadd is not running"});
                } else {
                    ask();
                }
            });
    m_connection.connect(QString(), QStringLiteral("/org/freedesktop/DBus/Local"),
                         QStringLiteral("org.freedesktop.DBus.Local"), QStringLiteral("Disconnected"), this,
                         SLOT(onDisconnected()));
    m_connection.connect(service, QLatin1String(kManagerPath), QStringLiteral("org.bulkhead1.Manager"),
                         QStringLiteral("DomainsChanged"), this, SIGNAL(domainsChanged()));
    m_connection.connect(service, QLatin1String(kManagerPath), QStringLiteral("org.bulkhead1.Manager"),
                         QStringLiteral("SnapshotsChanged"), this, SLOT(onSnapshotsChanged(QDBusObjectPath)));
    m_connection.connect(service, QString(), QStringLiteral("org.bulkhead1.Domain"), QStringLiteral("StateChanged"),
                         this, SLOT(onDomainStateChanged(QString, QDBusMessage)));
}

void DaemonLink::ask() {
    if (m_asking) {
        m_askAgain = true;
        return;
    }
    m_asking = true;
    m_manager->describe([this](Outcome<ManagerInfo> info) {
        m_asking = false;
        if (std::exchange(m_askAgain, false)) {
            ask(); // it came or went meanwhile: this answer may be of before
            return;
        }
        if (!info) {
            lose(info.error());
            return;
        }
        m_info = *info;
        m_retry.stop();
        m_retry.setInterval(kFirstWait);
        set(State::Available);
    });
}

void DaemonLink::lose(Failure failure) {
    const bool isNews = m_state != State::Unavailable || !(failure == m_failure);
    m_failure = std::move(failure);
    m_info = {};
    m_retry.start();
    m_retry.setInterval(std::min(m_retry.intervalAsDuration() * 2, kLongestWait));
    if (isNews) {
        m_state = State::Unavailable;
        Q_EMIT stateChanged();
    }
}

void DaemonLink::set(State state) {
    // Available again counts as news: a daemon that was replaced has new things to tell.
    m_state = state;
    m_failure = {};
    Q_EMIT stateChanged();
}

void DaemonLink::onDisconnected() {
    lose({code::kBusUnavailable, busDescription() + " closed the connection"});
}

void DaemonLink::onSnapshotsChanged(const QDBusObjectPath& path) {
    Q_EMIT snapshotsChanged(path.path());
}

void DaemonLink::onDomainStateChanged(const QString& state, const QDBusMessage& message) {
    Q_EMIT domainStateChanged(message.path(), state);
}

} // namespace bulkhead::client

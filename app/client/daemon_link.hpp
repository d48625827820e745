// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/info.hpp"
#include "client/manager.hpp"

#include <QDBusConnection>
#include <QDBusObjectPath>
#include <QObject>
#include <QTimer>

#include <memory>

class QDBusMessage;
class QDBusServiceWatcher;

namespace bulkhead::client {

/// Keeps a long-lived program connected to the daemon: notices when bus or daemon go and come, and tells of what they
/// signal. It never gives up; between tries it waits 2 s, later up to 30 s, but an appearing daemon is met at once.
/// One thread, needs an event loop.
class DaemonLink : public QObject {
    Q_OBJECT

public:
    enum class State { Connecting, Available, Unavailable };

    explicit DaemonLink(QObject* parent = nullptr);
    ~DaemonLink() override;

    /// Begins to connect. Call once.
    void open();
    /// Tries now, whatever the timer says.
    void retry();

    [[nodiscard]] State state() const { return m_state; }
    [[nodiscard]] bool isAvailable() const { return m_state == State::Available; }
    /// Why, while Unavailable.
    [[nodiscard]] const Failure& failure() const { return m_failure; }
    /// What the daemon said of itself, while Available.
    [[nodiscard]] const ManagerInfo& info() const { return m_info; }
    [[nodiscard]] const QDBusConnection& connection() const { return m_connection; }
    /// Never null between Available and the next Unavailable; calls made on it end with it, unanswered.
    [[nodiscard]] Manager* manager() const { return m_manager.get(); }

Q_SIGNALS:
    void stateChanged();
    /// Some domain came or went.
    void domainsChanged();
    /// Snapshots of a domain, possibly somebody else's, came, went or changed, or it stands somewhere else among them.
    void snapshotsChanged(const QString& path);
    /// A domain, possibly somebody else's, changed its state.
    void domainStateChanged(const QString& path, const QString& state);

private Q_SLOTS:
    void onDisconnected();
    void onSnapshotsChanged(const QDBusObjectPath& path);
    void onDomainStateChanged(const QString& state, const QDBusMessage& message);

private:
    void connectBus();
    void watch();
    void ask();
    void lose(Failure failure);
    void set(State state);

    QDBusConnection m_connection;
    std::unique_ptr<Manager> m_manager;
    QDBusServiceWatcher* m_watcher = nullptr;
    QTimer m_retry;
    State m_state = State::Connecting;
    Failure m_failure;
    ManagerInfo m_info;
    bool m_asking = false;
    bool m_askAgain = false;
};

} // namespace bulkhead::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "viewer/domain_gate.hpp"

#include "client/domain.hpp"

#include <QDBusConnection>
#include <QDBusObjectPath>
#include <QTimer>

namespace bulkhead::viewer {

/// A domain of the daemon, over D-Bus.
class BusGate : public DomainGate {
    Q_OBJECT

public:
    BusGate(const QDBusConnection& connection, const QDBusObjectPath& path, QObject* parent = nullptr);

    void watch() override;
    void openDisplay(client::Callback<client::Descriptor> done) override;
    void openSession(client::Callback<client::Descriptor> done) override;

private Q_SLOTS:
    void refresh();

private:
    void take(client::Outcome<client::DomainInfo> info);

    QDBusConnection m_connection;
    QString m_path;
    client::Domain m_domain;
    QTimer m_look;
    int m_missing = 0; ///< answers in a row that there is no such domain
    bool m_asking = false;
    bool m_askAgain = false;
};

} // namespace bulkhead::viewer

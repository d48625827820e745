// SPDX-License-Identifier: Apache-2.0
#include "viewer/bus_gate.hpp"

#include "client/bus.hpp"

#include <QDBusServiceWatcher>

#include <memory>
#include <utility>

namespace bulkhead::viewer {
namespace {

const QString kInterface = QStringLiteral("org.bulkhead1.Domain"); // NOLINT(cert-err58-cpp): no allocation, no throw
/// A bus drops signals for a slow reader: look now and then.
constexpr std::chrono::milliseconds kLook{3000};

constexpr int kMissingOften = 4;
constexpr std::chrono::milliseconds kMissingLook{1000};

/// A daemon that has no such object is one whose domain is gone, or that speaks another contract: the same to us.
bool isMissing(const client::Failure& failure) {
    return failure.code == client::code::kNotFound || failure.code == client::code::kVersionMismatch;
}

/// The descriptor out of its shared box.
client::Callback<std::shared_ptr<client::Descriptor>> handOver(client::Callback<client::Descriptor> done) {
    return [done = std::move(done)](client::Outcome<std::shared_ptr<client::Descriptor>> boxed) {
        if (boxed) {
            done(std::move(**boxed));
        } else {
            done(tl::unexpected<client::Failure>(boxed.error()));
        }
    };
}

} // namespace

BusGate::BusGate(const QDBusConnection& connection, const QDBusObjectPath& path, QObject* parent)
    : DomainGate(parent)
    , m_connection(connection)
    , m_path(path.path())
    , m_domain(connection, path) {}

void BusGate::watch() {
    const QString service = QLatin1String(client::kServiceName);
    auto* watcher = new QDBusServiceWatcher(service, m_connection, QDBusServiceWatcher::WatchForOwnerChange, this);
    connect(watcher, &QDBusServiceWatcher::serviceUnregistered, this,
            [this] { Q_EMIT unreachable(tr("Bulkhead's daemon is not running")); });
    connect(watcher, &QDBusServiceWatcher::serviceRegistered, this, &BusGate::refresh);
    m_connection.connect(service, m_path, kInterface, QStringLiteral("StateChanged"), this, SLOT(refresh()));
    connect(&m_look, &QTimer::timeout, this, &BusGate::refresh);
    m_look.start(kLook);
    refresh();
}

void BusGate::refresh() {
    if (std::exchange(m_asking, true)) {
        m_askAgain = true;
        return;
    }
    m_domain.describe([this](client::Outcome<client::DomainInfo> info) {
        m_asking = false;
        take(std::move(info));
        if (std::exchange(m_askAgain, false)) {
            refresh();
        }
    });
}

void BusGate::take(client::Outcome<client::DomainInfo> info) {
    if (info) {
        m_missing = 0;
        Q_EMIT factsChanged(
            {info->id, info->name, info->label, info->state, info->reason, info->audio == QLatin1String("out")});
    } else if (isMissing(info.error())) {
        // A daemon that has just started may not have all of its objects there.
        if (++m_missing >= kMissingOften) {
            m_look.stop();
            Q_EMIT removed();
        } else {
            QTimer::singleShot(kMissingLook, this, &BusGate::refresh);
        }
    } else {
        Q_EMIT unreachable(QString::fromStdString(info.error().message));
    }
}

void BusGate::openDisplay(client::Callback<client::Descriptor> done) {
    m_domain.openDisplay(handOver(std::move(done)));
}

void BusGate::openSession(client::Callback<client::Descriptor> done) {
    m_domain.openSession(handOver(std::move(done)));
}

} // namespace bulkhead::viewer

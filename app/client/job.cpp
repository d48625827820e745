// SPDX-License-Identifier: Apache-2.0
#include "client/job.hpp"

#include "client/bus.hpp"
#include "client/info.hpp"
#include "client/pending_reply.hpp"
#include "job_proxy.h"

#include <QDBusServiceWatcher>
#include <QTimer>

#include <chrono>

namespace bulkhead::client {
namespace {

/// A phase may change without a progress signal, and a bus may lose one when it drops a slow reader: look now and then.
constexpr std::chrono::milliseconds kLook{1000};

} // namespace

JobWatch::JobWatch(const QDBusConnection& connection, const QDBusObjectPath& path, ProgressCallback progress,
                   Callback<QVariantMap> done)
    : m_proxy(std::make_unique<JobProxy>(QLatin1String(kServiceName), path.path(), connection))
    , m_progress(std::move(progress))
    , m_done(std::move(done)) {
    m_proxy->setTimeout(kNoTimeout);
    QDBusConnection bus = connection;
    connect(m_proxy.get(), &JobProxy::Finished, this, &JobWatch::onFinished);
    connect(m_proxy.get(), &JobProxy::Progress, this, &JobWatch::onProgress);
    auto* watcher =
        new QDBusServiceWatcher(QLatin1String(kServiceName), bus, QDBusServiceWatcher::WatchForUnregistration, this);
    connect(watcher, &QDBusServiceWatcher::serviceUnregistered, this, &JobWatch::onDaemonGone);
    bus.connect(QString(), QStringLiteral("/org/freedesktop/DBus/Local"), QStringLiteral("org.freedesktop.DBus.Local"),
                QStringLiteral("Disconnected"), this, SLOT(onDaemonGone()));
    auto* timer = new QTimer(this);
    connect(timer, &QTimer::timeout, this, &JobWatch::refresh);
    timer->start(kLook);
    refresh();
}

JobWatch::~JobWatch() = default;

void JobWatch::cancel() {
    m_proxy->Cancel();
}

void JobWatch::onFinished() {
    refresh();
}

void JobWatch::onProgress() {
    refresh();
}

void JobWatch::onDaemonGone() {
    end(failed(code::kDaemonLost, "bulkheadd went away before the work was done"));
}

void JobWatch::refresh() {
    if (m_asking) {
        m_askAgain = true; // the answer under way may have left before the end
        return;
    }
    m_asking = true;
    whenDone<QVariantMap>(
        m_proxy->Describe(), this,
        [this](Outcome<QVariantMap> description) {
            m_asking = false;
            if (!description) {
                end(tl::unexpected<Failure>(description.error()));
                return;
            }
            take(*description);
            if (std::exchange(m_askAgain, false) && m_done) {
                refresh();
            }
        },
        [](const auto& reply) { return QVariantMap(reply.value()); });
}

void JobWatch::take(const QVariantMap& description) {
    const QString state = description.value(QStringLiteral("state")).toString();
    if (state == QLatin1String("running")) {
        if (m_progress && m_done) {
            m_progress({description.value(QStringLiteral("phase")).toString(),
                        description.value(QStringLiteral("fraction"), -1.0).toDouble()});
        }
        return;
    }
    if (state == QLatin1String("succeeded")) {
        end(nestedMap(description.value(QStringLiteral("result"))));
    } else if (state == QLatin1String("cancelled")) {
        end(failed(code::kCancelled, "cancelled"));
    } else if (state == QLatin1String("failed")) {
        end(tl::unexpected<Failure>(
            failureFrom(description.value(QStringLiteral("error")).toString().toStdString(),
                        description.value(QStringLiteral("message")).toString().toStdString())));
    } else {
        end(failed(code::kVersionMismatch,
                   "this bulkheadd is of another version: a job in state '" + state.toStdString() + "'"));
    }
}

void JobWatch::end(Outcome<QVariantMap> outcome) {
    if (const auto done = std::exchange(m_done, nullptr)) {
        done(std::move(outcome));
    }
}

} // namespace bulkhead::client

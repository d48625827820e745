// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/failure.hpp"

#include <QDBusConnection>
#include <QDBusObjectPath>
#include <QObject>
#include <QString>
#include <QVariantMap>

#include <functional>
#include <memory>

class JobProxy;

namespace bulkhead::client {

struct JobProgress {
    QString phase;        ///< short text for people; foreign
    double fraction = -1; ///< 0 to 1; negative: not known
};

/// Follows one job of the daemon to its end. Subscribes first and asks then, so that an end is never missed, however
/// early it comes; also notices when the daemon or the bus goes away. One thread, needs an event loop. Destroying it
/// stops the watching, not the job.
class JobWatch : public QObject {
    Q_OBJECT

public:
    using ProgressCallback = std::function<void(const JobProgress&)>;

    JobWatch(const QDBusConnection& connection, const QDBusObjectPath& path, ProgressCallback progress,
             Callback<QVariantMap> done);
    ~JobWatch() override;

    /// Asks the daemon to stop and undo. The end still comes through `done`, as a Failure with code Cancelled (or as a
    /// success that was quicker).
    void cancel();

private Q_SLOTS:
    void onFinished();
    void onProgress();
    void onDaemonGone();

private:
    void refresh();
    void take(const QVariantMap& description);
    void end(Outcome<QVariantMap> outcome);

    std::unique_ptr<JobProxy> m_proxy;
    ProgressCallback m_progress;
    Callback<QVariantMap> m_done;
    bool m_asking = false;
    bool m_askAgain = false;
};

} // namespace bulkhead::client

// SPDX-License-Identifier: Apache-2.0
#include "gui/models/job_model.hpp"

#include "gui/wording.hpp"

#include <algorithm>

namespace bulkhead::gui {

JobModel::JobModel(client::DaemonLink& link, QObject* parent)
    : QAbstractListModel(parent)
    , m_link(link) {}

JobModel::~JobModel() = default;

int JobModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_jobs.size());
}

QVariant JobModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return {};
    }
    const Job& job = *m_jobs[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return job.title;
    case Qt::AccessibleTextRole:
        return job.progress.phase.isEmpty() ? job.title : tr("%1: %2").arg(job.title, shown(job.progress.phase, 80));
    case PhaseRole:
        return job.isCancelling ? tr("cancelling") : shown(job.progress.phase, 80);
    case FractionRole:
        return job.isCancelling ? -1.0 : job.progress.fraction;
    case IsCancellingRole:
        return job.isCancelling;
    default:
        return {};
    }
}

void JobModel::follow(const QDBusObjectPath& path, const QString& title, client::Callback<QVariantMap> done) {
    auto job = std::make_shared<Job>();
    job->title = title;
    const int last = rowCount();
    beginInsertRows({}, last, last);
    m_jobs.push_back(job);
    endInsertRows();
    const std::weak_ptr<Job> weak = job;
    auto onProgress = [this, weak](const client::JobProgress& progress) {
        if (const auto known = weak.lock()) {
            known->progress = progress;
            const QModelIndex at = index(numberOf(known.get()));
            Q_EMIT dataChanged(at, at);
        }
    };
    auto onEnd = [this, weak, done = std::move(done)](client::Outcome<QVariantMap> outcome) {
        if (const auto known = weak.lock()) {
            const int number = numberOf(known.get());
            beginRemoveRows({}, number, number);
            m_jobs.erase(m_jobs.begin() + number);
            endRemoveRows();
            known->watch->deleteLater(); // it is on the stack
        }
        done(std::move(outcome));
    };
    job->watch = new client::JobWatch(m_link.connection(), path, onProgress, onEnd);
    job->watch->setParent(this);
}

void JobModel::cancel(const QModelIndex& index) {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return;
    }
    Job& job = *m_jobs[static_cast<std::size_t>(index.row())];
    if (!job.isCancelling) {
        job.isCancelling = true;
        job.watch->cancel();
        Q_EMIT dataChanged(index, index);
    }
}

int JobModel::numberOf(const Job* job) const {
    const auto found = std::find_if(m_jobs.begin(), m_jobs.end(), [&](const auto& one) { return one.get() == job; });
    return static_cast<int>(found - m_jobs.begin());
}

} // namespace bulkhead::gui

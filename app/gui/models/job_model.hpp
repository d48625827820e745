// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/daemon_link.hpp"
#include "client/job.hpp"

#include <QAbstractListModel>
#include <QString>

#include <memory>
#include <vector>

namespace bulkhead::gui {

/// The jobs that this program began and that run. A job leaves when it ends, however it does; who began it is told.
class JobModel : public QAbstractListModel {
    Q_OBJECT

public:
    enum Role {
        PhaseRole = Qt::UserRole + 1, ///< QString, safe to show
        FractionRole,                 ///< double, 0 to 1; negative: not known
        IsCancellingRole,             ///< bool
    };

    explicit JobModel(client::DaemonLink& link, QObject* parent = nullptr);
    ~JobModel() override;

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    /// Shows the job as `title` until it ends; then calls `done`.
    void follow(const QDBusObjectPath& path, const QString& title, client::Callback<QVariantMap> done);
    /// Asks the daemon to cancel the job of that row.
    void cancel(const QModelIndex& index);

private:
    struct Job {
        QString title;
        client::JobProgress progress;
        bool isCancelling = false;
        client::JobWatch* watch = nullptr; ///< owned by the model's QObject tree
    };
    [[nodiscard]] int numberOf(const Job* job) const;

    client::DaemonLink& m_link;
    std::vector<std::shared_ptr<Job>> m_jobs; ///< shared with the callbacks of their watches
};

} // namespace bulkhead::gui

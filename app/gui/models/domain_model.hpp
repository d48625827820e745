// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/daemon_link.hpp"
#include "client/domain.hpp"
#include "client/info.hpp"

#include <QAbstractListModel>
#include <QString>
#include <QStringList>

#include <memory>
#include <optional>
#include <vector>

namespace bulkhead::gui {

/// What this program has asked for a domain and the daemon has not finished.
enum class Task {
    None,
    Starting,
    Stopping,
    ForceStopping,
    Removing,
    Snapshotting,
    Suspending,
    Pausing,
    Unpausing,
    Reverting,
    Forking
};

/// The user's domains as the daemon describes them: app and standalone domains by name, then disposables. It follows
/// the daemon's signals; rows keep their index objects while their domain lives, so that a selection does. State is
/// always the daemon's word, never what was asked for. Texts are foreign: show them through shown().
class DomainModel : public QAbstractListModel {
    Q_OBJECT

public:
    enum Role {
        PathRole = Qt::UserRole + 1, ///< QString, the key of a row
        LabelRole,                   ///< QString, name of its label
        StateTextRole,               ///< QString, state or task in words; "restart to update", too
        IsRunningRole,               ///< bool
        IsFailedRole,                ///< bool
        IsPausedRole,                ///< bool
        IsSuspendedRole,             ///< bool: its next start goes on where it was
        IsDisposableRole,            ///< bool
        BeginsDisposablesRole,       ///< bool: the first disposable of the list
        MemoryRole,                  ///< double, 0 to 1 used; negative: not known
        DiskRole,                    ///< the same, of the fuller of its disks
    };

    struct Row {
        client::DomainInfo info;
        std::optional<client::GuestStatus> status;
        Task task = Task::None;
        QString problem;                       ///< of the last act on it from here, for people; safe to show
        QString note;                          ///< what came of it, when that is worth telling; safe to show
        std::unique_ptr<client::Domain> proxy; ///< made when first needed
        bool isAsking = false;                 ///< for its status
    };

    explicit DomainModel(client::DaemonLink& link, QObject* parent = nullptr);
    ~DomainModel() override;

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;

    /// Whether the daemon has answered at least once since it was reached.
    [[nodiscard]] bool isLoaded() const { return m_isLoaded; }
    [[nodiscard]] const Row* find(const QString& path) const;
    [[nodiscard]] const Row& row(int number) const { return *m_rows[static_cast<std::size_t>(number)]; }
    [[nodiscard]] QModelIndex indexOf(const QString& path) const;
    [[nodiscard]] bool hasName(const QString& name) const;
    /// For calls on a domain; null when it is gone. Lives as long as its row.
    [[nodiscard]] client::Domain* proxy(const QString& path);

    void setTask(const QString& path, Task task);
    void setProblem(const QString& path, const QString& problem);
    void setNote(const QString& path, const QString& note);
    /// What the daemon has just said of one domain, without listing all again.
    void learn(const QString& path, client::DomainInfo info);
    /// Asks these domains for their numbers, those that run and have answered before.
    void pollStatus(const QStringList& paths);
    /// Lists again.
    void refresh();

Q_SIGNALS:
    void loaded();
    void listFailed(const client::Failure& failure);
    /// Anything about a row that a page may show.
    void domainChanged(const QString& path);
    void domainGone(const QString& path);

private:
    void onLinkChanged();
    void onStateChanged(const QString& path, const QString& state);
    void take(QList<client::DomainInfo> domains);
    void update(int number, const client::DomainInfo& info);
    void removeAt(int number);
    void changed(int number);
    [[nodiscard]] int numberOf(const QString& path) const;
    [[nodiscard]] QString accessibleText(const Row& row) const;

    client::DaemonLink& m_link;
    std::vector<std::unique_ptr<Row>> m_rows;
    bool m_isLoaded = false;
    bool m_isAsking = false;
    bool m_askAgain = false;
};

/// It does not run, and its next start goes on where it was.
bool isSuspended(const client::DomainInfo& info);
/// It stands still, and Unpause lets it go on.
bool isPaused(const client::DomainInfo& info);
/// The used share of memory, and of the fuller disk; negative when not known.
double memoryShare(const DomainModel::Row& row);
double diskShare(const DomainModel::Row& row);

} // namespace bulkhead::gui

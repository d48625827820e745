// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/daemon_link.hpp"
#include "client/domain.hpp"
#include "client/manager.hpp"

#include <QObject>
#include <QString>

#include <functional>

namespace bulkhead::gui {

class DomainModel;
class JobModel;
class TemplateModel;
enum class Task;

/// What can be done with domains. Each verb returns at once; its job stands in the JobModel; a failure on a domain
/// becomes that row's problem, any other is told by failed(). A verb on a domain that is busy with another is ignored,
/// but Force stop also passes a Start or a Stop that takes too long.
class Verbs : public QObject {
    Q_OBJECT

public:
    Verbs(client::DaemonLink& link, DomainModel& domains, JobModel& jobs, TemplateModel& templates,
          QObject* parent = nullptr);

    void start(const QString& path);
    /// Starts it unless it runs, or lets it go on where it is paused, then calls `then`; not called when it does not
    /// come up.
    void withRunning(const QString& path, std::function<void()> then);
    void stop(const QString& path);
    void forceStop(const QString& path);
    /// With the memory when it runs.
    void takeSnapshot(const QString& path);
    void suspend(const QString& path);
    /// It stands still and keeps its memory, until unpause().
    void pause(const QString& path);
    void unpause(const QString& path, std::function<void()> then = nullptr);
    void revert(const QString& path, const QString& snapshot, const client::RevertOptions& options);
    /// A new domain that begins at that snapshot of `path`; an empty `snapshot`: as it is now. `done` gets its path, or
    /// what is wrong; that is not told anywhere else.
    void fork(const QString& path, const QString& snapshot, const QString& name, const client::ForkOptions& options,
              client::Callback<QString> done);
    /// Of the domain `path`, the newest first.
    void listSnapshots(const QString& path, client::Callback<QList<client::SnapshotInfo>> done);
    /// Deletes the domain with its home; powers it off first when it runs.
    void remove(const QString& path);
    /// Removed ones that can be brought back, the last one first.
    void listDeleted(client::Callback<QList<client::DeletedInfo>> done);
    /// An empty `otherName`: under the name that it had. `done` gets its path.
    void restore(const QString& id, const QString& otherName, client::Callback<QString> done);
    void create(const QString& name, const client::CreateOptions& options, client::Callback<QString> done);
    /// Changes its definition; the model has it when `done` is called.
    void setDefinition(const QString& path, const QVariantMap& changes, client::Callback<client::DomainInfo> done);
    /// Of the preferred template.
    void startDisposable();
    /// The result is that of a Doctor job.
    void examine(bool refresh, client::Callback<QVariantMap> done);
    void buildTemplate(const QString& name);

    [[nodiscard]] bool isStartingDisposable() const { return m_disposables > 0; }
    [[nodiscard]] bool isExamining() const { return m_isExamining; }

Q_SIGNALS:
    void disposableStarted(const QString& path);
    /// `what` was tried: "Start a disposable".
    void failed(const QString& what, const client::Failure& failure);
    /// Something that has come of a verb and is to be told, safe to show; what is about a row is its note instead.
    void told(const QString& note);
    /// isStartingDisposable() or isExamining().
    void busyChanged();

private:
    using Begin = std::function<void(client::Domain&, client::Callback<QDBusObjectPath>)>;
    using Then = std::function<void(const QVariantMap& result)>;
    void act(const QString& path, Task task, const QString& title, const Begin& begin, Then then = nullptr);
    void endTask(const QString& path, Task task, const client::Failure* failure);
    template <class T> bool refuseWithoutDaemon(const client::Callback<T>& done) const;

    client::DaemonLink& m_link;
    DomainModel& m_domains;
    JobModel& m_jobs;
    TemplateModel& m_templates;
    int m_disposables = 0;
    bool m_isExamining = false;
};

} // namespace bulkhead::gui

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/domain.hpp"
#include "client/info.hpp"

#include <QDBusConnection>
#include <QDBusObjectPath>

#include <memory>

class ManagerProxy;

namespace bulkhead::client {

/// What to make; an empty member leaves the choice to the daemon.
struct CreateOptions {
    QString templateName;
    QString size;
    QString label;
    QString egress;
    QString homeSize;
    QStringList tags;
};

struct DisposableOptions {
    QString templateName;
    QString size;
    QString from = {};       ///< a snapshot's id: it begins there, of its template and size
    bool isDiskOnly = false; ///< with from: without its memory
    bool isKept = false;     ///< it is suspended when its program has ended, not removed
};

/// What Manager::buildTemplate() is for; see the contract.
struct BuildOptions {
    bool force = false;
    bool update = false;
    QStringList packages;
};

struct RevertOptions {
    bool keepsPresent = true; ///< takes a snapshot of what is there now first
    bool isDiskOnly = false;  ///< without the memory: the domain boots
};

/// org.bulkhead1.Manager. Every method returns at once and calls back from the event loop. Calls that begin long work
/// give the path of a job (see JobWatch). One thread.
class Manager {
public:
    explicit Manager(const QDBusConnection& connection);
    ~Manager();
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    void describe(Callback<ManagerInfo> done);
    /// `all`: everybody's, for root.
    void listDomains(bool all, Callback<QList<DomainInfo>> done);
    void findDomain(const QString& name, Callback<QDBusObjectPath> done);
    void createDomain(const QString& name, const CreateOptions& options, Callback<QDBusObjectPath> done);
    void startDisposable(const DisposableOptions& options, Callback<QDBusObjectPath> done);
    /// Removed ones that can be restored, the last one first. `all`: everybody's, for root.
    void listDeleted(bool all, Callback<QList<DeletedInfo>> done);
    /// `which`: a name or an id. An empty `otherName`: under the name that it had.
    void restoreDomain(const QString& which, const QString& otherName, Callback<QDBusObjectPath> done);
    /// Removes what can be restored for good.
    void purgeDomain(const QString& which, Callback<QDBusObjectPath> done);
    /// The oldest first.
    void listSnapshots(Callback<QList<SnapshotInfo>> done);
    /// `changes`: pinned, label. Gives what it is then.
    void setSnapshot(const QString& id, const QVariantMap& changes, Callback<SnapshotInfo> done);
    void removeSnapshot(const QString& id, bool isCascade, Callback<QDBusObjectPath> done);
    /// The job's result: domain (its path), kept (the snapshot of what was there before), running, note.
    void revert(const QString& id, const RevertOptions& options, Callback<QDBusObjectPath> done);
    /// The job's result: domain (its path).
    void forkSnapshot(const QString& id, const QString& name, const ForkOptions& options,
                      Callback<QDBusObjectPath> done);
    /// Starts a disposable that looks into two snapshots; see the contract. The job's result: domain (its path).
    void inspect(const QString& a, const QString& b, Callback<QDBusObjectPath> done);
    void listTemplates(Callback<QList<TemplateInfo>> done);
    void describeTemplate(const QString& name, Callback<TemplateInfo> done);
    /// Root only. An empty `size`: the default one.
    void makeWarmImage(const QString& name, const QString& size, bool force, Callback<QDBusObjectPath> done);
    void buildTemplate(const QString& name, const BuildOptions& options, Callback<QDBusObjectPath> done);
    void doctor(bool refresh, Callback<QDBusObjectPath> done);

private:
    std::unique_ptr<ManagerProxy> m_proxy;
};

} // namespace bulkhead::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/bus_types.hpp"
#include "client/descriptor.hpp"
#include "dbus/interfaces/exec_stream.hpp"

#include <QDBusConnection>
#include <QDBusContext>
#include <QDBusObjectPath>
#include <QDBusUnixFileDescriptor>
#include <QObject>
#include <QStringList>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

/// A double of org.bulkhead1 for the tests of its clients: the contract's XML with answers that a test sets.
/// In the global namespace, since the generated adaptors name these types without one.

/// The other ends of what Exec hands out, played by the test in a thread of its own.
struct ExecEnds {
    QStringList argv;
    QVariantMap options;
    bulkhead::client::Descriptor control;
    bulkhead::client::Descriptor input;
    bulkhead::client::Descriptor output;
    bulkhead::client::Descriptor error;

    void event(bulkhead::exec_stream::ClientEventKind kind, std::uint32_t a = 0, std::int32_t b = 0) const;
    void started() const { event(bulkhead::exec_stream::ClientEventKind::Started, 42); }
    void exited(std::uint32_t status) const { event(bulkhead::exec_stream::ClientEventKind::Exited, status); }
    /// Waits for the next record of the client; none when it closed control.
    [[nodiscard]] std::optional<bulkhead::exec_stream::ClientRequest> request() const;
    /// Writes everything, waiting as needed; false when the client closed the descriptor.
    static bool write(const bulkhead::client::Descriptor& to, const QByteArray& bytes);
    /// Some bytes of input; empty at its end.
    [[nodiscard]] QByteArray read() const;
    void closeOutputs() {
        output.close();
        error.close();
    }
};
using ExecScript = std::function<void(ExecEnds&)>;

class FakeJob : public QObject, protected QDBusContext {
    Q_OBJECT
public:
    QVariantMap description;
    int asked = 0; ///< how often Describe came
    bool cancelled = false;
    void finish(const QString& state);
public slots:
    QVariantMap Describe() {
        ++asked;
        return description;
    }
    void Cancel();
signals:
    void Progress(double fraction);
    void Finished(const QString& state);
};

class FakeBulkhead;

class FakeDomain : public QObject, protected QDBusContext {
    Q_OBJECT
public:
    explicit FakeDomain(FakeBulkhead& owner)
        : m_owner(owner) {}
    QVariantMap description;
    QVariantMap lastOptions;
    QVariantMap lastChanges; ///< of SetDefinition
    QVariantMap status;
    std::vector<bulkhead::client::Descriptor> sessions; ///< SOCK_SEQPACKET
    std::vector<bulkhead::client::Descriptor> displays; ///< SOCK_STREAM
    QString calls;                                      ///< names of the calls that came, for order
public slots:
    QVariantMap Describe() { return description; }
    /// Takes the changes into the description; one that runs has another size from its next start on.
    QVariantMap SetDefinition(const QVariantMap& changes);
    QDBusObjectPath Start(const QVariantMap& options);
    QDBusObjectPath Stop(const QVariantMap& options);
    QDBusObjectPath Remove(const QVariantMap& options);
    /// Snapshot, Suspend, Pause, Unpause and Contain give a prepared job, or one whose result is
    /// FakeBulkhead::jobResult.
    QDBusObjectPath Snapshot(const QVariantMap& options);
    QDBusObjectPath Suspend(const QVariantMap& options);
    QDBusObjectPath Pause(const QVariantMap& options);
    QDBusObjectPath Contain(const QVariantMap& options);
    QDBusObjectPath Unpause(const QVariantMap& options);
    QDBusObjectPath Fork(const QString& name, const QVariantMap& options);
    qulonglong Exec(const QStringList& argv, const QVariantMap& options, QDBusUnixFileDescriptor& control,
                    QDBusUnixFileDescriptor& input, QDBusUnixFileDescriptor& output, QDBusUnixFileDescriptor& error);
    QVariantMap Status();
    /// The other ends are in `sessions` and `displays`; the test plays what is behind them.
    QDBusUnixFileDescriptor OpenSession(const QVariantMap& options);
    QDBusUnixFileDescriptor Screenshot(const QVariantMap& options, QString& type);
    QDBusUnixFileDescriptor OpenDisplay(const QVariantMap& options);
signals:
    void StateChanged(const QString& state);

private:
    FakeBulkhead& m_owner;
};

class FakeManager : public QObject, protected QDBusContext {
    Q_OBJECT
public:
    explicit FakeManager(FakeBulkhead& owner)
        : m_owner(owner) {}
public slots:
    QVariantMap Describe();
    bulkhead::client::ObjectDescriptions ListDomains(const QVariantMap& options);
    QDBusObjectPath FindDomain(const QString& name);
    QDBusObjectPath CreateDomain(const QString& name, const QVariantMap& options);
    QDBusObjectPath StartDisposable(const QVariantMap& options);
    bulkhead::client::VariantMapList ListDeleted(const QVariantMap& options);
    QDBusObjectPath RestoreDomain(const QString& which, const QVariantMap& options);
    QDBusObjectPath PurgeDomain(const QString& which, const QVariantMap& options);
    bulkhead::client::VariantMapList ListSnapshots();
    QVariantMap SetSnapshot(const QString& id, const QVariantMap& changes);
    QDBusObjectPath RemoveSnapshot(const QString& id, const QVariantMap& options);
    QDBusObjectPath Revert(const QString& id, const QVariantMap& options);
    QDBusObjectPath ForkSnapshot(const QString& id, const QString& name, const QVariantMap& options);
    QDBusObjectPath Inspect(const QString& a, const QString& b, const QVariantMap& options);
    bulkhead::client::VariantMapList ListTemplates();
    QVariantMap DescribeTemplate(const QString& name);
    QDBusObjectPath BuildTemplate(const QString& name, const QVariantMap& options);
    QDBusObjectPath MakeWarmImage(const QString& name, const QVariantMap& options);
    QDBusObjectPath Doctor(const QVariantMap& options);
signals:
    void DomainsChanged();
    void SnapshotsChanged(const QDBusObjectPath& domain);

private:
    FakeBulkhead& m_owner;
};

/// The whole service. Must live in the thread of an event loop.
class FakeBulkhead {
public:
    explicit FakeBulkhead(const QString& busAddress);
    ~FakeBulkhead();

    FakeDomain& addDomain(const QString& name, const QString& kind = "app");
    FakeDomain* domain(const QString& name);
    /// Of its object: a path has no dashes.
    static QString pathOf(const QString& name);
    /// Takes it away and tells of that.
    void removeDomain(const QString& name);
    /// Tells that domains came or went.
    void announce() { emit m_manager->DomainsChanged(); }
    /// Adds a snapshot of a domain, which need not be there, and tells of that. What the description names stands
    /// before what is made up here.
    void addSnapshot(const QString& id, const QString& domain, QVariantMap description = {});
    /// A domain that was forked: as addDomain(), but stopped. The job that tells of it.
    QDBusObjectPath forked(const QString& name);
    /// Changes its state and tells of that.
    void setState(const QString& name, const QString& state, const QString& reason = {});
    [[nodiscard]] QStringList domainNames() const;
    /// The job that the next call which begins one gives out.
    FakeJob& prepareJob();
    /// That job, or one that has succeeded with `result`.
    QDBusObjectPath takeJob(const QVariantMap& result = {});
    /// Goes away as a daemon that was killed.
    void vanish();
    /// The next call fails so; of that method only, when one is named.
    void failNext(const QString& error, const QString& message, const QString& method = {}) {
        nextError = {error, message};
        m_failing = method;
    }
    /// Sends the prepared error if there is one; for the fakes.
    bool failed(QDBusContext& context);

    ExecScript script;
    std::vector<std::thread> players;
    QVariantMap managerDescription;
    QVariantMap lastManagerOptions;
    QVariantMap lastCreateOptions;
    bulkhead::client::VariantMapList templates;
    bulkhead::client::VariantMapList snapshots;
    bulkhead::client::VariantMapList deleted; ///< what can be restored
    QString purged;
    QString lastSnapshot;                  ///< the id of the last call about one
    QVariantMap lastSnapshotOptions;       ///< and what was wanted of it
    std::pair<QString, QString> inspected; ///< what the last Inspect was about
    QVariantMap jobResult;                 ///< of BuildTemplate, Doctor, Snapshot, Suspend, Revert and RemoveSnapshot

private:
    void addObject(const QString& path, QObject* object);

    QDBusConnection m_connection;
    std::pair<QString, QString> nextError;
    QString m_failing;
    std::map<QString, std::unique_ptr<FakeDomain>> m_domains;
    std::vector<std::unique_ptr<FakeJob>> m_jobs;
    QString m_nextJob;
    std::unique_ptr<FakeManager> m_manager;
    bool m_vanished = false;
};

// SPDX-License-Identifier: Apache-2.0
#include "client/domain.hpp"

#include "client/bus.hpp"
#include "client/pending_reply.hpp"
#include "domain_proxy.h"

namespace bulkhead::client {
namespace {

QDBusObjectPath pathOf(const QDBusPendingReply<QDBusObjectPath>& reply) {
    return reply.value();
}

/// QtDBus keeps the descriptors of a message and duplicates them for us; take ours out of the copy.
Descriptor take(QDBusUnixFileDescriptor descriptor) {
    return Descriptor(descriptor.takeFileDescriptor());
}

using SharedDescriptor = std::shared_ptr<Descriptor>;

/// For the methods that answer with one descriptor.
void takeDescriptor(const QDBusPendingCall& call, QObject* context, Callback<SharedDescriptor> done) {
    auto* watcher = new QDBusPendingCallWatcher(call, context);
    QObject::connect(watcher, &QDBusPendingCallWatcher::finished, context,
                     [done = std::move(done)](QDBusPendingCallWatcher* finished) {
                         finished->deleteLater();
                         const QDBusPendingReply<QDBusUnixFileDescriptor> reply = *finished;
                         if (reply.isError()) {
                             done(tl::unexpected<Failure>(failureFrom(reply.error())));
                             return;
                         }
                         auto descriptor = std::make_shared<Descriptor>(take(reply.value()));
                         done(descriptor->isOpen()
                                  ? Outcome<SharedDescriptor>(std::move(descriptor))
                                  : failed(code::kHostFailure, "the message bus passed no descriptor along"));
                     });
}

QVariantMap optionsFrom(const ExecOptions& exec) {
    QVariantMap options;
    if (!exec.user.isEmpty()) {
        options.insert(QStringLiteral("user"), exec.user);
    }
    if (!exec.cwd.isEmpty()) {
        options.insert(QStringLiteral("cwd"), exec.cwd);
    }
    if (!exec.environment.isEmpty()) {
        options.insert(QStringLiteral("env"), exec.environment);
    }
    if (exec.timeout) {
        options.insert(QStringLiteral("timeout"), static_cast<qulonglong>(exec.timeout->count()));
    }
    if (exec.terminal) {
        options.insert(QStringLiteral("terminal"), true);
        options.insert(QStringLiteral("rows"), static_cast<uint>(exec.size.rows));
        options.insert(QStringLiteral("columns"), static_cast<uint>(exec.size.columns));
        if (!exec.term.isEmpty()) {
            options.insert(QStringLiteral("term"), exec.term);
        }
    }
    return options;
}

void insertText(QVariantMap& options, const char* key, const QString& value) {
    if (!value.isEmpty()) {
        options.insert(QLatin1String(key), value);
    }
}

} // namespace

QVariantMap optionsFrom(const ForkOptions& fork) {
    QVariantMap options;
    insertText(options, "label", fork.label);
    insertText(options, "egress", fork.egress);
    if (fork.isDiskOnly) {
        options.insert(QStringLiteral("disk"), true);
    }
    return options;
}

Domain::Domain(const QDBusConnection& connection, const QDBusObjectPath& path)
    : m_proxy(std::make_unique<DomainProxy>(QLatin1String(kServiceName), path.path(), connection)) {
    m_proxy->setTimeout(kNoTimeout);
}

Domain::~Domain() = default;

void Domain::describe(Callback<DomainInfo> done) {
    whenDone(m_proxy->Describe(), m_proxy.get(), std::move(done),
             [](const auto& reply) { return domainInfoFrom(reply.value()); });
}

void Domain::setDefinition(const QVariantMap& changes, Callback<DomainInfo> done) {
    whenDone(m_proxy->SetDefinition(changes), m_proxy.get(), std::move(done),
             [](const auto& reply) { return domainInfoFrom(reply.value()); });
}

void Domain::status(Callback<GuestStatus> done) {
    whenDone(m_proxy->Status(), m_proxy.get(), std::move(done),
             [](const auto& reply) { return guestStatusFrom(reply.value()); });
}

void Domain::start(bool isCold, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (isCold) {
        options.insert(QStringLiteral("cold"), true);
    }
    whenDone(m_proxy->Start(options), m_proxy.get(), std::move(done), pathOf);
}

void Domain::stop(bool force, std::optional<std::chrono::milliseconds> grace, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (force) {
        options.insert(QStringLiteral("force"), true);
    }
    if (grace) {
        options.insert(QStringLiteral("grace"), static_cast<qulonglong>(grace->count()));
    }
    whenDone(m_proxy->Stop(options), m_proxy.get(), std::move(done), pathOf);
}

void Domain::remove(bool force, bool forGood, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (force) {
        options.insert(QStringLiteral("force"), true);
    }
    if (forGood) {
        options.insert(QStringLiteral("now"), true);
    }
    whenDone(m_proxy->Remove(options), m_proxy.get(), std::move(done), pathOf);
}

void Domain::discard(Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Stop({{QStringLiteral("discard"), true}}), m_proxy.get(), std::move(done), pathOf);
}

void Domain::snapshot(const SnapshotOptions& snapshot, Callback<QDBusObjectPath> done) {
    QVariantMap options;
    if (snapshot.isDiskOnly) {
        options.insert(QStringLiteral("disk"), true);
    }
    insertText(options, "reason", snapshot.reason);
    insertText(options, "label", snapshot.label);
    whenDone(m_proxy->Snapshot(options), m_proxy.get(), std::move(done), pathOf);
}

void Domain::suspend(Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Suspend({}), m_proxy.get(), std::move(done), pathOf);
}

void Domain::pause(Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Pause({}), m_proxy.get(), std::move(done), pathOf);
}

void Domain::unpause(Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Unpause({}), m_proxy.get(), std::move(done), pathOf);
}

void Domain::contain(Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Contain({}), m_proxy.get(), std::move(done), pathOf);
}

void Domain::fork(const QString& name, const ForkOptions& fork, Callback<QDBusObjectPath> done) {
    whenDone(m_proxy->Fork(name, optionsFrom(fork)), m_proxy.get(), std::move(done), pathOf);
}

void Domain::screenshot(unsigned head, Callback<Picture> done) {
    QVariantMap options;
    options.insert(QStringLiteral("head"), head);
    whenDone(m_proxy->Screenshot(options), m_proxy.get(), std::move(done),
             [](const QDBusPendingReply<QDBusUnixFileDescriptor, QString>& reply) {
                 return Picture{std::make_shared<Descriptor>(take(reply.argumentAt<0>())), reply.argumentAt<1>()};
             });
}

void Domain::openSession(Callback<std::shared_ptr<Descriptor>> done) {
    takeDescriptor(m_proxy->OpenSession({}), m_proxy.get(), std::move(done));
}

void Domain::openDisplay(Callback<std::shared_ptr<Descriptor>> done) {
    takeDescriptor(m_proxy->OpenDisplay({}), m_proxy.get(), std::move(done));
}

void Domain::exec(const QStringList& argv, const ExecOptions& options, Callback<std::shared_ptr<ExecStreams>> done) {
    using Streams = Outcome<std::shared_ptr<ExecStreams>>;
    auto* watcher = new QDBusPendingCallWatcher(m_proxy->Exec(argv, optionsFrom(options)), m_proxy.get());
    QObject::connect(watcher, &QDBusPendingCallWatcher::finished, m_proxy.get(),
                     [done = std::move(done)](QDBusPendingCallWatcher* finished) {
                         finished->deleteLater();
                         using Fd = QDBusUnixFileDescriptor;
                         const QDBusPendingReply<qulonglong, Fd, Fd, Fd, Fd> reply = *finished;
                         if (reply.isError()) {
                             done(tl::unexpected<Failure>(failureFrom(reply.error())));
                             return;
                         }
                         auto streams = std::make_shared<ExecStreams>();
                         streams->exec = reply.argumentAt<0>();
                         streams->control = take(reply.argumentAt<1>());
                         streams->input = take(reply.argumentAt<2>());
                         streams->output = take(reply.argumentAt<3>());
                         streams->error = take(reply.argumentAt<4>());
                         const bool complete = streams->control.isOpen() && streams->input.isOpen() &&
                                               streams->output.isOpen() && streams->error.isOpen();
                         done(complete
                                  ? Streams(std::move(streams))
                                  : Streams(failed(code::kHostFailure, "the message bus passed no descriptors along")));
                     });
}

} // namespace bulkhead::client

// SPDX-License-Identifier: Apache-2.0
#include "fake_bulkhead.hpp"

#include "domain_adaptor.h"
#include "job_adaptor.h"
#include "manager_adaptor.h"

#include <array>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using bulkhead::client::Descriptor;
using namespace bulkhead::exec_stream;

namespace {

std::pair<Descriptor, QDBusUnixFileDescriptor> socketPair(int type) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw std::runtime_error("socketpair");
    }
    QDBusUnixFileDescriptor theirs;
    theirs.giveFileDescriptor(ends[1]);
    return {Descriptor(ends[0]), theirs};
}

} // namespace

void ExecEnds::event(ClientEventKind kind, std::uint32_t a, std::int32_t b) const {
    const ClientEvent record{kind, a, b};
    ::send(control.get(), &record, sizeof record, MSG_NOSIGNAL);
}

std::optional<ClientRequest> ExecEnds::request() const {
    ClientRequest record;
    return ::recv(control.get(), &record, sizeof record, 0) == sizeof record ? std::optional(record) : std::nullopt;
}

bool ExecEnds::write(const Descriptor& to, const QByteArray& bytes) {
    for (qsizetype done = 0; done < bytes.size();) {
        const ssize_t count =
            ::send(to.get(), bytes.constData() + done, static_cast<std::size_t>(bytes.size() - done), MSG_NOSIGNAL);
        if (count <= 0) {
            return false;
        }
        done += count;
    }
    return true;
}

QByteArray ExecEnds::read() const {
    QByteArray bytes(65536, Qt::Uninitialized);
    const ssize_t count = ::recv(input.get(), bytes.data(), static_cast<std::size_t>(bytes.size()), 0);
    bytes.resize(count > 0 ? count : 0);
    return bytes;
}

void FakeJob::finish(const QString& state) {
    description["state"] = state;
    emit Finished(state);
}

void FakeJob::Cancel() {
    cancelled = true;
    if (description["state"].toString() == "running") {
        finish("cancelled");
    }
}

QVariantMap FakeDomain::SetDefinition(const QVariantMap& changes) {
    calls += "SetDefinition ";
    lastChanges = changes;
    if (m_owner.failed(*this)) {
        return {};
    }
    for (auto change = changes.cbegin(); change != changes.cend(); ++change) {
        const bool waits = (change.key() == "size" || change.key() == "audio") && description["state"] != "stopped";
        const QString text = change.value().toString();
        description[waits ? "next-" + change.key() : change.key()] =
            text.endsWith("GiB") ? QVariant(text.chopped(3).toULongLong() << 30U) : change.value();
        if (waits) {
            description["restart-needed"] = true;
        }
    }
    m_owner.announce();
    return description;
}

QDBusObjectPath FakeDomain::Start(const QVariantMap& options) {
    calls += "Start ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob();
}

QDBusObjectPath FakeDomain::Stop(const QVariantMap& options) {
    calls += "Stop ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob();
}

QDBusObjectPath FakeDomain::Remove(const QVariantMap& options) {
    calls += "Remove ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob();
}

QDBusObjectPath FakeDomain::Snapshot(const QVariantMap& options) {
    calls += "Snapshot ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeDomain::Suspend(const QVariantMap& options) {
    calls += "Suspend ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeDomain::Pause(const QVariantMap& options) {
    calls += "Pause ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeDomain::Contain(const QVariantMap& options) {
    calls += "Contain ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeDomain::Unpause(const QVariantMap& options) {
    calls += "Unpause ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeDomain::Fork(const QString& name, const QVariantMap& options) {
    calls += "Fork ";
    lastOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.forked(name);
}

QDBusUnixFileDescriptor FakeDomain::OpenSession(const QVariantMap& options) {
    calls += "OpenSession ";
    lastOptions = options;
    if (m_owner.failed(*this)) {
        return {};
    }
    auto [ours, theirs] = socketPair(SOCK_SEQPACKET);
    sessions.push_back(std::move(ours));
    return theirs;
}

QDBusUnixFileDescriptor FakeDomain::Screenshot(const QVariantMap& options, QString& type) {
    calls += "Screenshot ";
    lastOptions = options;
    type = "image/png";
    if (m_owner.failed(*this)) {
        return {};
    }
    const Descriptor file(::memfd_create("picture", MFD_CLOEXEC));
    if (::write(file.get(), "picture", 7) != 7 || ::lseek(file.get(), 0, SEEK_SET) != 0) {
        return {};
    }
    return QDBusUnixFileDescriptor(file.get());
}

QDBusUnixFileDescriptor FakeDomain::OpenDisplay(const QVariantMap& options) {
    calls += "OpenDisplay ";
    lastOptions = options;
    if (m_owner.failed(*this)) {
        return {};
    }
    auto [ours, theirs] = socketPair(SOCK_STREAM);
    displays.push_back(std::move(ours));
    return theirs;
}

qulonglong FakeDomain::Exec(const QStringList& argv, const QVariantMap& options, QDBusUnixFileDescriptor& control,
                            QDBusUnixFileDescriptor& input, QDBusUnixFileDescriptor& output,
                            QDBusUnixFileDescriptor& error) {
    calls += "Exec ";
    lastOptions = options;
    if (m_owner.failed(*this)) {
        return 0;
    }
    auto ends = std::make_unique<ExecEnds>();
    ends->argv = argv;
    ends->options = options;
    std::tie(ends->control, control) = socketPair(SOCK_SEQPACKET);
    std::tie(ends->input, input) = socketPair(SOCK_STREAM);
    std::tie(ends->output, output) = socketPair(SOCK_STREAM);
    std::tie(ends->error, error) = socketPair(SOCK_STREAM);
    m_owner.players.emplace_back([ends = std::move(ends), script = m_owner.script] { script(*ends); });
    return 7;
}

QVariantMap FakeDomain::Status() {
    calls += "Status ";
    return m_owner.failed(*this) ? QVariantMap() : status;
}

QVariantMap FakeManager::Describe() {
    return m_owner.failed(*this) ? QVariantMap() : m_owner.managerDescription;
}

bulkhead::client::ObjectDescriptions FakeManager::ListDomains(const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    bulkhead::client::ObjectDescriptions all;
    if (m_owner.failed(*this)) {
        return all;
    }
    for (const QString& name : m_owner.domainNames()) {
        all.insert(QDBusObjectPath(FakeBulkhead::pathOf(name)), m_owner.domain(name)->description);
    }
    return all;
}

QDBusObjectPath FakeManager::FindDomain(const QString& name) {
    if (m_owner.failed(*this)) {
        return QDBusObjectPath("/");
    }
    if (m_owner.domain(name) == nullptr) {
        sendErrorReply("org.bulkhead1.Error.NotFound", "there is no domain '" + name + "'");
        return QDBusObjectPath("/");
    }
    return QDBusObjectPath(FakeBulkhead::pathOf(name));
}

QDBusObjectPath FakeManager::CreateDomain(const QString& name, const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    m_owner.lastCreateOptions = options;
    if (m_owner.failed(*this)) {
        return QDBusObjectPath("/");
    }
    m_owner.addDomain(name);
    return QDBusObjectPath(FakeBulkhead::pathOf(name));
}

QDBusObjectPath FakeManager::StartDisposable(const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    if (m_owner.failed(*this)) {
        return QDBusObjectPath("/");
    }
    if (m_owner.domain("disp1") == nullptr) {
        m_owner.addDomain("disp1", "disposable");
    }
    return m_owner.takeJob({{"domain", QVariant::fromValue(QDBusObjectPath("/org/bulkhead1/domains/disp1"))}});
}

bulkhead::client::VariantMapList FakeManager::ListDeleted(const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    return m_owner.failed(*this) ? bulkhead::client::VariantMapList() : m_owner.deleted;
}

QDBusObjectPath FakeManager::RestoreDomain(const QString& which, const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    if (m_owner.failed(*this)) {
        return QDBusObjectPath("/");
    }
    for (qsizetype i = 0; i < m_owner.deleted.size(); ++i) {
        const QVariantMap gone = m_owner.deleted[i];
        if (gone["id"] == which) {
            m_owner.deleted.removeAt(i);
            const QString name = options.value("as", gone["name"]).toString();
            m_owner.addDomain(name).description["state"] = "stopped";
            m_owner.announce();
            return QDBusObjectPath(FakeBulkhead::pathOf(name));
        }
    }
    return FindDomain(options.value("as", which).toString());
}

QDBusObjectPath FakeManager::PurgeDomain(const QString& which, const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    m_owner.purged = which;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob();
}

bulkhead::client::VariantMapList FakeManager::ListSnapshots() {
    return m_owner.failed(*this) ? bulkhead::client::VariantMapList() : m_owner.snapshots;
}

QVariantMap FakeManager::SetSnapshot(const QString& id, const QVariantMap& changes) {
    m_owner.lastSnapshot = id;
    m_owner.lastSnapshotOptions = changes;
    if (m_owner.failed(*this)) {
        return {};
    }
    for (QVariantMap& one : m_owner.snapshots) {
        if (one["id"] == id) {
            one.insert(changes);
            return one;
        }
    }
    sendErrorReply("org.bulkhead1.Error.NotFound", "there is no such snapshot");
    return {};
}

QDBusObjectPath FakeManager::RemoveSnapshot(const QString& id, const QVariantMap& options) {
    m_owner.lastSnapshot = id;
    m_owner.lastSnapshotOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeManager::Revert(const QString& id, const QVariantMap& options) {
    m_owner.lastSnapshot = id;
    m_owner.lastSnapshotOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeManager::ForkSnapshot(const QString& id, const QString& name, const QVariantMap& options) {
    m_owner.lastSnapshot = id;
    m_owner.lastSnapshotOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.forked(name);
}

QDBusObjectPath FakeManager::Inspect(const QString& a, const QString& b, const QVariantMap& options) {
    m_owner.inspected = {a, b};
    return StartDisposable(options);
}

bulkhead::client::VariantMapList FakeManager::ListTemplates() {
    return m_owner.failed(*this) ? bulkhead::client::VariantMapList() : m_owner.templates;
}

QVariantMap FakeManager::DescribeTemplate(const QString& name) {
    for (const QVariantMap& one : m_owner.templates) {
        if (one["name"] == name) {
            return one;
        }
    }
    sendErrorReply("org.bulkhead1.Error.NotFound", "there is no template '" + name + "'");
    return {};
}

QDBusObjectPath FakeManager::BuildTemplate(const QString& /*name*/, const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeManager::MakeWarmImage(const QString& /*name*/, const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

QDBusObjectPath FakeManager::Doctor(const QVariantMap& options) {
    m_owner.lastManagerOptions = options;
    return m_owner.failed(*this) ? QDBusObjectPath("/") : m_owner.takeJob(m_owner.jobResult);
}

FakeBulkhead::FakeBulkhead(const QString& busAddress)
    : m_connection(QDBusConnection::connectToBus(busAddress, "fake"))
    , m_manager(std::make_unique<FakeManager>(*this)) {
    bulkhead::client::registerBusTypes();
    new ManagerAdaptor(m_manager.get());
    addObject("/org/bulkhead1", m_manager.get());
    if (!m_connection.registerService("org.bulkhead1")) {
        throw std::runtime_error("cannot own org.bulkhead1");
    }
    managerDescription = {{"version", "0.1.0"}, {"acceleration", "emulation"}};
}

FakeBulkhead::~FakeBulkhead() {
    vanish();
    for (std::thread& player : players) {
        player.join();
    }
}

void FakeBulkhead::vanish() {
    if (!std::exchange(m_vanished, true)) {
        QDBusConnection::disconnectFromBus("fake");
        m_connection = QDBusConnection("none"); // the last reference closes the socket
    }
}

void FakeBulkhead::addObject(const QString& path, QObject* object) {
    if (!m_connection.registerObject(path, object, QDBusConnection::ExportAdaptors)) {
        throw std::runtime_error("cannot register " + path.toStdString());
    }
}

FakeDomain& FakeBulkhead::addDomain(const QString& name, const QString& kind) {
    auto domain = std::make_unique<FakeDomain>(*this);
    domain->description = {{"name", name},    {"kind", kind},          {"state", "running"}, {"template", "minimal"},
                           {"size", "small"}, {"egress", "none"},      {"owner", 1000U},     {"memory", 536870912ULL},
                           {"id", "an-id"},   {"tags", QStringList()}, {"vcpus", 2U}};
    new DomainAdaptor(domain.get());
    addObject(pathOf(name), domain.get());
    return *(m_domains[name] = std::move(domain));
}

QString FakeBulkhead::pathOf(const QString& name) {
    return "/org/bulkhead1/domains/" + QString(name).replace('-', '_');
}

FakeDomain* FakeBulkhead::domain(const QString& name) {
    const auto found = m_domains.find(name);
    return found == m_domains.end() ? nullptr : found->second.get();
}

void FakeBulkhead::removeDomain(const QString& name) {
    m_connection.unregisterObject(pathOf(name));
    m_domains.erase(name);
    announce();
}

void FakeBulkhead::addSnapshot(const QString& id, const QString& domain, QVariantMap description) {
    const QDBusObjectPath path(pathOf(domain));
    const QVariantMap usual{{"id", id},
                            {"parent", ""},
                            {"domain", QVariant::fromValue(path)},
                            {"domain-name", domain},
                            {"kind", "full"},
                            {"created-at", 1795964645LL},
                            {"reason", "manual"},
                            {"label", ""},
                            {"pinned", false},
                            {"suspect", ""},
                            {"template", "minimal"},
                            {"template-version", "9f2ab4"},
                            {"size", "small"},
                            {"size-on-disk", 12582912ULL}};
    for (auto one = usual.cbegin(); one != usual.cend(); ++one) {
        if (!description.contains(one.key())) {
            description.insert(one.key(), one.value());
        }
    }
    snapshots.append(description);
    emit m_manager->SnapshotsChanged(path);
}

QDBusObjectPath FakeBulkhead::forked(const QString& name) {
    addDomain(name).description["state"] = "stopped";
    announce();
    return takeJob({{"domain", QVariant::fromValue(QDBusObjectPath(pathOf(name)))}});
}

void FakeBulkhead::setState(const QString& name, const QString& state, const QString& reason) {
    FakeDomain& changed = *m_domains.at(name);
    changed.description["state"] = state;
    changed.description["reason"] = reason;
    emit changed.StateChanged(state);
}

QStringList FakeBulkhead::domainNames() const {
    QStringList names;
    for (const auto& [name, domain] : m_domains) {
        names.append(name);
    }
    return names;
}

FakeJob& FakeBulkhead::prepareJob() {
    m_jobs.push_back(std::make_unique<FakeJob>());
    FakeJob& job = *m_jobs.back();
    job.description = {{"kind", "test"}, {"state", "running"}, {"phase", "booting"}, {"fraction", -1.0}};
    new JobAdaptor(&job);
    m_nextJob = "/org/bulkhead1/jobs/" + QString::number(m_jobs.size());
    addObject(m_nextJob, &job);
    return job;
}

QDBusObjectPath FakeBulkhead::takeJob(const QVariantMap& result) {
    if (m_nextJob.isEmpty()) {
        FakeJob& job = prepareJob();
        job.description["state"] = "succeeded";
        job.description["result"] = result;
    }
    return QDBusObjectPath(std::exchange(m_nextJob, QString()));
}

bool FakeBulkhead::failed(QDBusContext& context) {
    if (!m_failing.isEmpty() && context.message().member() != m_failing) {
        return false;
    }
    m_failing.clear();
    const auto error = std::exchange(nextError, {});
    if (error.first.isEmpty()) {
        return false;
    }
    context.sendErrorReply(error.first, error.second);
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "gui/models/domain_model.hpp"

#include "gui/wording.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace bulkhead::gui {
namespace {

bool isDisposable(const client::DomainInfo& info) {
    return info.kind == QLatin1String("disposable");
}

bool isRunning(const client::DomainInfo& info) {
    return info.state == QLatin1String("running");
}

bool comesBefore(const client::DomainInfo& a, const client::DomainInfo& b) {
    // The path last: names are unique, but a broken daemon must not make the order ambiguous.
    return std::tuple(isDisposable(a), std::cref(a.name), std::cref(a.path)) <
           std::tuple(isDisposable(b), std::cref(b.name), std::cref(b.path));
}

double share(std::uint64_t total, std::uint64_t available) {
    if (total == 0 || available > total) {
        return -1; // the guest says what it likes
    }
    return static_cast<double>(total - available) / static_cast<double>(total);
}

/// Asked for, and the daemon's state does not show it yet.
bool isAwaited(const DomainModel::Row& row) {
    switch (row.task) {
    case Task::None:
        return false;
    case Task::Starting:
        return row.info.state == QLatin1String("stopped") || isSuspended(row.info);
    case Task::Stopping:
    case Task::ForceStopping:
    case Task::Suspending:
    case Task::Pausing:
        return isRunning(row.info) || isPaused(row.info);
    case Task::Unpausing:
        return isPaused(row.info);
    case Task::Removing:
    case Task::Snapshotting:
    case Task::Reverting:
    case Task::Forking:
        return true;
    }
    return false;
}

QString taskInWords(Task task) {
    switch (task) {
    case Task::None:
        return {};
    case Task::Starting:
        return DomainModel::tr("Starting…");
    case Task::Stopping:
    case Task::ForceStopping:
        return DomainModel::tr("Stopping…");
    case Task::Removing:
        return DomainModel::tr("Removing…");
    case Task::Snapshotting:
        return DomainModel::tr("Taking a snapshot…");
    case Task::Suspending:
        return DomainModel::tr("Suspending…");
    case Task::Pausing:
        return DomainModel::tr("Pausing…");
    case Task::Unpausing:
        return DomainModel::tr("Unpausing…");
    case Task::Reverting:
        return DomainModel::tr("Reverting…");
    case Task::Forking:
        return DomainModel::tr("Forking…");
    }
    return {};
}

/// Its state, and what a restart would change.
QString wordsOf(const client::DomainInfo& info) {
    const QString state = stateInWords(info.state);
    return isRunning(info) && info.updateAvailable ? DomainModel::tr("%1, restart to update").arg(state) : state;
}

} // namespace

bool isPaused(const client::DomainInfo& info) {
    return info.state == QLatin1String("paused");
}

bool isSuspended(const client::DomainInfo& info) {
    return info.state == QLatin1String("suspended");
}

double memoryShare(const DomainModel::Row& row) {
    return row.status ? share(row.status->memoryTotal, row.status->memoryAvailable) : -1;
}

double diskShare(const DomainModel::Row& row) {
    return row.status ? std::max(share(row.status->systemTotal, row.status->systemAvailable),
                                 share(row.status->homeTotal, row.status->homeAvailable))
                      : -1;
}

DomainModel::DomainModel(client::DaemonLink& link, QObject* parent)
    : QAbstractListModel(parent)
    , m_link(link) {
    connect(&link, &client::DaemonLink::stateChanged, this, &DomainModel::onLinkChanged);
    connect(&link, &client::DaemonLink::domainsChanged, this, &DomainModel::refresh);
    connect(&link, &client::DaemonLink::snapshotsChanged, this, [this](const QString& path) {
        if (numberOf(path) >= 0) {
            refresh(); // it may stand somewhere else
        }
    });
    connect(&link, &client::DaemonLink::domainStateChanged, this, &DomainModel::onStateChanged);
}

DomainModel::~DomainModel() = default;

int DomainModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

QVariant DomainModel::data(const QModelIndex& index, int role) const {
    if (!checkIndex(index, CheckIndexOption::IndexIsValid)) {
        return {};
    }
    const Row& one = row(index.row());
    switch (role) {
    case Qt::DisplayRole:
        return shown(one.info.name, 64);
    case Qt::AccessibleTextRole:
    case Qt::ToolTipRole:
        return accessibleText(one);
    case PathRole:
        return one.info.path;
    case LabelRole:
        return one.info.label;
    case StateTextRole:
        return isAwaited(one) ? taskInWords(one.task) : wordsOf(one.info);
    case IsRunningRole:
        return isRunning(one.info);
    case IsFailedRole:
        return one.info.state == QLatin1String("failed") || !one.problem.isEmpty();
    case IsPausedRole:
        return isPaused(one.info) && !isAwaited(one);
    case IsSuspendedRole:
        return isSuspended(one.info) && !isAwaited(one);
    case IsDisposableRole:
        return isDisposable(one.info);
    case BeginsDisposablesRole:
        return isDisposable(one.info) && (index.row() == 0 || !isDisposable(row(index.row() - 1).info));
    case MemoryRole:
        return memoryShare(one);
    case DiskRole:
        return diskShare(one);
    default:
        return {};
    }
}

QString DomainModel::accessibleText(const Row& one) const {
    QStringList parts{tr("%1, %2").arg(shown(one.info.name, 64), wordsOf(one.info))};
    parts.append(tr("%1, label %2").arg(kindInWords(one.info.kind), shown(one.info.label, 32)));
    if (memoryShare(one) >= 0) {
        parts.append(tr("memory %1 of %2 used")
                         .arg(bytesInWords(one.status->memoryTotal - one.status->memoryAvailable),
                              bytesInWords(one.status->memoryTotal)));
    }
    if (diskShare(one) >= 0) {
        parts.append(tr("fullest disk %1 % used").arg(qRound(diskShare(one) * 100)));
    }
    if (!one.info.reason.isEmpty()) {
        parts.append(shown(one.info.reason));
    }
    if (!one.problem.isEmpty()) {
        parts.append(one.problem);
    }
    if (!one.note.isEmpty()) {
        parts.append(one.note);
    }
    return parts.join(QLatin1Char('\n'));
}

const DomainModel::Row* DomainModel::find(const QString& path) const {
    const int number = numberOf(path);
    return number < 0 ? nullptr : &row(number);
}

QModelIndex DomainModel::indexOf(const QString& path) const {
    const int number = numberOf(path);
    return number < 0 ? QModelIndex() : index(number);
}

bool DomainModel::hasName(const QString& name) const {
    return std::any_of(m_rows.begin(), m_rows.end(), [&](const auto& one) { return one->info.name == name; });
}

client::Domain* DomainModel::proxy(const QString& path) {
    const int number = numberOf(path);
    if (number < 0 || !m_link.isAvailable()) {
        return nullptr;
    }
    auto& made = m_rows[static_cast<std::size_t>(number)]->proxy;
    if (!made) {
        made = std::make_unique<client::Domain>(m_link.connection(), QDBusObjectPath(path));
    }
    return made.get();
}

void DomainModel::setTask(const QString& path, Task task) {
    const int number = numberOf(path);
    if (number >= 0 && row(number).task != task) {
        m_rows[static_cast<std::size_t>(number)]->task = task;
        changed(number);
    }
}

void DomainModel::setProblem(const QString& path, const QString& problem) {
    const int number = numberOf(path);
    if (number >= 0 && row(number).problem != problem) {
        m_rows[static_cast<std::size_t>(number)]->problem = problem;
        changed(number);
    }
}

void DomainModel::setNote(const QString& path, const QString& note) {
    const int number = numberOf(path);
    if (number >= 0 && row(number).note != note) {
        m_rows[static_cast<std::size_t>(number)]->note = note;
        changed(number);
    }
}

void DomainModel::pollStatus(const QStringList& paths) {
    for (const QString& path : paths) {
        const int number = numberOf(path);
        if (number < 0 || !isRunning(row(number).info) || row(number).isAsking) {
            continue;
        }
        client::Domain* domain = proxy(path);
        if (domain == nullptr) {
            return;
        }
        m_rows[static_cast<std::size_t>(number)]->isAsking = true;
        domain->status([this, path](client::Outcome<client::GuestStatus> status) {
            const int now = numberOf(path);
            if (now < 0) {
                return;
            }
            Row& one = *m_rows[static_cast<std::size_t>(now)];
            one.isAsking = false;
            const bool isNews = status.has_value() || one.status.has_value();
            one.status = status && isRunning(one.info) ? std::optional(*status) : std::nullopt;
            if (isNews) {
                changed(now);
            }
        });
    }
}

void DomainModel::onLinkChanged() {
    m_isAsking = false; // an answer under way is not to come any more
    m_askAgain = false;
    if (m_link.isAvailable()) {
        for (const auto& one : m_rows) {
            one->isAsking = false;
        }
        refresh();
        return;
    }
    m_isLoaded = false;
    for (const auto& one : m_rows) {
        one->task = Task::None;
        one->proxy.reset();
        one->isAsking = false;
    }
}

void DomainModel::refresh() {
    if (!m_link.isAvailable()) {
        return;
    }
    if (m_isAsking) {
        m_askAgain = true;
        return;
    }
    m_isAsking = true;
    m_link.manager()->listDomains(false, [this](client::Outcome<QList<client::DomainInfo>> domains) {
        m_isAsking = false;
        const bool again = std::exchange(m_askAgain, false);
        if (!domains) {
            Q_EMIT listFailed(domains.error());
        } else {
            take(std::move(*domains));
            m_isLoaded = true;
            Q_EMIT loaded();
        }
        if (again) {
            refresh();
        }
    });
}

void DomainModel::onStateChanged(const QString& path, const QString& state) {
    const int number = numberOf(path);
    if (number < 0) {
        return; // somebody else's, or one that the list will tell of
    }
    Row& one = *m_rows[static_cast<std::size_t>(number)];
    if (one.info.state != state) {
        one.info.state = state;
        one.info.reason.clear();
        if (!isRunning(one.info)) {
            one.status.reset();
        }
        changed(number);
    }
    // The signal carries no reason; one question for all that changed at once.
    refresh();
}

void DomainModel::take(QList<client::DomainInfo> domains) {
    std::sort(domains.begin(), domains.end(), comesBefore);
    std::set<QString> present;
    for (const auto& info : domains) {
        present.insert(info.path);
    }
    for (int number = rowCount() - 1; number >= 0; --number) {
        if (!present.contains(row(number).info.path)) {
            removeAt(number);
        }
    }
    for (int number = 0; number < static_cast<int>(domains.size()); ++number) {
        const client::DomainInfo& info = domains[number];
        const int before = number < rowCount() && row(number).info.path == info.path ? number : numberOf(info.path);
        if (before < 0) {
            beginInsertRows({}, number, number);
            auto one = std::make_unique<Row>();
            one->info = info;
            m_rows.insert(m_rows.begin() + number, std::move(one));
            endInsertRows();
            continue;
        }
        if (before != number) {
            beginMoveRows({}, before, before, {}, number);
            auto one = std::move(m_rows[static_cast<std::size_t>(before)]);
            m_rows.erase(m_rows.begin() + before);
            m_rows.insert(m_rows.begin() + number, std::move(one));
            endMoveRows();
        }
        update(number, info);
    }
}

void DomainModel::learn(const QString& path, client::DomainInfo info) {
    const int number = numberOf(path);
    if (number >= 0) {
        info.path = path;
        update(number, info);
    }
}

void DomainModel::update(int number, const client::DomainInfo& info) {
    Row& one = *m_rows[static_cast<std::size_t>(number)];
    if (one.info == info) {
        return;
    }
    one.info = info;
    if (!isRunning(info)) {
        one.status.reset();
    }
    changed(number);
}

void DomainModel::removeAt(int number) {
    const QString path = row(number).info.path;
    beginRemoveRows({}, number, number);
    const auto kept = std::move(m_rows[static_cast<std::size_t>(number)]); // until nobody looks at it any more
    m_rows.erase(m_rows.begin() + number);
    endRemoveRows();
    Q_EMIT domainGone(path);
}

void DomainModel::changed(int number) {
    const QModelIndex at = index(number);
    Q_EMIT dataChanged(at, at);
    Q_EMIT domainChanged(row(number).info.path);
}

int DomainModel::numberOf(const QString& path) const {
    const auto found =
        std::find_if(m_rows.begin(), m_rows.end(), [&](const auto& one) { return one->info.path == path; });
    return found == m_rows.end() ? -1 : static_cast<int>(found - m_rows.begin());
}

} // namespace bulkhead::gui

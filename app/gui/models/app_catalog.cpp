// SPDX-License-Identifier: Apache-2.0
#include "gui/models/app_catalog.hpp"

#include "gui/menu_exports.hpp"
#include "gui/models/domain_model.hpp"
#include "gui/viewer_launcher.hpp"
#include "gui/wording.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace bulkhead::gui {
namespace {

/// An emulated guest may take its time over the list; this is to say so instead of waiting in silence.
constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::seconds kReopenAfter{2};

} // namespace

const AppEntry* firstOfCategory(const QList<AppEntry>& apps, const QStringList& categories) {
    for (const AppEntry& app : apps) {
        if (std::any_of(categories.begin(), categories.end(),
                        [&](const QString& category) { return app.categories.contains(category); })) {
            return &app;
        }
    }
    return nullptr;
}

AppCatalog::AppCatalog(client::DaemonLink& link, DomainModel& domains, ViewerLauncher& viewers, QObject* parent)
    : QObject(parent)
    , m_domains(domains)
    , m_viewers(viewers) {
    connect(&domains, &DomainModel::domainChanged, this, &AppCatalog::onDomainChanged);
    connect(&domains, &DomainModel::loaded, this, [this] {
        for (int number = 0; number < m_domains.rowCount(); ++number) {
            open(m_domains.row(number).info.path);
        }
    });
    connect(&domains, &DomainModel::domainGone, this, &AppCatalog::drop);
    connect(&link, &client::DaemonLink::stateChanged, this, [this, &link] {
        if (!link.isAvailable()) {
            // What was asked stays unanswered. Sessions that are open do not need the daemon.
            std::erase_if(m_entries, [](const auto& one) { return !one.second->client; });
        }
    });
}

AppCatalog::~AppCatalog() = default;

const AppCatalog::Shelf& AppCatalog::shelf(const QString& path) const {
    static const Shelf kNone;
    const auto found = m_entries.find(path);
    return found == m_entries.end() ? kNone : found->second->shelf;
}

void AppCatalog::open(const QString& path) {
    const auto* row = m_domains.find(path);
    client::Domain* domain = m_domains.proxy(path);
    if (row == nullptr || domain == nullptr || row->info.state != QLatin1String("running") ||
        shelf(path).state != State::Closed) {
        return;
    }
    auto& entry = m_entries[path];
    if (!entry) {
        entry = std::make_unique<Entry>();
    }
    const unsigned generation = ++entry->generation;
    entry->client.reset();
    set(path, State::Opening);
    expectAnswer(path);
    domain->openSession([this, path, generation](client::Outcome<std::shared_ptr<client::Descriptor>> stream) {
        const auto found = m_entries.find(path);
        if (found == m_entries.end() || found->second->generation != generation) {
            return;
        }
        if (!stream) {
            set(path, State::Failed, sentence(stream.error()));
        } else {
            attach(path, std::move(**stream));
        }
    });
}

void AppCatalog::reopenIfFailed(const QString& path) {
    if (shelf(path).state == State::Failed) {
        reopen(path);
    }
}

void AppCatalog::reopen(const QString& path) {
    if (shelf(path).state == State::Failed) {
        set(path, State::Closed);
    }
    open(path);
}

void AppCatalog::attach(const QString& path, client::Descriptor stream) {
    Entry& entry = *m_entries[path];
    entry.client = std::make_unique<SessionClient>(std::move(stream));
    SessionClient* client = entry.client.get();
    connect(client, &SessionClient::sessionChanged, this, [this, path, client](bool isUp) {
        if (isUp) {
            set(path, State::Listing);
            expectAnswer(path);
            client->listApps();
        } else {
            set(path, State::NoSession);
        }
    });
    connect(client, &SessionClient::appsListed, this, [this, path](QList<AppEntry> apps) {
        std::sort(apps.begin(), apps.end(),
                  [](const AppEntry& a, const AppEntry& b) { return QString::localeAwareCompare(a.name, b.name) < 0; });
        // Whoever wants them in the desktop's menu said so once. No apps at all is a guest in trouble.
        if (const auto* row = m_domains.find(path); row != nullptr && !apps.isEmpty() && isInMenu(row->info.name)) {
            if (const QString problem = putIntoMenu(row->info.name, apps); !problem.isEmpty()) {
                m_domains.setProblem(path, problem);
            }
        }
        m_entries[path]->shelf.apps = std::move(apps);
        set(path, State::Ready);
    });
    connect(client, &SessionClient::launched, this,
            [this, path](const QString& appId, int errorNumber) { onLaunched(path, appId, errorNumber); });
    connect(client, &SessionClient::closed, this, [this, path] {
        if (SessionClient* ended = m_entries[path]->client.release()) {
            ended->disconnect(this);
            ended->deleteLater(); // it is on the stack
        }
        set(path, State::Failed, tr("The connection to the domain's session ended."));
        // Its channel may have been made anew, and then nobody else would say so.
        QTimer::singleShot(kReopenAfter, this, [this, path] { reopenIfFailed(path); });
    });
}

void AppCatalog::expectAnswer(const QString& path) {
    QTimer& patience = m_entries[path]->patience;
    patience.disconnect();
    patience.setSingleShot(true);
    connect(&patience, &QTimer::timeout, this, [this, path] {
        // What still comes late counts: nothing is closed.
        set(path, State::Failed, tr("It has not answered for %1 seconds; it may be busy.").arg(kPatience.count()));
    });
    patience.start(kPatience);
}

void AppCatalog::launch(const QString& path, const QString& appId) {
    const auto found = m_entries.find(path);
    if (found == m_entries.end() || !found->second->client || found->second->shelf.state != State::Ready) {
        return;
    }
    m_domains.setProblem(path, {});
    if (const auto* row = m_domains.find(path)) {
        m_domains.setProblem(path, m_viewers.ensure(row->info.name));
    }
    found->second->client->launch(appId);
}

void AppCatalog::showWindows(const QString& path) {
    const auto* row = m_domains.find(path);
    if (row == nullptr) {
        return;
    }
    m_domains.setProblem(path, m_viewers.present(row->info.name));
}

void AppCatalog::onLaunched(const QString& path, const QString& appId, int errorNumber) {
    if (errorNumber != 0) {
        m_domains.setProblem(
            path,
            tr("%1 did not start: %2.").arg(shown(appId, 64), shown(std::generic_category().message(errorNumber))));
    }
}

void AppCatalog::onDomainChanged(const QString& path) {
    const auto* row = m_domains.find(path);
    if (row != nullptr && row->info.state != QLatin1String("running")) {
        drop(path);
    } else {
        open(path);
    }
}

void AppCatalog::drop(const QString& path) {
    if (m_entries.erase(path) > 0) {
        Q_EMIT changed(path);
    }
}

void AppCatalog::set(const QString& path, State state, const QString& problem) {
    Shelf& shelf = m_entries[path]->shelf;
    if (state != State::Opening && state != State::Listing) {
        m_entries[path]->patience.stop();
    }
    shelf.state = state;
    shelf.problem = problem;
    if (state != State::Ready) {
        shelf.apps.clear();
    }
    Q_EMIT changed(path);
}

} // namespace bulkhead::gui

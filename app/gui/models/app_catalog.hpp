// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gui/models/session_client.hpp"

#include "client/daemon_link.hpp"

#include <QHash>
#include <QObject>
#include <QString>
#include <QTimer>

#include <memory>
#include <unordered_map>

namespace bulkhead::gui {

class DomainModel;
class ViewerLauncher;

/// The apps of running domains. A domain's session is opened as soon as it runs, so that search and tray know its apps,
/// and kept until it stops.
class AppCatalog : public QObject {
    Q_OBJECT

public:
    enum class State {
        Closed,    ///< the domain does not run
        Opening,   ///< the daemon is asked
        NoSession, ///< the guest has no desktop session, at least not yet
        Listing,
        Ready,
        Failed,
    };
    struct Shelf {
        State state = State::Closed;
        QList<AppEntry> apps; ///< by name
        QString problem;      ///< with Failed; safe to show
    };

    AppCatalog(client::DaemonLink& link, DomainModel& domains, ViewerLauncher& viewers, QObject* parent = nullptr);
    ~AppCatalog() override;

    /// Opens the domain's session unless that is done or under way. Nothing happens while it does not run.
    void open(const QString& path);
    /// The same after a failure.
    void reopen(const QString& path);
    [[nodiscard]] const Shelf& shelf(const QString& path) const;
    /// Starts an app of a domain that is Ready, and the viewer that shows its windows.
    void launch(const QString& path, const QString& appId);
    /// Shows the windows that the domain has.
    void showWindows(const QString& path);

Q_SIGNALS:
    void changed(const QString& path);

private:
    struct Entry {
        Shelf shelf;
        std::unique_ptr<SessionClient> client;
        unsigned generation = 0; ///< answers of an opening that was given up do not count
        QTimer patience;         ///< runs while an answer is awaited
    };

    void attach(const QString& path, client::Descriptor stream);
    void set(const QString& path, State state, const QString& problem = {});
    void onDomainChanged(const QString& path);
    void expectAnswer(const QString& path);
    void drop(const QString& path);
    void onLaunched(const QString& path, const QString& appId, int errorNumber);

    DomainModel& m_domains;
    ViewerLauncher& m_viewers;
    std::unordered_map<QString, std::unique_ptr<Entry>> m_entries;
};

/// The first app of these that has one of `categories` (freedesktop.org main or additional category); null: none.
const AppEntry* firstOfCategory(const QList<AppEntry>& apps, const QStringList& categories);

} // namespace bulkhead::gui

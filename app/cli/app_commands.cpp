// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/output/json.hpp"
#include "cli/output/report.hpp"
#include "cli/output/table.hpp"
#include "client/domain.hpp"
#include "client/session_stream.hpp"
#include "client/terminal_text.hpp"
#include "client/user_locale.hpp"
#include "menu/folder.hpp"

#include <QProcess>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace bulkhead::cli {
namespace {

using client::Failure;
using client::Outcome;
using session_stream::CommandKind;
using session_stream::Event;
using session_stream::EventKind;

/// From the agent's first answer to an X session, on a slow emulated host.
constexpr std::chrono::minutes kSessionTime{3};
constexpr std::chrono::seconds kAnswerTime{30};
/// From the start of an app to its first window, of a browser on a slow emulated host.
constexpr std::chrono::minutes kWindowTime{3};
constexpr const char* kDesktopTemplate = "desktop";
/// What the guest has is sent at once and in order, so the list of windows is whole when it pauses.
constexpr std::chrono::milliseconds kWindowsPause{300};

/// A domain's session stream, read record by record.
class Conversation {
public:
    Conversation(Session& session, client::Descriptor descriptor)
        : m_session(session)
        , m_stream(std::move(descriptor),
                   {.received = [this](const Event& event) { take(event); }, .ended = [this] { take(std::nullopt); }}) {
    }

    /// The next record that `wanted` says yes to; earlier ones are dropped.
    Outcome<Event> next(const std::function<bool(const Event&)>& wanted, std::chrono::milliseconds limit) {
        return m_session.await<Event>(
            [&](client::Callback<Event> done) {
                m_waiting = {wanted, std::move(done)};
                serve();
            },
            limit);
    }
    bool send(const session_stream::Command& command) { return m_stream.send(command); }

private:
    struct Waiting {
        std::function<bool(const Event&)> wanted;
        client::Callback<Event> done;
    };
    void take(std::optional<Event> event) {
        if (event) {
            m_events.push_back(*event);
        } else {
            m_hasEnded = true;
        }
        serve();
    }
    void serve() {
        while (m_waiting && !m_events.empty()) {
            const Event event = m_events.front();
            m_events.pop_front();
            if (m_waiting->wanted(event)) {
                const auto waiting = std::exchange(m_waiting, std::nullopt);
                waiting->done(event);
            }
        }
        if (m_waiting && m_hasEnded) {
            const auto waiting = std::exchange(m_waiting, std::nullopt);
            waiting->done(client::failed(client::code::kGuestFailure, "the domain ended meanwhile"));
        }
    }

    Session& m_session;
    std::deque<Event> m_events;
    std::optional<Waiting> m_waiting;
    bool m_hasEnded = false;
    client::SessionStream m_stream;
};

int report(const std::string& name, const Failure& failure, bool json) {
    printFailure("domain " + name, failure, json);
    return exitCodeFor(failure);
}

/// The session of a domain that runs, once it is there.
Outcome<std::unique_ptr<Conversation>> converseIn(Session& session, client::Domain& domain, const std::string& name) {
    const auto descriptor =
        session.await<std::shared_ptr<client::Descriptor>>([&](auto done) { domain.openSession(std::move(done)); });
    if (!descriptor) {
        return tl::unexpected<Failure>(descriptor.error());
    }
    auto conversation = std::make_unique<Conversation>(session, std::move(**descriptor));
    const auto up = conversation->next(
        [](const Event& event) { return event.kind == EventKind::SessionUp && event.b == 1; }, kSessionTime);
    if (!up) {
        return up.error().code == client::code::kTimedOut
                   ? client::failed(client::code::kTimedOut, "its desktop session did not begin within " +
                                                                 std::to_string(kSessionTime.count()) +
                                                                 " minutes; see what it says: bulkhead run --domain " +
                                                                 name + " --user root -- journalctl -b -u 'bulkhead-*'")
                   : tl::unexpected<Failure>(up.error());
    }
    return conversation;
}

/// Starts the domain if it does not run, and waits for its session.
Outcome<std::unique_ptr<Conversation>> converse(Session& session, const std::string& name, bool json) {
    const auto path = session.await<QDBusObjectPath>(
        [&](auto done) { session.manager().findDomain(QString::fromStdString(name), std::move(done)); });
    if (!path) {
        return tl::unexpected<Failure>(path.error());
    }
    client::Domain domain(session.connection(), *path);
    const auto job = session.await<QDBusObjectPath>([&](auto done) { domain.start(false, std::move(done)); });
    if (!job) {
        return tl::unexpected<Failure>(job.error());
    }
    const auto started = session.follow(*job, "Starting " + client::terminalSafe(name),
                                        json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!started) {
        return tl::unexpected<Failure>(started.error());
    }
    return converseIn(session, domain, name);
}

/// The same in a new disposable, whose name goes to `name`. It goes when we leave before it shows a window.
Outcome<std::unique_ptr<Conversation>> converseInDisposable(Session& session, const DomainLaunchArguments& arguments,
                                                            std::string& name) {
    const std::string templateName = arguments.templateName.empty() ? kDesktopTemplate : arguments.templateName;
    const auto job = session.await<QDBusObjectPath>([&](auto done) {
        session.manager().startDisposable({QString::fromStdString(templateName), {}}, std::move(done));
    });
    if (!job) {
        return tl::unexpected<Failure>(job.error());
    }
    const auto started = session.follow(*job, "Starting a disposable domain",
                                        arguments.json ? ProgressStyle::Silent : ProgressStyle::Calm);
    if (!started) {
        return tl::unexpected<Failure>(started.error());
    }
    client::Domain domain(session.connection(), started->value(QStringLiteral("domain")).value<QDBusObjectPath>());
    const auto info = session.await<client::DomainInfo>([&](auto done) { domain.describe(std::move(done)); });
    if (!info) {
        return tl::unexpected<Failure>(info.error());
    }
    name = info->name.toStdString();
    return converseIn(session, domain, name);
}

std::string textOf(const char* text) {
    return {text, std::strlen(text)};
}

const char* nameOf(session_stream::WindowKind kind) {
    switch (kind) {
    case session_stream::WindowKind::Normal:
        return "normal";
    case session_stream::WindowKind::Dialog:
        return "dialog";
    case session_stream::WindowKind::Utility:
        return "utility";
    }
    return "unknown";
}

/// The apps that the guest has, by name.
Outcome<std::vector<Event>> appsOf(Conversation& conversation) {
    conversation.send({.kind = CommandKind::ListApps});
    std::vector<Event> apps;
    while (true) {
        const auto event = conversation.next(
            [](const Event& candidate) {
                return candidate.kind == EventKind::App || candidate.kind == EventKind::AppsListed ||
                       candidate.kind == EventKind::Refused;
            },
            kAnswerTime);
        if (!event) {
            return tl::unexpected<Failure>(event.error());
        }
        if (event->kind == EventKind::Refused) {
            return client::failed(client::code::kGuestFailure, "its desktop session ended meanwhile");
        }
        if (event->kind == EventKind::AppsListed) {
            break;
        }
        if (apps.size() < session_stream::kMostApps) {
            apps.push_back(*event);
        }
    }
    std::ranges::sort(apps, {}, [](const Event& app) { return textOf(app.text.data()); });
    return apps;
}

Json jsonOf(const std::string& name, const menu::Changes& changes) {
    return Json{{"domain", name},
                {"apps", changes.present},
                {"written", changes.written},
                {"removed", changes.removed},
                {"blocked", changes.blocked}};
}

/// Its windows appear in bulkhead-viewer; a second one for the same domain leaves at once.
void showWindows(const std::string& name) {
    if (std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr) {
        QProcess viewer;
        viewer.setProgram(QStringLiteral("bulkhead-viewer"));
        viewer.setArguments({QStringLiteral("--background"), QString::fromStdString(name)});
        // It stays for as long as the domain has windows: who reads our output must not wait for it.
        viewer.setStandardInputFile(QProcess::nullDevice());
        viewer.setStandardOutputFile(QProcess::nullDevice());
        viewer.setStandardErrorFile(QProcess::nullDevice());
        viewer.startDetached();
    }
}

} // namespace

int listApps(const DomainAppsArguments& arguments, Session& session) {
    const auto conversation = converse(session, arguments.name, arguments.json);
    if (!conversation) {
        return report(arguments.name, conversation.error(), arguments.json);
    }
    const auto apps = appsOf(**conversation);
    if (!apps) {
        return report(arguments.name, apps.error(), arguments.json);
    }
    Json rows = Json::array();
    std::vector<std::vector<std::string>> cells;
    for (const Event& app : *apps) {
        rows.push_back(Json{{"id", textOf(app.name.data())},
                            {"name", textOf(app.text.data())},
                            {"categories", textOf(app.extra.data())}});
        cells.push_back({textOf(app.name.data()), textOf(app.text.data()), textOf(app.extra.data())});
    }
    return printOut(arguments.json ? jsonText(rows) : tableText({"APP", "NAME", "CATEGORIES"}, cells));
}

int launchApp(const DomainLaunchArguments& arguments, Session& session) {
    std::string name = arguments.disposable ? "(a new disposable)" : arguments.name;
    const auto conversation =
        arguments.disposable ? converseInDisposable(session, arguments, name) : converse(session, name, arguments.json);
    if (!conversation) {
        return report(name, conversation.error(), arguments.json);
    }
    if (const QString locale = client::userLocale(); !locale.isEmpty()) {
        (*conversation)->send(client::commandWith(CommandKind::Locale, locale));
    }
    (*conversation)->send(client::commandWith(CommandKind::LaunchApp, QString::fromStdString(arguments.app)));
    const auto event = (*conversation)
                           ->next(
                               [](const Event& candidate) {
                                   // An older channel knows no locales.
                                   return candidate.kind == EventKind::AppLaunched ||
                                          (candidate.kind == EventKind::Refused &&
                                           candidate.a == static_cast<std::uint32_t>(CommandKind::LaunchApp));
                               },
                               kAnswerTime);
    if (!event) {
        return report(name, event.error(), arguments.json);
    }
    if (event->kind == EventKind::Refused || event->a == ENOENT) {
        return report(name,
                      {client::code::kNotFound,
                       "it has no app \"" + arguments.app +
                           (arguments.disposable ? "\"; see what a domain of its template has: bulkhead domain apps"
                                                 : "\"; list them with: bulkhead domain apps " + name)},
                      arguments.json);
    }
    if (event->a != 0) {
        return report(name,
                      {client::code::kGuestFailure,
                       "the app \"" + arguments.app + "\" did not start: " + std::strerror(static_cast<int>(event->a))},
                      arguments.json);
    }
    if (!arguments.noViewer) {
        showWindows(name);
    }
    if (arguments.disposable) {
        // Until then it is ours, and goes with us.
        const auto window =
            (*conversation)
                ->next([](const Event& candidate) { return candidate.kind == EventKind::WindowChanged; }, kWindowTime);
        if (!window) {
            return report(name,
                          window.error().code == client::code::kTimedOut
                              ? Failure{client::code::kTimedOut, "the app \"" + arguments.app +
                                                                     "\" showed no window within " +
                                                                     std::to_string(kWindowTime.count()) + " minutes"}
                              : window.error(),
                          arguments.json);
        }
    }
    return printOut(arguments.json
                        ? jsonText(Json{{"domain", name}, {"app", arguments.app}})
                        : "Started " + client::terminalSafe(arguments.app) + " in " + client::terminalSafe(name) +
                              (arguments.disposable ? ", which is gone when its last window is closed.\n" : ".\n"));
}

int listWindows(const DomainWindowsArguments& arguments, Session& session) {
    const auto conversation = converse(session, arguments.name, arguments.json);
    if (!conversation) {
        return report(arguments.name, conversation.error(), arguments.json);
    }
    Json rows = Json::array();
    std::vector<std::vector<std::string>> cells;
    while (const auto event =
               (*conversation)
                   ->next([](const Event& candidate) { return candidate.kind == EventKind::WindowChanged; },
                          kWindowsPause)) {
        const bool sharesHead = (event->flags & session_stream::kSharesHead) != 0;
        rows.push_back(Json{{"window", event->window},
                            {"head", event->head},
                            {"shares_head", sharesHead},
                            {"width", event->width},
                            {"height", event->height},
                            {"kind", nameOf(event->windowKind)},
                            {"transient_for", event->transientFor},
                            {"active", (event->flags & session_stream::kActive) != 0},
                            {"title", textOf(event->text.data())},
                            {"class", textOf(event->name.data())}});
        cells.push_back({std::to_string(event->window), std::to_string(event->head),
                         std::to_string(event->width) + "x" + std::to_string(event->height), textOf(event->name.data()),
                         textOf(event->text.data())});
    }
    return printOut(arguments.json ? jsonText(rows) : tableText({"WINDOW", "HEAD", "SIZE", "CLASS", "TITLE"}, cells));
}

int exportApps(const DomainExportArguments& arguments, Session& session) {
    if (!menu::isExportableDomain(arguments.name)) { // before anything is started for it
        return report(arguments.name,
                      {client::code::kInvalidArgument, "only a domain with a name of its own can be in the menu"},
                      arguments.json);
    }
    const auto conversation = converse(session, arguments.name, arguments.json);
    if (!conversation) {
        return report(arguments.name, conversation.error(), arguments.json);
    }
    const auto events = appsOf(**conversation);
    if (!events) {
        return report(arguments.name, events.error(), arguments.json);
    }
    std::vector<menu::App> apps;
    apps.reserve(events->size());
    for (const Event& app : *events) {
        apps.push_back({textOf(app.name.data()), textOf(app.text.data()), textOf(app.extra.data())});
    }
    const auto changes = menu::Folder(menu::userFolder()).agree(arguments.name, apps);
    if (!changes) {
        return report(arguments.name, changes.error(), arguments.json);
    }
    if (arguments.json) {
        return printOut(jsonText(jsonOf(arguments.name, *changes)));
    }
    std::string text = "Apps of " + arguments.name + " in the menu: " + std::to_string(changes->present.size()) + ".\n";
    for (const std::string& file : changes->blocked) {
        text += "Left alone, since Bulkhead did not make it: " + client::terminalSafe(file) + "\n";
    }
    return printOut(text);
}

int removeExports(const DomainExportArguments& arguments) {
    const auto changes = menu::Folder(menu::userFolder()).removeAll(arguments.name);
    if (!changes) {
        return report(arguments.name, changes.error(), arguments.json);
    }
    return printOut(arguments.json ? jsonText(jsonOf(arguments.name, *changes))
                                   : "Apps of " + arguments.name +
                                         " taken out of the menu: " + std::to_string(changes->removed) + ".\n");
}

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#include "gui/models/session_client.hpp"

#include "client/user_locale.hpp"

#include <array>
#include <cstring>
#include <utility>

namespace bulkhead::gui {
namespace {

using namespace session_stream;

/// Texts are said to end by a zero byte; one that does not ends with its array.
template <std::size_t size> QString textOf(const std::array<char, size>& bytes) {
    return QString::fromUtf8(bytes.data(), static_cast<qsizetype>(::strnlen(bytes.data(), bytes.size())));
}

} // namespace

SessionClient::SessionClient(client::Descriptor stream, QObject* parent)
    : QObject(parent)
    , m_stream(std::move(stream), {[this](const Event& event) { take(event); }, [this] { Q_EMIT closed(); }}) {}

void SessionClient::listApps() {
    send(CommandKind::ListApps);
}

void SessionClient::launch(const QString& appId) {
    if (const QString locale = client::userLocale(); !locale.isEmpty()) {
        send(CommandKind::Locale, locale);
    }
    send(CommandKind::LaunchApp, appId);
}

void SessionClient::send(CommandKind kind, const QString& text) {
    // A peer that takes no command while its socket is full is as good as gone: waiting would freeze the window.
    if (!m_stream.send(client::commandWith(kind, text))) {
        Q_EMIT closed();
    }
}

void SessionClient::take(const Event& event) {
    switch (event.kind) {
    case EventKind::SessionUp:
        m_listing.clear();
        Q_EMIT sessionChanged(event.b != 0);
        break;
    case EventKind::App:
        if (m_listing.size() < static_cast<qsizetype>(kMostApps)) {
            m_listing.append({textOf(event.name), textOf(event.text),
                              textOf(event.extra).split(QLatin1Char(';'), Qt::SkipEmptyParts)});
        }
        break;
    case EventKind::AppsListed:
        Q_EMIT appsListed(std::exchange(m_listing, {}));
        break;
    case EventKind::AppLaunched:
        Q_EMIT launched(textOf(event.name), static_cast<int>(event.a));
        break;
    case EventKind::Refused:
        Q_EMIT refused(static_cast<CommandKind>(event.a));
        break;
    case EventKind::WindowChanged:
    case EventKind::WindowGone:
        break; // the viewer's
    }
}

} // namespace bulkhead::gui

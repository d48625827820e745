// SPDX-License-Identifier: Apache-2.0
#include "channel/session_hub.hpp"

#include "protocol/agent.pb.h"
#include "protocol/locale.hpp"
#include "protocol/session.pb.h"
#include "protocol/session_limits.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <sys/socket.h>

namespace bulkhead::channel {

using protocol::Violation;
using session_stream::Command;
using session_stream::CommandKind;
using session_stream::Event;

namespace {

constexpr std::chrono::seconds kReopenAfter{2};

/// XKB names hold letters, digits and the signs that its lists are made of.
bool isXkbText(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-+,:()").find(c) != std::string_view::npos;
    });
}

/// "model\nlayout\nvariant\noptions"; false when it is not that.
bool putKeyboard(session::Settings& settings, std::string_view text) {
    std::array<std::string, 4> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto end = i + 1 < fields.size() ? text.find('\n') : text.size();
        if (end == std::string_view::npos || !isXkbText(text.substr(0, end))) {
            return false;
        }
        fields[i] = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    settings.set_keyboard_model(fields[0]);
    settings.set_keyboard_layout(fields[1]);
    settings.set_keyboard_variant(fields[2]);
    settings.set_keyboard_options(fields[3]);
    return true;
}

/// Nothing when the command makes no sense.
std::optional<session::Command> commandFor(const Command& command) {
    session::Command message;
    const std::string text(command.text.data());
    switch (command.kind) {
    case CommandKind::CloseWindow:
        message.mutable_close_window()->set_window(command.window);
        return message;
    case CommandKind::ResizeWindow:
        if (!isSide(command.a) || !isSide(command.b)) {
            return std::nullopt;
        }
        message.mutable_resize_window()->set_window(command.window);
        message.mutable_resize_window()->set_width(command.a);
        message.mutable_resize_window()->set_height(command.b);
        return message;
    case CommandKind::ActivateWindow:
        message.mutable_activate_window()->set_window(command.window);
        return message;
    case CommandKind::ListApps:
        message.mutable_list_apps();
        return message;
    case CommandKind::LaunchApp:
        if (!protocol::isAppId(text)) {
            return std::nullopt;
        }
        message.mutable_launch_app()->set_app(text);
        return message;
    case CommandKind::Keyboard:
        return putKeyboard(*message.mutable_settings(), text) ? std::optional(message) : std::nullopt;
    case CommandKind::Dpi:
        if (command.a < protocol::kLeastDpi || command.a > protocol::kMostDpi) {
            return std::nullopt;
        }
        message.mutable_settings()->set_dpi(command.a);
        return message;
    case CommandKind::Locale:
        if (!protocol::isLocaleName(text)) {
            return std::nullopt;
        }
        message.mutable_settings()->set_locale(text);
        return message;
    }
    return std::nullopt;
}

bool namesAWindow(CommandKind kind) {
    return kind == CommandKind::CloseWindow || kind == CommandKind::ResizeWindow || kind == CommandKind::ActivateWindow;
}

} // namespace

SessionHub::SessionHub(protocol::Session& session, Poller& poller)
    : m_session(session)
    , m_poller(poller) {}

tl::expected<UniqueFd, RefusedReason> SessionHub::connect() {
    if (!m_guestHasSessions) {
        return tl::unexpected(RefusedReason::BadRequest);
    }
    std::array<int, 2> fds{};
    if (m_clients.size() >= kMostClients ||
        ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) != 0) {
        return tl::unexpected(RefusedReason::TooMany);
    }
    UniqueFd ours(fds[0]);
    UniqueFd theirs(fds[1]);
    m_clients.emplace_back(m_poller, std::move(ours),
                           [this](SessionClient& client, const Command& command) { onCommand(client, command); });
    if (!m_stream && m_reopen == TimePoint::max()) {
        m_reopen = TimePoint::min();
    }
    return theirs;
}

void SessionHub::openStream(TimePoint now) {
    const auto stream = m_session.open();
    if (!stream) {
        m_reopen = now + kReopenAfter;
        return;
    }
    m_reopen = TimePoint::max();
    agent::StreamHeader header;
    header.mutable_session();
    m_stream.emplace(m_session, *stream);
    m_stream->outbox.push(header.SerializeAsString());
}

Violation SessionHub::onData(std::span<const std::byte> bytes) {
    m_session.consumed(m_stream->id, bytes.size());
    if (!m_stream->reader.feed(bytes)) {
        return Violation::MessageTooLarge;
    }
    while (auto message = m_stream->reader.next()) {
        const auto news = checkSessionEvent(GuestMessage(std::move(*message)));
        if (!news) {
            return news.error();
        }
        onNews(*news);
    }
    return m_stream->reader.isBroken() ? Violation::MessageTooLarge : Violation::None;
}

void SessionHub::onStreamEnded(TimePoint now) {
    m_session.resetStream(m_stream->id);
    m_stream.reset();
    m_reopen = now + kReopenAfter;
    setHeads(0);
}

void SessionHub::setHeads(std::uint32_t heads) {
    m_model.heads = heads;
    ++m_model.life;
    m_model.windows.clear();
    m_apps.clear();
}

void SessionHub::onNews(const SessionNews& news) {
    if (const auto* const up = std::get_if<SessionIsUp>(&news)) {
        setHeads(up->heads);
    } else if (std::holds_alternative<SessionIsDown>(news)) {
        setHeads(0);
    } else if (const auto* const window = std::get_if<WindowIsThere>(&news)) {
        onWindow(window->event);
    } else if (const auto* const gone = std::get_if<WindowIsGone>(&news)) {
        m_model.windows.erase(gone->window);
    } else if (const auto* const app = std::get_if<AppIsThere>(&news)) {
        if (m_apps.size() < session_stream::kMostApps) {
            m_apps.push_back(app->event);
        }
    } else if (std::holds_alternative<AppsAreListed>(news)) {
        const auto apps = std::make_shared<const std::vector<Event>>(std::exchange(m_apps, {}));
        for (auto& client : m_clients) {
            client.giveApps(apps);
        }
    } else if (const auto* const launched = std::get_if<AppIsLaunched>(&news)) {
        for (auto& client : m_clients) {
            if (client.giveLaunched(launched->app, launched->errorNumber)) {
                break;
            }
        }
    }
}

void SessionHub::onWindow(const Event& event) {
    auto known = m_model.windows.find(event.window);
    if (known == m_model.windows.end()) {
        if (m_model.windows.size() >= session_stream::kMostWindows || m_model.heads == 0) {
            return;
        }
        known = m_model.windows.emplace(event.window, SessionModel::Window{}).first;
    } else if (std::memcmp(&known->second.event, &event, sizeof event) == 0) {
        return;
    }
    known->second = {event, m_nextVersion++};
}

void SessionHub::onCommand(SessionClient& client, const Command& command) {
    const auto message = commandFor(command);
    const bool isKnown = !namesAWindow(command.kind) || m_model.windows.contains(command.window);
    if (!message || !isKnown || !m_stream || m_model.heads == 0) {
        client.refuse(command.kind);
        return;
    }
    if (command.kind == CommandKind::ListApps) {
        client.expectApps();
    } else if (command.kind == CommandKind::LaunchApp) {
        client.expectLaunch(message->launch_app().app());
    }
    m_stream->outbox.push(message->SerializeAsString());
}

void SessionHub::turn(TimePoint now) {
    m_clients.remove_if([](const SessionClient& client) { return client.isGone(); });
    if (!m_stream && now >= m_reopen) {
        openStream(now);
    }
    const bool hasRoom = !m_stream || m_stream->outbox.flush();
    for (auto& client : m_clients) {
        // A client that commands faster than the guest takes it has to wait.
        client.setListening(hasRoom);
        client.turn(m_model, now);
    }
}

TimePoint SessionHub::nextDeadline() const {
    TimePoint next = m_reopen;
    for (const auto& client : m_clients) {
        next = std::min(next, client.nextDeadline());
    }
    return next;
}

} // namespace bulkhead::channel

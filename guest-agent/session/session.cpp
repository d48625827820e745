// SPDX-License-Identifier: Apache-2.0
#include "session/session.hpp"

#include "protocol/session_limits.hpp"
#include "session/launcher.hpp"
#include "session/settings.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <utility>

namespace bulkhead::session {
namespace {

using namespace std::chrono_literals;

/// Windows are put in order at most this often: a program that opens and closes them without pause costs a bounded
/// number of mode settings, and the host a bounded number of messages.
constexpr auto kSettlingInterval = 20ms;
/// Events of X before the others get their turn.
constexpr int kEventsPerTurn = 1024;

} // namespace

Result<std::unique_ptr<Session>> Session::create(const Options& options) {
    auto connection = Connection::open(options.display);
    if (!connection) {
        return fail(connection.error());
    }
    auto session = std::unique_ptr<Session>(new Session(options, std::move(*connection)));
    auto manager = WindowManager::create(*session->m_connection, session->m_heads);
    if (!manager) {
        return fail(manager.error());
    }
    session->m_manager = std::move(*manager);
    return session;
}

Session::Session(const Options& options, std::unique_ptr<Connection> connection)
    : m_connection(std::move(connection))
    , m_heads(*m_connection, options.heads)
    , m_link(options.socket)
    , m_places(placesOfEnvironment())
    , m_announcer({.hasRoom = [this] { return m_link.hasRoom(); },
                   .send = [this](const Event& event) { m_link.send(event); }}) {}

bool Session::takeEvents() {
    for (int i = 0; i < kEventsPerTurn; ++i) {
        const Owned<xcb_generic_event_t> event(xcb_poll_for_event(m_connection->x()));
        if (!event) {
            return true;
        }
        handle(*event);
    }
    return false;
}

void Session::handle(const xcb_generic_event_t& event) {
    if (m_heads.handle(event)) {
        m_manager->headsChanged();
    } else {
        m_manager->handle(event);
    }
}

void Session::settleIfDue() {
    const auto now = Clock::now();
    if (!m_manager->isUnsettled() || now < m_nextSettling) {
        return;
    }
    m_manager->settle();
    m_nextSettling = Clock::now() + kSettlingInterval;
    m_announcer.windowsAre(m_manager->windows(), m_manager->active());
}

void Session::serveAgent(bool mayRead) {
    const bool wasConnected = m_link.isConnected();
    if (m_link.connectIfDue(Clock::now())) {
        m_announcer.startOver(m_heads.count());
        // The host is another than before, and this may be another machine.
        m_heads.showAgain();
        m_manager->headsChanged();
    }
    if (mayRead) {
        m_link.receive([this](const Command& command) { obey(command); });
    }
    m_announcer.pump();
    m_link.flush();
    // What the socket took made room.
    for (int i = 0; i < 16 && m_link.isConnected() && !m_link.wantsToWrite(); ++i) {
        m_announcer.pump();
        if (!m_link.wantsToWrite()) {
            break;
        }
        m_link.flush();
    }
    if (wasConnected && !m_link.isConnected()) {
        m_announcer.stop();
    }
}

void Session::obey(const Command& command) {
    switch (command.kind_case()) {
    case Command::kListWindows:
        m_announcer.listWindows();
        break;
    case Command::kCloseWindow:
        m_manager->close(command.close_window().window());
        break;
    case Command::kResizeWindow: {
        const ResizeWindow& resize = command.resize_window();
        const auto side = [](std::uint32_t value) { return static_cast<int>(std::min<std::uint32_t>(value, 65535)); };
        m_manager->resize(resize.window(), clampToHead({side(resize.width()), side(resize.height())}));
        break;
    }
    case Command::kActivateWindow:
        m_manager->activate(command.activate_window().window());
        break;
    case Command::kSettings:
        applySettings(*m_connection, command.settings());
        break;
    case Command::kListApps:
        m_announcer.listApps(m_places);
        break;
    case Command::kLaunchApp:
        launch(command.launch_app().app());
        break;
    case Command::KIND_NOT_SET:
        break; // of a later version
    }
}

void Session::launch(const std::string& app) {
    if (!protocol::isAppId(app)) {
        return; // the host does not send such
    }
    const auto file = findApp(m_places, app);
    m_announcer.launched(app, file ? startProgram({"gio", "launch", *file}) : ENOENT);
}

void Session::wait() {
    xcb_flush(m_connection->x());
    std::array<pollfd, 2> entries{pollfd{m_connection->fd(), POLLIN, 0}, pollfd{m_link.fd(), POLLIN, 0}};
    if (m_link.wantsToWrite()) {
        entries[1].events |= POLLOUT;
    }
    std::optional<Clock::time_point> next = m_link.nextTry();
    if (m_manager->isUnsettled()) {
        next = std::min(next.value_or(m_nextSettling), m_nextSettling);
    }
    int timeout = -1;
    if (next) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
        timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
    }
    // Writing may have read: what waits in the library's queue, poll(2) does not see.
    if (const Owned<xcb_generic_event_t> event{xcb_poll_for_queued_event(m_connection->x())}) {
        handle(*event);
        m_isQuiet = false;
    }
    if (!m_isQuiet) {
        timeout = 0;
    }
    if (::poll(entries.data(), entries.size(), timeout) > 0) {
        m_mayRead = entries[1].revents != 0;
    }
}

Error Session::run() {
    while (m_connection->isAlive()) {
        m_isQuiet = takeEvents();
        settleIfDue();
        serveAgent(std::exchange(m_mayRead, false));
        m_isQuiet = takeEvents() && m_isQuiet; // those that came together with replies
        wait();
    }
    return {ErrorCode::Unavailable, "The X server is gone, and with it the session"};
}

} // namespace bulkhead::session

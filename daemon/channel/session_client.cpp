// SPDX-License-Identifier: Apache-2.0
#include "channel/session_client.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace bulkhead::channel {

using session_stream::Command;
using session_stream::Event;
using session_stream::EventKind;

namespace {

constexpr std::chrono::milliseconds kUpdateInterval{1000 / session_stream::kUpdatesPerSecond};
constexpr std::chrono::milliseconds kLifeInterval{500};
/// Of records about windows in one interval: all windows at once, and as many that have gone.
constexpr unsigned kMostInSlice = 2 * session_stream::kMostWindows;
/// A client that asks on without reading the answers loses the further ones.
constexpr std::size_t kMostAnswers = 64;

} // namespace

SessionClient::SessionClient(Poller& poller, UniqueFd fd, OnCommand onCommand)
    : m_onCommand(std::move(onCommand))
    , m_fd(poller, std::move(fd), EPOLLIN, [this](std::uint32_t events) { onEvents(events); }) {}

void SessionClient::onEvents(std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
        m_isFull = false;
        watch();
    }
    if ((events & EPOLLIN) == 0) {
        if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
            m_fd.close();
        }
        return;
    }
    Command command;
    const ssize_t size = ::recv(m_fd.get(), &command, sizeof command, MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size != static_cast<ssize_t>(sizeof command)) {
        m_fd.close(); // closed, or not a client that keeps to the contract
        return;
    }
    command.text.back() = '\0';
    m_onCommand(*this, command);
}

void SessionClient::watch() {
    // EPOLLERR alone: hang-ups are seen all the same.
    m_fd.setEvents((m_isListening ? EPOLLIN : 0U) | (m_isFull ? EPOLLOUT : 0U) | EPOLLERR);
}

void SessionClient::setListening(bool isListening) {
    if (isListening != m_isListening) {
        m_isListening = isListening;
        watch();
    }
}

bool SessionClient::send(const Event& event) {
    if (isGone() || m_isFull) {
        return false;
    }
    if (::send(m_fd.get(), &event, sizeof event, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof event)) {
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == EINTR) {
        m_isFull = true;
        watch();
    } else {
        m_fd.close();
    }
    return false;
}

bool SessionClient::isTime(TimePoint time, TimePoint now) {
    if (now >= time) {
        return true;
    }
    m_next = std::min(m_next, time);
    return false;
}

bool SessionClient::sendOfWindow(const Event& event, TimePoint now) {
    if (now >= m_sliceBegan + kUpdateInterval) {
        m_sliceBegan = now;
        m_sentInSlice = 0;
    }
    if (m_sentInSlice >= kMostInSlice) {
        return isTime(m_sliceBegan + kUpdateInterval, now);
    }
    if (!send(event)) {
        return false;
    }
    ++m_sentInSlice;
    return true;
}

void SessionClient::turn(const SessionModel& model, TimePoint now) {
    m_next = TimePoint::max();
    if (!isGone() && !m_isFull && sendLife(model, now) && sendGone(model, now) && sendChanged(model, now)) {
        sendAnswers();
    }
}

/// A session that comes and goes costs its clients more than a window does.
bool SessionClient::sendLife(const SessionModel& model, TimePoint now) {
    if (m_knowsLife && m_life == model.life) {
        return true;
    }
    if (m_knowsLife && !isTime(m_lifeSentAt + kLifeInterval, now)) {
        return false;
    }
    Event event;
    event.kind = EventKind::SessionUp;
    event.a = model.heads;
    event.b = model.heads > 0 ? 1 : 0;
    if (!send(event)) {
        return false;
    }
    m_knowsLife = true;
    m_life = model.life;
    m_lifeSentAt = now;
    m_known.clear(); // all windows of an earlier life are gone with it
    return true;
}

bool SessionClient::sendGone(const SessionModel& model, TimePoint now) {
    for (auto known = m_known.begin(); known != m_known.end();) {
        if (model.windows.contains(known->first)) {
            ++known;
        } else if (known->second.isGone) {
            known = isTime(known->second.sentAt + kUpdateInterval, now) ? m_known.erase(known) : std::next(known);
        } else {
            Event gone;
            gone.kind = EventKind::WindowGone;
            gone.window = known->first;
            if (!sendOfWindow(gone, now)) {
                return false;
            }
            known->second.isGone = true;
            ++known;
        }
    }
    return true;
}

bool SessionClient::sendChanged(const SessionModel& model, TimePoint now) {
    for (const auto& [id, window] : model.windows) {
        const auto known = m_known.find(id);
        if (known != m_known.end() && known->second.version == window.version && !known->second.isGone) {
            continue;
        }
        if (known != m_known.end() && !isTime(known->second.sentAt + kUpdateInterval, now)) {
            continue;
        }
        if (!sendOfWindow(window.event, now)) {
            return false;
        }
        m_known[id] = {window.version, now, false};
    }
    return true;
}

bool SessionClient::sendAnswers() {
    while (m_apps) {
        if (m_appsSent < m_apps->size()) {
            if (!send((*m_apps)[m_appsSent])) {
                return false;
            }
            ++m_appsSent;
            continue;
        }
        Event listed;
        listed.kind = EventKind::AppsListed;
        listed.a = static_cast<std::uint32_t>(m_apps->size());
        if (!send(listed)) {
            return false;
        }
        m_apps.reset();
    }
    for (; !m_answers.empty(); m_answers.pop_front()) {
        if (!send(m_answers.front())) {
            return false;
        }
    }
    return true;
}

void SessionClient::giveApps(const AppList& apps) {
    if (m_wantsApps) {
        m_wantsApps = false;
        m_apps = apps;
        m_appsSent = 0;
    }
}

void SessionClient::queue(const Event& event) {
    if (m_answers.size() < kMostAnswers) {
        m_answers.push_back(event);
    }
}

void SessionClient::refuse(session_stream::CommandKind kind) {
    Event event;
    event.kind = EventKind::Refused;
    event.a = static_cast<std::uint32_t>(kind);
    queue(event);
}

void SessionClient::expectLaunch(std::string app) {
    if (m_launches.size() < kMostAnswers) {
        m_launches.push_back(std::move(app));
    }
}

bool SessionClient::giveLaunched(const std::string& app, std::int32_t errorNumber) {
    const auto expected = std::ranges::find(m_launches, app);
    if (expected == m_launches.end()) {
        return false;
    }
    m_launches.erase(expected);
    Event event;
    event.kind = EventKind::AppLaunched;
    event.a = static_cast<std::uint32_t>(errorNumber);
    std::ranges::copy(app, event.name.begin());
    queue(event);
    return true;
}

} // namespace bulkhead::channel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/poller.hpp"
#include "dbus/interfaces/session_stream.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace bulkhead::channel {

/// What is true of the guest's session now.
struct SessionModel {
    struct Window {
        session_stream::Event event;
        std::uint64_t version = 0;
    };
    std::uint32_t heads = 0; ///< 0: there is no session
    std::uint64_t life = 0;  ///< counts ups and downs
    std::map<std::uint32_t, Window> windows;
};
using AppList = std::shared_ptr<const std::vector<session_stream::Event>>;

/// One client's end of a session stream. It is sent what differs from what it knows, so a slow client costs no more
/// memory than the model has windows.
class SessionClient {
public:
    using OnCommand = std::function<void(SessionClient&, const session_stream::Command&)>;
    SessionClient(Poller& poller, UniqueFd fd, OnCommand onCommand);

    /// Sends what is new, as far as the client takes it.
    void turn(const SessionModel& model, TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const { return m_next; }
    /// False holds the client's commands back.
    void setListening(bool isListening);
    [[nodiscard]] bool isGone() const { return !m_fd.isOpen(); }

    void expectApps() { m_wantsApps = true; }
    void giveApps(const AppList& apps);
    void refuse(session_stream::CommandKind kind);
    void expectLaunch(std::string app);
    /// True when this client had asked for it.
    bool giveLaunched(const std::string& app, std::int32_t errorNumber);

private:
    struct Known {
        std::uint64_t version = 0;
        TimePoint sentAt;
        bool isGone = false; ///< kept for a while, so that one that comes and goes is no quicker than one that changes
    };
    void onEvents(std::uint32_t events);
    bool send(const session_stream::Event& event);
    bool sendLife(const SessionModel& model, TimePoint now);
    bool sendGone(const SessionModel& model, TimePoint now);
    bool sendChanged(const SessionModel& model, TimePoint now);
    /// True when it is past `time`; else turn() is to come again then.
    bool isTime(TimePoint time, TimePoint now);
    /// Within what a client gets about windows in all.
    bool sendOfWindow(const session_stream::Event& event, TimePoint now);
    bool sendAnswers();
    void queue(const session_stream::Event& event);
    void watch();

    OnCommand m_onCommand;
    std::map<std::uint32_t, Known> m_known;
    std::uint64_t m_life = 0;
    bool m_knowsLife = false;
    TimePoint m_lifeSentAt;
    TimePoint m_sliceBegan;
    unsigned m_sentInSlice = 0;
    std::deque<session_stream::Event> m_answers;
    std::deque<std::string> m_launches;
    bool m_wantsApps = false;
    AppList m_apps;
    std::size_t m_appsSent = 0;
    bool m_isListening = true;
    bool m_isFull = false; ///< the socket takes no more for now
    TimePoint m_next = TimePoint::max();
    WatchedFd m_fd;
};

} // namespace bulkhead::channel

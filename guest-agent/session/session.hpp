// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "session/agent_link.hpp"
#include "session/announcer.hpp"
#include "session/app_list.hpp"
#include "session/connection.hpp"
#include "session/randr_heads.hpp"
#include "session/window_manager.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace bulkhead::session {

/// The program: windows on one side, the agent on the other.
class Session {
public:
    struct Options {
        std::string display; ///< empty: DISPLAY
        std::string socket;  ///< the agent's
        unsigned heads = 16; ///< at most
    };
    static Result<std::unique_ptr<Session>> create(const Options& options);

    /// Runs until the X server goes. Never a success: the session is over then.
    Error run();

private:
    using Clock = std::chrono::steady_clock;

    Session(const Options& options, std::unique_ptr<Connection> connection);
    /// False: more events may be there.
    bool takeEvents();
    void handle(const xcb_generic_event_t& event);
    void settleIfDue();
    void serveAgent(bool mayRead);
    void obey(const Command& command);
    void launch(const std::string& app);
    void wait();

    std::unique_ptr<Connection> m_connection;
    RandrHeads m_heads;
    std::unique_ptr<WindowManager> m_manager;
    AgentLink m_link;
    AppPlaces m_places;
    Announcer m_announcer;
    Clock::time_point m_nextSettling{};
    bool m_mayRead = false;
    bool m_isQuiet = false; ///< no event of X waits
};

} // namespace bulkhead::session

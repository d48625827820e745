// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/message_writer.hpp"
#include "agent/picture.hpp"
#include "agent/system.hpp"

#include <chrono>
#include <functional>

namespace bulkhead::agent {

/// Answers the control stream's requests.
class ControlStream {
public:
    /// `onShutdown` is called after the answer has been queued; the agent powers off when that answer is on its way.
    ControlStream(protocol::Session& session, protocol::StreamId stream, System& system, Picture& picture,
                  std::function<void(std::chrono::milliseconds)> onShutdown);
    ~ControlStream();
    ControlStream(const ControlStream&) = delete;
    ControlStream& operator=(const ControlStream&) = delete;

    void greet();
    /// False: the host broke the contract (no known request, or too many unanswered); the stream is to be reset.
    [[nodiscard]] bool handle(const std::string& message);
    void flush() { m_writer.flush(); }

private:
    /// 0 or an errno.
    int setClock(const SetClockRequest& request);
    int setHostname(const std::string& name);
    int thaw(const ThawRequest& request);
    void freeze(const Request& request);
    void answer(Reply reply, int errorNumber);

    protocol::Session& m_session;
    System& m_system;
    Picture& m_picture;
    MessageWriter m_writer;
    std::function<void(std::chrono::milliseconds)> m_onShutdown;
};

} // namespace bulkhead::agent

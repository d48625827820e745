// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "channel/records.hpp"
#include "core/ports/guest_links.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::process {
class Poller;
}

namespace bulkhead::link {

/// The daemon's connection to one bulkhead-channel process: sends requests, waits for their answers, tells events. The
/// records have a fixed size and hold no guest text; everything else on the socket ends the connection.
/// Thread-safe. Events come on the poller's thread.
class ChannelConnection {
public:
    struct Events {
        std::function<void(std::uint64_t exec, unsigned remaining)> execFinished;
        /// See GuestLinkEvents::onWindowsChanged().
        std::function<void(bool areOpen)> windowsChanged;
        /// Once: the process said Lost, closed the socket or broke the record format.
        std::function<void(const core::LinkLoss& loss)> lost;
    };
    struct Answer {
        channel::FromChannel record;
        std::vector<UniqueFd> descriptors;
    };

    /// `poller` must outlive this.
    ChannelConnection(UniqueFd socket, process::Poller& poller, Events events);
    /// No event follows.
    ~ChannelConnection();
    ChannelConnection(const ChannelConnection&) = delete;
    ChannelConnection& operator=(const ChannelConnection&) = delete;

    /// Waits for the first record, which says what the guest does.
    Result<core::AdoptedGuest> waitHello(std::chrono::milliseconds timeout);
    /// Waits until the guest has proved itself. TimedOut, Cancelled, GuestFailure.
    Status waitReady(std::chrono::milliseconds timeout, std::stop_token cancel);
    /// Sends a request and waits for its answer. Refused is turned into an error.
    Result<Answer> ask(channel::ToChannel request, std::string_view payload, std::chrono::milliseconds timeout);
    /// None while it lives.
    [[nodiscard]] std::optional<core::LinkLoss> loss() const;
    /// Sets the guest's clock and time zone to the host's; does not wait, and nothing depends on it.
    void setClock();
    /// Tells the guest its name; does not wait, and nothing depends on it: an older agent knows no such request.
    void setHostname(const std::string& name);
    /// Asks the process to end; does not wait.
    void askToClose();
    [[nodiscard]] unsigned runningExecs() const;
    [[nodiscard]] core::GuestUse use() const;

private:
    void onReadable();
    /// False: the connection is lost, and nothing of it may be touched any more.
    bool handle(const channel::FromChannel& record, std::vector<UniqueFd> descriptors);
    void loseOnce(const core::LinkLoss& loss);
    Status send(const channel::ToChannel& request, std::string_view payload);

    UniqueFd m_socket;
    process::Poller& m_poller;
    Events m_events;
    mutable std::mutex m_mutex;
    std::condition_variable_any m_changed;
    std::uint64_t m_nextRequest = 1;
    std::map<std::uint64_t, std::optional<Answer>> m_pending;
    bool m_hasHello = false;
    bool m_isReady = false;
    unsigned m_execs = 0;
    bool m_hasWindows = false;
    bool m_isShowing = true; ///< some window is open, or it is not known
    std::uint64_t m_uses = 0;
    std::optional<core::LinkLoss> m_lost;
};

} // namespace bulkhead::link

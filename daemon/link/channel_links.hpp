// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/displays.hpp"
#include "core/ports/guest_clock.hpp"
#include "core/ports/guest_links.hpp"
#include "link/channel_connection.hpp"
#include "link/link_records.hpp"

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

namespace bulkhead::process {
class ChildReaper;
class Poller;
} // namespace bulkhead::process

namespace bulkhead::link {

/// GuestLinks over bulkhead-channel processes. A channel process outlives the daemon: its control socket lies at
/// RUNTIME/channels/INSTANCE.sock, and a later daemon connects there again. Beside it lies what the link was opened
/// with (LinkRecords), so that a lost one can be made anew.
class ChannelLinks final : public core::GuestLinks,
                           public core::GuestSessions,
                           public core::GuestClock,
                           public core::GuestUses {
public:
    struct Places {
        std::filesystem::path program; ///< bulkhead-channel
        std::filesystem::path sockets; ///< the folder RUNTIME/channels; made here, root only
    };
    /// `poller`, `reaper` and `events` must outlive this. Throws std::filesystem::filesystem_error when the folder
    /// cannot be made.
    ChannelLinks(Places places, process::Poller& poller, process::ChildReaper& reaper, core::GuestLinkEvents& events);
    ~ChannelLinks() override;

    Status open(const core::GuestLinkSpec& spec, std::chrono::milliseconds timeout, std::stop_token cancel) override;
    Result<core::AdoptedGuest> adopt(const InstanceId& instance) override;
    Status reopen(const InstanceId& instance, std::chrono::milliseconds timeout) override;
    Result<core::ExecStreams> exec(const InstanceId& instance, const core::ExecRequest& request) override;
    Result<core::GuestStatus> status(const InstanceId& instance) override;
    Status shutdown(const InstanceId& instance, std::chrono::milliseconds grace) override;
    Status quiesce(const InstanceId& instance) override;
    Status rejuvenate(const InstanceId& instance, const core::Rejuvenation& how) override;
    Status freeze(const InstanceId& instance, const core::Picture& picture) override;
    Status thaw(const InstanceId& instance) override;
    void close(const InstanceId& instance) override;
    unsigned runningExecs(const InstanceId& instance) override;
    core::GuestUse useOf(const InstanceId& instance) override;

    Result<UniqueFd> openSession(const InstanceId& instance) override;

    Status setToHosts(const InstanceId& instance) override;

private:
    // Shared: a call may wait on a connection while another thread closes it.
    using Connection = std::shared_ptr<ChannelConnection>;
    using Deadline = std::chrono::steady_clock::time_point;
    struct Link {
        Connection connection;
        /// Set once the guest has proved itself: what is lost before is the business of whoever waits for that.
        std::shared_ptr<std::atomic<bool>> isLive;
    };

    [[nodiscard]] std::filesystem::path socketPath(const InstanceId& instance) const;
    Result<UniqueFd> connectGuest(const core::GuestLinkSpec& spec, Deadline deadline, const std::stop_token& cancel);
    Status startProcess(const core::GuestLinkSpec& spec, const UniqueFd& guest);
    Result<Link> connect(const InstanceId& instance);
    Status establish(const core::GuestLinkSpec& spec, std::chrono::milliseconds timeout, const std::stop_token& cancel);
    void endProcess(const InstanceId& instance);
    Result<Connection> find(const InstanceId& instance);

    Places m_places;
    LinkRecords m_records;
    process::Poller& m_poller;
    process::ChildReaper& m_reaper;
    core::GuestLinkEvents& m_events;
    std::mutex m_mutex;
    std::map<InstanceId, Link> m_links;
    std::map<InstanceId, std::string> m_crashed; ///< how its channel process ended that should not have
};

} // namespace bulkhead::link

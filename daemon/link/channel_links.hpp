// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_links.hpp"
#include "link/channel_connection.hpp"

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
/// RUNTIME/channels/INSTANCE.sock, and a later daemon connects there again.
class ChannelLinks final : public core::GuestLinks {
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
    Result<unsigned> adopt(const InstanceId& instance) override;
    Result<core::ExecStreams> exec(const InstanceId& instance, const core::ExecRequest& request) override;
    Result<core::GuestStatus> status(const InstanceId& instance) override;
    Status shutdown(const InstanceId& instance, std::chrono::milliseconds grace) override;
    void close(const InstanceId& instance) override;
    unsigned runningExecs(const InstanceId& instance) override;

private:
    // Shared: a call may wait on a connection while another thread closes it.
    using Connection = std::shared_ptr<ChannelConnection>;

    [[nodiscard]] std::filesystem::path socketPath(const InstanceId& instance) const;
    Status startProcess(const core::GuestLinkSpec& spec);
    Result<Connection> connect(const InstanceId& instance);
    Result<Connection> find(const InstanceId& instance);

    Places m_places;
    process::Poller& m_poller;
    process::ChildReaper& m_reaper;
    core::GuestLinkEvents& m_events;
    std::mutex m_mutex;
    std::map<InstanceId, Connection> m_connections;
};

} // namespace bulkhead::link

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

namespace bulkhead::core {

/// What happens on a link. Called from the adapter's own thread: hand over and return.
class GuestLinkEvents {
public:
    virtual ~GuestLinkEvents() = default;
    /// A program ended; `remaining` programs still run.
    virtual void onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) = 0;
    /// The channel process ended: the guest closed the line, broke the protocol, or the process crashed. `reason` is
    /// one of our own texts, never the guest's.
    virtual void onLinkLost(const InstanceId& instance, const std::string& reason) = 0;
};

struct GuestLinkSpec {
    InstanceId instance;
    std::filesystem::path agentSocket; ///< to connect to
    GuestToken token{};
    uid_t channelUid = 0; ///< the channel process runs as this
};

/// The daemon's side of the bulkhead-channel processes, one per running instance. Thread-safe; calls block.
class GuestLinks {
public:
    virtual ~GuestLinks() = default;
    /// Connects, starts the channel process, waits until the guest's agent has proved itself. Errors: TimedOut (the
    /// guest did not answer in time), GuestFailure (it broke the protocol or went away), Cancelled.
    virtual Status open(const GuestLinkSpec& spec, std::chrono::milliseconds timeout, std::stop_token cancel) = 0;
    /// Finds the channel process that an earlier daemon started. Gives the number of programs that run in the guest.
    /// NotFound when there is none any more.
    virtual Result<unsigned> adopt(const InstanceId& instance) = 0;
    virtual Result<ExecStreams> exec(const InstanceId& instance, const ExecRequest& request) = 0;
    virtual Result<GuestStatus> status(const InstanceId& instance) = 0;
    /// Asks the guest to power off; returns when it has said yes, not when it is off.
    virtual Status shutdown(const InstanceId& instance, std::chrono::milliseconds grace) = 0;
    /// Ends the channel process; its streams end. No event follows. Success when there is none.
    virtual void close(const InstanceId& instance) = 0;
    /// Programs that run in the guest.
    virtual unsigned runningExecs(const InstanceId& instance) = 0;
};

} // namespace bulkhead::core

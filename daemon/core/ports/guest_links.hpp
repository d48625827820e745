// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "core/model/instance.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>

namespace bulkhead::core {

/// Why a link ended. `reason` is one of our own texts, never the guest's.
struct LinkLoss {
    std::string reason;
    /// The guest broke the protocol: it is not spoken to again. Otherwise (the line closed, the channel process ended)
    /// the guest may be well.
    bool isViolation = false;
};

/// What happens on a link. Called from the adapter's own thread: hand over and return.
class GuestLinkEvents {
public:
    virtual ~GuestLinkEvents() = default;
    /// A program ended; `remaining` programs still run.
    virtual void onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) = 0;
    /// The windows that carry a domain (see AdoptedGuest) are open, or the last one has closed for good.
    virtual void onWindowsChanged(const InstanceId& instance, bool areOpen) = 0;
    /// The channel process ended; the programs that ran through it are over.
    virtual void onLinkLost(const InstanceId& instance, const LinkLoss& loss) = 0;
};

/// What an earlier daemon's guest does.
struct AdoptedGuest {
    unsigned programs = 0; ///< that run in it through us
    /// Windows carry it, and some are open: the first one came before any program was run through us.
    bool hasWindows = false;
};

struct GuestLinkSpec {
    InstanceId instance;
    Transport transport = Transport::VirtioSerial;
    std::filesystem::path agentSocket; ///< VirtioSerial: to connect to
    std::optional<std::uint32_t> cid;  ///< Vsock: to connect to, at the agent's port
    GuestToken token{};
    uid_t channelUid = 0; ///< the channel process runs as this
    std::string hostname; ///< what the guest calls itself; empty: as its image says
};

/// What makes a guest that was begun from a memory image another one than its siblings.
struct Rejuvenation {
    /// The image was taken before the home disk was mounted.
    bool mountsHome = false;
};

/// What is about to be taken of a running guest.
struct Picture {
    bool ofMemory = false; ///< the guest's memory is captured: whoever begins from it finds the programs as they were
};

/// The daemon's side of the bulkhead-channel processes, one per running instance. Thread-safe; calls block.
class GuestLinks {
public:
    virtual ~GuestLinks() = default;
    /// Connects, starts the channel process, waits until the guest's agent has proved itself, and sets the guest's
    /// clock, time zone and name. Errors: TimedOut (the guest did not answer in time), GuestFailure (it broke the
    /// protocol or went away), Cancelled.
    virtual Status open(const GuestLinkSpec& spec, std::chrono::milliseconds timeout, std::stop_token cancel) = 0;
    /// Finds the channel process that an earlier daemon started, and sets the guest's clock (the guest may have been
    /// paused). NotFound when there is none any more.
    virtual Result<AdoptedGuest> adopt(const InstanceId& instance) = 0;
    /// As open(), with what open() was given, also by an earlier daemon: for a link that was lost while the guest
    /// lives, and so has its name still. Whatever is left of the lost one is ended first. NotFound when it was never
    /// opened.
    virtual Status reopen(const InstanceId& instance, std::chrono::milliseconds timeout) = 0;
    virtual Result<ExecStreams> exec(const InstanceId& instance, const ExecRequest& request) = 0;
    virtual Result<GuestStatus> status(const InstanceId& instance) = 0;
    /// Asks the guest to power off; returns when it has said yes, not when it is off.
    virtual Status shutdown(const InstanceId& instance, std::chrono::milliseconds grace) = 0;
    /// Has the guest write everything to its disks, before its memory is captured. Busy: it has not come to rest since
    /// its start.
    virtual Status quiesce(const InstanceId& instance) = 0;
    /// New random numbers, clock and identity, in a guest that was begun from a memory image; before any program runs.
    virtual Status rejuvenate(const InstanceId& instance, const Rejuvenation& how) = 0;
    /// Before a picture of a running guest is taken: it writes everything to its disks; without its memory its file
    /// systems also stand still until thaw() (by themselves they go on after 10 s). TimedOut, GuestFailure; WrongState:
    /// the agent of its template knows no pictures.
    virtual Status freeze(const InstanceId& instance, const Picture& picture) = 0;
    /// After it: file systems go on, the clock is set (it stood while the guest was paused). Success when nothing was
    /// frozen.
    virtual Status thaw(const InstanceId& instance) = 0;
    /// Ends the channel process; its streams end. No event follows. Success when there is none. Not
    /// while an open() or reopen() of the instance is under way.
    virtual void close(const InstanceId& instance) = 0;
    /// Programs that run in the guest; of a lost link: those that ran when it was lost.
    virtual unsigned runningExecs(const InstanceId& instance) = 0;
};

/// Whether a guest is used, as far as that is known without asking it.
struct GuestUse {
    /// A program that was begun through us runs, or a window is open; also when nothing is known.
    bool isInUse = true;
    /// Of all uses since the link is there: programs that began or ended, windows that came or went, clients.
    std::uint64_t count = 0;
};

/// Thread-safe, and returns at once.
class GuestUses {
public:
    virtual ~GuestUses() = default;
    virtual GuestUse useOf(const InstanceId& instance) = 0;
};

} // namespace bulkhead::core

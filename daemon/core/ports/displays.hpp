// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <string>

namespace bulkhead::core {

/// The screens of emulators. Blocking; thread-safe.
class Displays {
public:
    virtual ~Displays() = default;
    /// One connection to the emulator's SPICE server, which listens nowhere: a client needs one for each channel.
    /// WrongState when the instance has no display, NotFound when it is gone.
    virtual Result<UniqueFd> openDisplay(const InstanceId& instance) = 0;
    struct Picture {
        UniqueFd bytes;   ///< a file in memory, at its beginning
        std::string type; ///< "image/png", or what else the hypervisor makes
    };
    /// What a head shows now. WrongState as above, InvalidArgument when there is no such head, LimitExceeded when it is
    /// larger than any screen may be.
    virtual Result<Picture> screenshot(const InstanceId& instance, unsigned head) = 0;
};

/// The guests' graphical sessions. Blocking; thread-safe.
class GuestSessions {
public:
    virtual ~GuestSessions() = default;
    /// A client's end of a session stream (dbus/interfaces/session_stream.hpp). WrongState when the guest's agent knows
    /// no sessions, Unavailable when there is no channel to it.
    virtual Result<UniqueFd> openSession(const InstanceId& instance) = 0;
};

} // namespace bulkhead::core

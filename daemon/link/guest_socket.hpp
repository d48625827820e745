// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>

namespace bulkhead::link {

/// What one try to connect came to: a descriptor, or errno.
struct ConnectTry {
    UniqueFd socket;
    int error = 0;
};

/// One try that takes at most about `atMost`; ends early with ECANCELED when `cancel` is stopped.
using ConnectOnce = std::function<ConnectTry(std::chrono::milliseconds atMost, const std::stop_token& cancel)>;

/// Tries until it works: a guest that boots has no vsock driver yet (time-out), then one, but nobody who listens
/// (reset). GuestFailure when no emulator has the address any more (ENODEV, for longer than a moment), TimedOut,
/// Cancelled; HostFailure for what does not go away by itself.
Result<UniqueFd> connectWhenReady(const ConnectOnce& connectOnce, std::chrono::milliseconds timeout,
                                  const std::stop_token& cancel);

/// One try to connect to a guest over AF_VSOCK. The descriptor is non-blocking and close-on-exec.
ConnectTry connectVsockOnce(std::uint32_t cid, std::uint32_t port, std::chrono::milliseconds atMost,
                            const std::stop_token& cancel);

} // namespace bulkhead::link

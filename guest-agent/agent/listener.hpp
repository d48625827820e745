// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace bulkhead::agent {

/// A socket that the host connects to.
struct Listener {
    UniqueFd socket; ///< listens; non-blocking
    /// Whether a connection that was accepted comes from the host. (Who on the host it is, only the proof tells.)
    std::function<bool(int fd)> isHost;
};

/// AF_VSOCK on this port of whatever address the guest has now: a restore under another address changes nothing here.
Result<Listener> listenVsock(std::uint32_t port);
/// A Unix socket that stands in for it in tests; takes everybody.
Result<Listener> listenUnix(const std::string& path);

/// Whether the machine has a vsock device (with or without a driver). Then the host is met there: a virtio-serial
/// device beside it is for other ports than ours.
bool hasVsock();

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bulkhead::link {

/// A socket of this host that takes AF_VSOCK connections.
struct VsockListener {
    std::uint32_t cid = 0; ///< the address that it is bound to; UINT32_MAX is any
    std::uint32_t port = 0;
    bool operator==(const VsockListener&) const = default;

    /// A guest reaches the host as CID 2. What is bound to another address (that of a host which is itself a guest, or
    /// the loopback's) it does not reach.
    [[nodiscard]] bool isReachableFromGuests() const;
};

/// What one datagram of the kernel's answer holds.
struct VsockDump {
    std::vector<VsockListener> listeners;
    bool isLast = false;
};
/// HostFailure when the datagram is no whole answer to the request with this number, or carries the kernel's error.
/// Looks at no byte outside of `datagram`.
Result<VsockDump> parseVsockDump(std::span<const std::byte> datagram, std::uint32_t sequence);

/// The kernel's own list (sock_diag(7)). Any process may ask. Unavailable when the kernel has no vsock_diag.
Result<std::vector<VsockListener>> vsockListeners();

} // namespace bulkhead::link

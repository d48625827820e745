// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/host.hpp"
#include "link/vsock_listeners.hpp"
#include "link/vsock_transport.hpp"

#include <functional>

namespace bulkhead::link {

/// core::HostProbe for the way to guests: the check "channel" says which transport is in force and why, and with vsock
/// the check "vsock listeners" warns of programs of this host that every guest can connect to.
class ChannelProbe final : public core::HostProbe {
public:
    using Listeners = std::function<Result<std::vector<VsockListener>>()>;
    /// `transport` must outlive this.
    explicit ChannelProbe(core::TransportProbe& transport, Listeners listeners = vsockListeners)
        : m_transport(transport)
        , m_listeners(std::move(listeners)) {}
    std::vector<core::Finding> examine(bool refresh) override;

private:
    core::Finding examineListeners();

    core::TransportProbe& m_transport;
    Listeners m_listeners;
};

} // namespace bulkhead::link

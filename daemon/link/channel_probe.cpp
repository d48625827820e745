// SPDX-License-Identifier: Apache-2.0
#include "link/channel_probe.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace bulkhead::link {
namespace {

using core::Finding;
using core::FindingStatus;
using core::Transport;

constexpr std::size_t kMostShown = 8;

} // namespace

std::vector<Finding> ChannelProbe::examine(bool) {
    constexpr auto check = "channel";
    const auto chosen = m_transport.choose();
    if (!chosen) {
        return {{check, FindingStatus::Problem, chosen.error().message, std::string(VsockTransport::kRemedy)}};
    }
    const std::string text = std::string(nameOf(chosen->transport)) + " is used: " + chosen->reason;
    std::vector<Finding> findings{{check, FindingStatus::Ok, text, ""}};
    // Guests without that device reach nobody.
    if (chosen->transport == Transport::Vsock) {
        findings.push_back(examineListeners());
    }
    return findings;
}

Finding ChannelProbe::examineListeners() {
    constexpr auto check = "vsock listeners";
    const auto listeners = m_listeners();
    if (!listeners) {
        return {check, FindingStatus::Warning,
                "whether guests can connect to programs of this host is not known: " + listeners.error().message,
                "modprobe vsock_diag"};
    }
    std::set<std::uint32_t> ports;
    for (const auto& listener : *listeners) {
        if (listener.isReachableFromGuests()) {
            ports.insert(listener.port);
        }
    }
    if (ports.empty()) {
        return {check, FindingStatus::Ok, "no program of this host takes AF_VSOCK connections", ""};
    }
    std::string names;
    std::size_t shown = 0;
    for (const auto port : ports) {
        if (++shown > kMostShown) {
            names += " and " + std::to_string(ports.size() - kMostShown) + " more";
            break;
        }
        names += (names.empty() ? "" : ", ") + std::to_string(port);
    }
    return {check, FindingStatus::Warning,
            "every guest can connect to programs of this host that are not ours, on AF_VSOCK port " + names,
            "see who it is with: ss --vsock -l -p; end it, or start bulkheadd with --transport=virtio-serial"};
}

} // namespace bulkhead::link

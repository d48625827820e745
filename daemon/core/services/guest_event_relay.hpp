// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ports/guest_links.hpp"

#include <atomic>
#include <functional>

namespace bulkhead::core {

/// Breaks the circle "links tell lifecycle, lifecycle uses links" at composition: what comes before attach() is
/// dropped, and nothing can come then, since no link is open yet. Thread-safe.
class GuestEventRelay final : public GuestLinkEvents {
public:
    struct Targets {
        GuestLinkEvents& links;
        std::function<void(const InstanceId&)> emulatorGone;
    };
    /// `targets` must outlive every link and watch.
    void attach(const Targets& targets) { m_targets = &targets; }

    void onExecFinished(const InstanceId& instance, std::uint64_t exec, unsigned remaining) override {
        if (const auto* targets = m_targets.load()) {
            targets->links.onExecFinished(instance, exec, remaining);
        }
    }
    void onWindowsChanged(const InstanceId& instance, bool areOpen) override {
        if (const auto* targets = m_targets.load()) {
            targets->links.onWindowsChanged(instance, areOpen);
        }
    }
    void onLinkLost(const InstanceId& instance, const LinkLoss& loss) override {
        if (const auto* targets = m_targets.load()) {
            targets->links.onLinkLost(instance, loss);
        }
    }
    void onEmulatorGone(const InstanceId& instance) {
        if (const auto* targets = m_targets.load()) {
            targets->emulatorGone(instance);
        }
    }

private:
    std::atomic<const Targets*> m_targets = nullptr;
};

} // namespace bulkhead::core

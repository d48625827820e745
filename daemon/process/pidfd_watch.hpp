// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "core/ports/host.hpp"
#include "process/poller.hpp"

#include <map>
#include <memory>
#include <mutex>

namespace bulkhead::process {

/// core::EmulatorWatch over pidfd_open(2). The process need not be our child. Give the number right after the start: a
/// pidfd follows one process for good, but a number may be given again once its process has ended and was collected.
class PidfdWatch final : public core::EmulatorWatch {
public:
    /// `poller` must outlive this.
    explicit PidfdWatch(Poller& poller)
        : m_poller(poller) {}
    /// Not from inside `gone`.
    ~PidfdWatch() override;
    PidfdWatch(const PidfdWatch&) = delete;
    PidfdWatch& operator=(const PidfdWatch&) = delete;

    /// Replaces an earlier watch of the same instance.
    Status watch(const InstanceId& instance, pid_t pid, std::function<void()> gone) override;
    /// When this returns, `gone` does not run and will not; so never call it while holding a lock that `gone` takes.
    /// From inside `gone` it returns at once.
    void forget(const InstanceId& instance) override;

private:
    struct Entry {
        UniqueFd pidfd; ///< not open: the process was gone already, and `timer` tells so
        Poller::TimerId timer = 0;
        std::function<void()> gone;
    };

    void tell(const InstanceId& instance, const Entry* which);
    void stop(const Entry& entry);

    Poller& m_poller;
    std::mutex m_mutex;
    std::map<InstanceId, std::shared_ptr<Entry>> m_entries;
};

} // namespace bulkhead::process

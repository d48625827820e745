// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "process/poller.hpp"
#include "process/spawn.hpp"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace bulkhead::process {

/// Collects children that live on, so that none stays a zombie. A child that outlives the daemon is collected by init.
class ChildReaper {
public:
    /// Called on the poller's thread; none: somebody else collected it.
    using Ended = std::function<void(std::optional<ExitStatus> status)>;

    /// `poller` must outlive this.
    explicit ChildReaper(Poller& poller)
        : m_poller(poller) {}
    /// Children that still run are left alone, and their `ended` is never called.
    ~ChildReaper();
    ChildReaper(const ChildReaper&) = delete;
    ChildReaper& operator=(const ChildReaper&) = delete;

    /// Takes the child over. `ended` is called once, after the child was collected.
    Status keep(Child child, Ended ended = {});

private:
    struct Entry {
        Child child;
        Ended ended;
    };
    void collect(pid_t pid);

    Poller& m_poller;
    std::mutex m_mutex;
    std::map<pid_t, std::shared_ptr<Entry>> m_children;
};

} // namespace bulkhead::process

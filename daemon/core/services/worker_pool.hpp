// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace bulkhead::core {

/// A fixed number of threads that run what is posted, in order of posting. For work that blocks (hypervisor, disk,
/// guest): the loop thread never does. The destructor runs what was posted before, drops what is still delayed, and
/// joins.
class WorkerPool {
public:
    explicit WorkerPool(unsigned threads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// Thread-safe. A task that throws ends the process: faults are not survived half-done (the reconciler cleans up).
    void post(std::function<void()> task);
    /// Not before `delay` has passed.
    void postAfter(std::chrono::milliseconds delay, std::function<void()> task);

private:
    using Clock = std::chrono::steady_clock;
    void work();

    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<std::function<void()>> m_tasks;
    std::multimap<Clock::time_point, std::function<void()>> m_delayed;
    bool m_ending = false;
    std::vector<std::thread> m_threads;
};

} // namespace bulkhead::core

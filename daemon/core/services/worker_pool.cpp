// SPDX-License-Identifier: Apache-2.0
#include "core/services/worker_pool.hpp"

#include <utility>

namespace bulkhead::core {

WorkerPool::WorkerPool(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
        m_threads.emplace_back([this] { work(); });
    }
}

WorkerPool::~WorkerPool() {
    {
        const std::lock_guard lock(m_mutex);
        m_ending = true;
    }
    m_wake.notify_all();
    for (auto& thread : m_threads) {
        thread.join();
    }
}

void WorkerPool::post(std::function<void()> task) {
    {
        const std::lock_guard lock(m_mutex);
        m_tasks.push_back(std::move(task));
    }
    m_wake.notify_one();
}

void WorkerPool::postAfter(std::chrono::milliseconds delay, std::function<void()> task) {
    {
        const std::lock_guard lock(m_mutex);
        m_delayed.emplace(Clock::now() + delay, std::move(task));
    }
    // All: the one that is woken may be waiting for a later time than this.
    m_wake.notify_all();
}

void WorkerPool::work() {
    std::unique_lock lock(m_mutex);
    while (true) {
        while (!m_delayed.empty() && m_delayed.begin()->first <= Clock::now()) {
            m_tasks.push_back(std::move(m_delayed.begin()->second));
            m_delayed.erase(m_delayed.begin());
        }
        if (m_tasks.empty()) {
            if (m_ending) {
                return;
            }
            if (m_delayed.empty()) {
                m_wake.wait(lock);
            } else {
                // A copy: while this waits, another worker takes the entry out.
                const auto next = m_delayed.begin()->first;
                m_wake.wait_until(lock, next);
            }
            continue;
        }
        {
            const auto task = std::move(m_tasks.front());
            m_tasks.pop_front();
            lock.unlock();
            task();
            // It ends here, without our lock: what it holds may wait, in its end, for somebody who is about to post (an
            // answer on the bus for the bus's thread).
        }
        lock.lock();
    }
}

} // namespace bulkhead::core

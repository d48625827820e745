// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/event_loop.hpp"
#include "base/unique_fd.hpp"

#include <functional>

namespace bulkhead::agent {

/// Work that may hang in the kernel for long, done by a process of its own while the loop goes on. That process is
/// reaped as any that nobody asked for; it lives on when this goes, since nothing ends a process that hangs like that.
class Aside {
public:
    /// `work` gives 0 or an errno, and what it changes in memory is lost. `done` gets that number, from the loop, once:
    /// EAGAIN when no process could be made, EIO when it was killed. `done` may destroy this.
    Aside(EventLoop& loop, const std::function<int()>& work, std::function<void(int)> done);
    /// `done` is not called any more.
    ~Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

private:
    void read();

    EventLoop& m_loop;
    std::function<void(int)> m_done;
    UniqueFd m_result;
    EventLoop::WatchId m_watch = 0;
    EventLoop::TimerId m_refusal = 0;
};

} // namespace bulkhead::agent

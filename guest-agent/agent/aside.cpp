// SPDX-License-Identifier: Apache-2.0
#include "agent/aside.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {

Aside::Aside(EventLoop& loop, const std::function<int()>& work, std::function<void(int)> done)
    : m_loop(loop)
    , m_done(std::move(done)) {
    std::array<int, 2> ends{-1, -1};
    pid_t pid = -1;
    if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
        pid = ::fork();
    }
    m_result = UniqueFd(ends[0]);
    const UniqueFd writer(ends[1]);
    if (pid == 0) {
        std::signal(SIGPIPE, SIG_IGN); // whoever asked may be gone
        // Programs must not wait for the ends of their pipes because of a process that hangs.
        constexpr int kResult = STDERR_FILENO + 1;
        ::dup2(writer.get(), kResult);
        ::close_range(kResult + 1, ~0U, 0);
        const int outcome = work();
        static_cast<void>(!::write(kResult, &outcome, sizeof outcome));
        ::_exit(0);
    }
    if (pid < 0) {
        m_refusal = m_loop.after(EventLoop::Clock::duration::zero(), [this] {
            m_refusal = 0;
            std::exchange(m_done, {})(EAGAIN);
        });
        return;
    }
    m_watch = m_loop.watch(m_result.get(), EPOLLIN, [this](std::uint32_t) { read(); });
}

Aside::~Aside() {
    m_loop.cancel(m_refusal);
    m_loop.unwatch(m_watch);
}

void Aside::read() {
    int outcome = EIO;
    const ssize_t count = ::read(m_result.get(), &outcome, sizeof outcome);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    m_loop.unwatch(std::exchange(m_watch, 0));
    const auto done = std::exchange(m_done, {});
    done(count == static_cast<ssize_t>(sizeof outcome) ? outcome : EIO);
}

} // namespace bulkhead::agent

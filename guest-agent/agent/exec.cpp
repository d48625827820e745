// SPDX-License-Identifier: Apache-2.0
#include "agent/exec.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <limits>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {
namespace {

ExecFailed::Reason reasonFor(const ChildFailure& failure) {
    switch (failure.stage) {
    case ChildFailure::Stage::Directory:
        return ExecFailed::NO_SUCH_DIRECTORY;
    case ChildFailure::Stage::Lookup:
        if (failure.errorNumber == ENOENT || failure.errorNumber == ENOTDIR) {
            return ExecFailed::COMMAND_NOT_FOUND;
        }
        // EAGAIN: RLIMIT_NPROC was passed before execve(2).
        return failure.errorNumber == EAGAIN ? ExecFailed::LIMIT : ExecFailed::COMMAND_NOT_EXECUTABLE;
    case ChildFailure::Stage::Setup:
        break;
    }
    return ExecFailed::UNKNOWN;
}

constexpr std::size_t kMaxWaitingSignals = 32;

} // namespace

Exec::Exec(EventLoop& loop, protocol::Session& session, Streams streams, Child child, bool terminal,
           std::function<void(const ExecEvent&)> report)
    : m_loop(loop)
    , m_pid(child.pid)
    , m_terminal(terminal)
    , m_report(std::move(report))
    , m_output(loop, session, streams.stdio, std::move(child.output), [this] { finishIfOver(); })
    , m_errors(loop, session, streams.errors, std::move(child.errors), [this] { finishIfOver(); })
    , m_input(loop, session, streams.stdio, std::move(child.input), terminal)
    , m_childReport(std::move(child.report)) {}

Exec::~Exec() {
    m_loop.unwatch(m_reportWatch);
    releaseLeader(); // its end may have come after the last look; the reaper has left it to us
}

void Exec::releaseLeader() {
    if (m_pid > 0) {
        ::waitpid(m_pid, nullptr, WNOHANG);
        m_pid = -1; // another's by now
    }
}

void Exec::start() {
    m_reportWatch = m_loop.watch(m_childReport.get(), EPOLLIN, [this](std::uint32_t) { readReport(); });
    m_output.start();
    if (!m_terminal) {
        m_errors.start();
    }
    m_input.start();
}

void Exec::readReport() {
    if (!m_childReport) {
        return;
    }
    ChildFailure failure;
    const ssize_t count = ::read(m_childReport.get(), &failure, sizeof failure);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    m_loop.unwatch(m_reportWatch);
    m_reportWatch = 0;
    m_childReport.reset();
    if (count == static_cast<ssize_t>(sizeof failure)) {
        fail(failure);
        return;
    }
    m_started = true;
    ExecEvent event;
    event.mutable_started()->set_pid(static_cast<std::uint32_t>(m_pid));
    m_report(event);
    for (const int number : std::exchange(m_waitingSignals, {})) {
        signal(static_cast<std::uint32_t>(number));
    }
    // The host gave a stream up before the program was there (or never had one): it gets SIGPIPE as if it were later.
    if (!m_output.hasReader()) {
        m_output.abandon();
    }
    if (!m_terminal && !m_errors.hasReader()) {
        m_errors.abandon();
    }
}

void Exec::fail(const ChildFailure& failure) {
    m_over = true;
    m_input.discard();
    m_output.endWhenEmpty();
    if (!m_terminal) {
        m_errors.endWhenEmpty();
    }
    ExecEvent event;
    event.mutable_failed()->set_reason(reasonFor(failure));
    event.mutable_failed()->set_error_number(failure.errorNumber);
    m_report(event);
}

void Exec::onWritable(protocol::StreamId stream) {
    if (m_output.stream() == stream) {
        m_output.onWritable();
    } else if (m_errors.stream() == stream) {
        m_errors.onWritable();
    }
}

void Exec::abandonStdio() {
    m_input.discard();
    m_output.abandon();
}

void Exec::abandonErrors() {
    m_errors.abandon();
}

void Exec::closeOutput() {
    if (m_terminal) {
        abandonStdio();
    } else {
        m_output.close();
    }
}

void Exec::lookForEnd() {
    siginfo_t info{};
    if (m_end || ::waitid(P_PID, static_cast<id_t>(m_pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != m_pid) {
        return;
    }
    // The report first: its end of file came before the process ended, but may not have been read yet.
    readReport();
    m_end = End{info.si_code, info.si_status};
    if (m_isDetached) {
        releaseLeader(); // nobody will signal its group
    }
    if (m_over) {
        return;
    }
    if (m_terminal) {
        m_output.endWhenEmpty();
    }
    finishIfOver();
}

void Exec::finishIfOver() {
    if (m_over || !m_end || !m_output.hasEnded() || (!m_terminal && !m_errors.hasEnded())) {
        return;
    }
    m_over = true;
    m_input.discard();
    ExecEvent event;
    ExecExited& exited = *event.mutable_exited();
    if (m_end->code == CLD_EXITED) {
        exited.set_status(static_cast<std::uint32_t>(m_end->status));
    } else {
        exited.set_signal(static_cast<std::uint32_t>(m_end->status));
        exited.set_core_dumped(m_end->code == CLD_DUMPED);
    }
    m_report(event);
}

void Exec::signalGroup(pid_t group, int number) const {
    if (group <= 1) {
        return;
    }
    if (::kill(-group, number) != 0 && group == m_pid && !m_end) {
        // Right after the fork the child has no group of its own yet.
        ::kill(m_pid, number);
    }
}

void Exec::signal(std::uint32_t number) {
    if (number == 0 || number >= static_cast<std::uint32_t>(NSIG) || m_over) {
        return;
    }
    const int value = static_cast<int>(number);
    if (!m_started) {
        // Before execve(2) the child has our handlers' defaults but perhaps no process group of its own.
        if (m_waitingSignals.size() < kMaxWaitingSignals) {
            m_waitingSignals.push_back(value);
        }
        return;
    }
    pid_t group = m_pid;
    if (m_terminal) {
        pid_t foreground = 0;
        if (::ioctl(m_output.sourceFd(), TIOCGPGRP, &foreground) == 0 && foreground > 1) {
            group = foreground;
        }
    }
    signalGroup(group, value);
}

void Exec::resize(std::uint32_t rows, std::uint32_t columns) {
    constexpr std::uint32_t kMost = std::numeric_limits<unsigned short>::max();
    if (m_terminal && m_output.sourceFd() >= 0) {
        const winsize size{static_cast<unsigned short>(std::min(rows, kMost)),
                           static_cast<unsigned short>(std::min(columns, kMost)), 0, 0};
        ::ioctl(m_output.sourceFd(), TIOCSWINSZ, &size);
    }
}

void Exec::hangUp() {
    if (!m_over && !m_end) {
        signalGroup(m_pid, SIGHUP);
        signalGroup(m_pid, SIGCONT); // a stopped program could not act on it
    }
    m_over = true;
}

void Exec::detach() {
    m_isDetached = true;
    m_report = [](const ExecEvent&) {};
    if (m_end) {
        releaseLeader();
    }
    m_input.detach();
    m_output.detach();
    if (!m_terminal) {
        m_errors.detach();
    }
}

void Exec::kill() {
    if (m_over) {
        return;
    }
    // Also when the process itself has ended: others of its group may hold the outputs open.
    signalGroup(m_pid, SIGKILL);
    if (m_terminal) {
        pid_t foreground = 0;
        if (::ioctl(m_output.sourceFd(), TIOCGPGRP, &foreground) == 0) {
            signalGroup(foreground, SIGKILL);
        }
    }
    m_over = true;
}

} // namespace bulkhead::agent

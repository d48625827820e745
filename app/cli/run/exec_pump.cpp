// SPDX-License-Identifier: Apache-2.0
#include "cli/run/exec_pump.hpp"

#include "cli/run/terminal_mode.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace bulkhead::cli {
namespace {

using exec_stream::ClientEvent;
using exec_stream::ClientEventKind;
using exec_stream::ClientRequest;
using exec_stream::ClientRequestKind;

/// Requests that wait for the other side to read; more than a person can cause means that nobody reads.
constexpr std::size_t kMostRequests = 64;
constexpr std::size_t kSignalsToLeave = 3;
constexpr std::chrono::seconds kLeaveWithin{2};
constexpr short kGone = POLLERR | POLLHUP | POLLNVAL;

bool isTransient(int errorNumber) {
    return errorNumber == EAGAIN || errorNumber == EWOULDBLOCK || errorNumber == EINTR;
}

} // namespace

ExecPump::ExecPump(client::ExecStreams& streams, Interrupts& interrupts, PumpEnds ends)
    : m_streams(streams)
    , m_interrupts(interrupts)
    , m_ends(std::move(ends))
    , m_output{streams.output, Sink(m_ends.output), {}, false}
    , m_error{streams.error, Sink(m_ends.error), {}, false} {}

bool ExecPump::isDone() const {
    const bool ended = m_end.event.has_value() || !m_streams.control.isOpen();
    return m_end.leftBySignal.has_value() || (ended && m_output.done() && m_error.done());
}

PumpEnd ExecPump::run() {
    enum : std::size_t { Signals, Control, Source, Input, Output, OutputSink, Error, ErrorSink, Count };
    while (!isDone()) {
        std::array<pollfd, Count> wait{};
        const auto watch = [&](std::size_t at, int fd, bool want, short events) {
            wait[at] = {want ? fd : -1, events, 0};
        };
        const bool wantsInput = m_streams.input.isOpen() && !m_inputEnded;
        watch(Signals, m_interrupts.descriptor(), true, POLLIN);
        watch(Control, m_streams.control.get(), m_streams.control.isOpen(),
              static_cast<short>(POLLIN | (m_requests.empty() ? 0 : POLLOUT)));
        watch(Source, m_ends.input, wantsInput && m_input.empty(), POLLIN);
        watch(Input, m_streams.input.get(), wantsInput, m_input.empty() ? short{0} : short{POLLOUT});
        const auto watchFlow = [&](std::size_t source, std::size_t sink, Flow& flow) {
            watch(source, flow.from.get(), flow.from.isOpen() && flow.buffer.empty(), POLLIN);
            watch(sink, flow.sink.descriptor(), !flow.broken && (flow.sink.canBreak() || !flow.buffer.empty()),
                  flow.buffer.empty() ? short{0} : short{POLLOUT});
        };
        watchFlow(Output, OutputSink, m_output);
        watchFlow(Error, ErrorSink, m_error);

        if (::poll(wait.data(), wait.size(), -1) < 0) {
            if (errno != EINTR) {
                throw std::system_error(errno, std::generic_category(), "poll");
            }
            continue;
        }
        if (wait[Signals].revents != 0) {
            takeSignals();
        }
        if ((wait[Control].revents & (POLLIN | kGone)) != 0) {
            readControl();
        }
        if ((wait[Control].revents & POLLOUT) != 0 && m_streams.control.isOpen()) {
            writeControl();
        }
        if (wait[Source].revents != 0) {
            readInput();
        }
        if (wait[Input].revents != 0 && m_streams.input.isOpen()) {
            writeInput();
        }
        serveFlow(m_output, wait[Output], wait[OutputSink]);
        serveFlow(m_error, wait[Error], wait[ErrorSink]);
    }
    return m_end;
}

void ExecPump::readInput() {
    // One byte less: a ~ that waited comes on top.
    const ssize_t count = ::read(m_ends.input, m_input.bytes.data(), m_input.bytes.size() - 1);
    if (count < 0 && isTransient(errno)) {
        return;
    }
    if (count <= 0) { // also EIO of a terminal that went away, EBADF, EISDIR: there is no more input
        endInput();
        return;
    }
    m_input.begin = 0;
    m_input.end = static_cast<std::size_t>(count);
    if (!m_ends.terminal) {
        return;
    }
    // The only way out of a guest that answers nothing: in raw mode Ctrl-C is just a byte for it.
    const LineEscape::Result typed = m_escape.take(m_input.content());
    if (typed.leave) {
        m_end.leftBySignal = SIGINT;
        m_streams.control.close();
        return;
    }
    std::copy(typed.bytes.begin(), typed.bytes.end(), m_input.bytes.begin());
    m_input.end = typed.bytes.size();
}

void ExecPump::endInput() {
    m_inputEnded = true;
    if (m_streams.input.isOpen()) {
        ::shutdown(m_streams.input.get(), SHUT_WR);
    }
}

void ExecPump::writeInput() {
    if (m_input.empty()) {
        m_streams.input.close(); // nothing was asked for but the news that the program reads no more
        return;
    }
    const auto bytes = m_input.content();
    const ssize_t count = ::send(m_streams.input.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) {
        m_input.begin += static_cast<std::size_t>(count);
    } else if (!isTransient(errno)) {
        // The program has closed its standard input, or is gone: what is left belongs to nobody.
        m_input.begin = m_input.end;
        m_streams.input.close();
    }
}

void ExecPump::serveFlow(Flow& flow, const pollfd& source, const pollfd& sink) {
    if ((sink.revents & kGone) != 0 && flow.buffer.empty()) {
        breakFlow(flow, EPIPE);
        return;
    }
    if (sink.revents != 0) {
        writeFlow(flow);
    }
    if (source.revents != 0 && flow.from.isOpen() && flow.buffer.empty()) {
        readFlow(flow);
    }
}

void ExecPump::readFlow(Flow& flow) {
    const ssize_t count = ::recv(flow.from.get(), flow.buffer.bytes.data(), flow.buffer.bytes.size(), MSG_DONTWAIT);
    if (count < 0 && isTransient(errno)) {
        return;
    }
    if (count <= 0) {
        flow.from.close();
        return;
    }
    flow.buffer.begin = 0;
    flow.buffer.end = static_cast<std::size_t>(count);
}

void ExecPump::writeFlow(Flow& flow) {
    const std::ptrdiff_t count = flow.sink.write(flow.buffer.content());
    if (count < 0) {
        breakFlow(flow, errno);
    } else {
        flow.buffer.begin += static_cast<std::size_t>(count);
    }
}

void ExecPump::breakFlow(Flow& flow, int errorNumber) {
    // Closing the guest's end of it is what gives its program SIGPIPE; that then says how it all ends.
    flow.broken = true;
    flow.buffer.begin = flow.buffer.end;
    flow.from.close();
    if (errorNumber != EPIPE && errorNumber != EIO) { // EIO: the terminal went away
        m_end.writeError = errorNumber;
    }
}

void ExecPump::readControl() {
    ClientEvent event;
    const ssize_t count = ::recv(m_streams.control.get(), &event, sizeof event, MSG_DONTWAIT | MSG_TRUNC);
    if (count < 0 && isTransient(errno)) {
        return;
    }
    if (count != static_cast<ssize_t>(sizeof event)) { // the end, or something that speaks another language
        m_streams.control.close();
        m_requests.clear();
        endInput();
        return;
    }
    switch (event.kind) {
    case ClientEventKind::Started:
        return;
    case ClientEventKind::Exited:
    case ClientEventKind::Signalled:
    case ClientEventKind::Failed:
    case ClientEventKind::TimedOut:
    case ClientEventKind::Lost:
        if (!m_end.event) {
            m_end.event = event;
        }
        m_requests.clear();
        m_streams.input.close();
        return;
    }
}

void ExecPump::writeControl() {
    while (!m_requests.empty()) {
        const ClientRequest& request = m_requests.front();
        if (::send(m_streams.control.get(), &request, sizeof request, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
            if (!isTransient(errno)) {
                m_requests.clear(); // its end comes by readControl()
            }
            return;
        }
        m_requests.pop_front();
    }
}

void ExecPump::queue(ClientRequestKind kind, std::uint32_t a, std::uint32_t b) {
    if (m_end.event || !m_streams.control.isOpen()) {
        return;
    }
    if (kind == ClientRequestKind::WindowSize) { // only the last size counts
        std::erase_if(m_requests, [](const auto& waiting) { return waiting.kind == ClientRequestKind::WindowSize; });
    }
    if (m_requests.size() < kMostRequests) {
        m_requests.push_back({kind, a, b});
    }
    writeControl();
}

void ExecPump::queueWindowSize() {
    const client::TerminalSize size = terminalSizeOf(m_ends.input);
    queue(ClientRequestKind::WindowSize, size.rows, size.columns);
}

void ExecPump::takeSignals() {
    while (const auto signal = m_interrupts.next()) {
        switch (*signal) {
        case SIGWINCH:
            if (m_ends.terminal) {
                queueWindowSize();
            }
            continue;
        case SIGCONT:
            if (m_ends.terminal) {
                m_ends.resumed();
                queueWindowSize();
            }
            continue;
        case SIGUSR1:
        case SIGUSR2:
            queue(ClientRequestKind::Signal, static_cast<std::uint32_t>(*signal), 0);
            continue;
        default:
            break;
        }
        // Nothing is left to pass it on to; and a terminal that hung up takes its session along.
        const bool nobodyThere = m_end.event || !m_streams.control.isOpen();
        const auto now = std::chrono::steady_clock::now();
        m_leaveSignals.push_back(now);
        while (now - m_leaveSignals.front() > kLeaveWithin) {
            m_leaveSignals.pop_front();
        }
        if (nobodyThere || (m_ends.terminal && *signal == SIGHUP) || m_leaveSignals.size() >= kSignalsToLeave) {
            m_end.leftBySignal = *signal;
            m_streams.control.close();
            return;
        }
        queue(ClientRequestKind::Signal, static_cast<std::uint32_t>(*signal), 0);
    }
}

} // namespace bulkhead::cli

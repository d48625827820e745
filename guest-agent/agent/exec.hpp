// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/child_process.hpp"
#include "agent/event_loop.hpp"
#include "agent/pumps.hpp"
#include "protocol/agent.pb.h"
#include "protocol/session.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace bulkhead::agent {

/// One program that the host asked for, from the fork to its last byte. With pipes it is over when the process has
/// ended and nobody has its outputs open; with a terminal when the process has ended and the terminal is drained.
class Exec {
public:
    struct Streams {
        std::optional<protocol::StreamId> stdio;
        std::optional<protocol::StreamId> errors;
    };
    /// `report` gets started, exited and failed; after one of the last two the exec is over and may be destroyed, but
    /// not from inside.
    Exec(EventLoop& loop, protocol::Session& session, Streams streams, Child child, bool terminal,
         std::function<void(const ExecEvent&)> report);
    ~Exec();
    Exec(const Exec&) = delete;
    Exec& operator=(const Exec&) = delete;

    void start();
    /// -1: reaped, after detach().
    [[nodiscard]] pid_t pid() const { return m_pid; }
    [[nodiscard]] bool isOver() const { return m_over; }

    void addInput(std::span<const std::byte> bytes) { m_input.add(bytes); }
    void finishInput() { m_input.finish(); }
    void onWritable(protocol::StreamId stream);
    /// The host closed its reading end of a stream.
    void abandonStdio();
    void abandonErrors();
    /// Nobody reads standard output any more; input goes on. A terminal is one thing, and hung up as a whole.
    void closeOutput();

    /// Looks whether the process has ended. It stays a zombie until the exec is destroyed: as long as that has the
    /// number, no other process or group can get it, so signals to the group never hit a stranger.
    void lookForEnd();
    /// To the foreground process group of the terminal, or to the program's process group. Kept until the program
    /// runs. Numbers that are no signals are ignored.
    void signal(std::uint32_t number);
    void resize(std::uint32_t rows, std::uint32_t columns);
    /// The session is gone: hang up.
    void hangUp();
    /// The session is gone, but was another machine's: the program lives on. What it says is read and thrown away, its
    /// standard input stays open without data (after what has come already), a terminal stays open. From here on the
    /// session is not touched, nothing is reported, and the process is reaped as soon as it ends.
    void detach();
    /// The host gave the program up.
    void kill();

private:
    struct End {
        int code; ///< CLD_EXITED and so on
        int status;
    };
    void readReport();
    void finishIfOver();
    void signalGroup(pid_t group, int number) const;
    void fail(const ChildFailure& failure);
    void releaseLeader();

    EventLoop& m_loop;
    pid_t m_pid;
    bool m_terminal;
    std::function<void(const ExecEvent&)> m_report;
    OutputPump m_output;
    OutputPump m_errors;
    InputPump m_input;
    UniqueFd m_childReport;
    EventLoop::WatchId m_reportWatch = 0;
    std::vector<int> m_waitingSignals;
    std::optional<End> m_end;
    bool m_started = false;
    bool m_over = false;
    bool m_isDetached = false;
};

} // namespace bulkhead::agent

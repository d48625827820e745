// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/interrupts.hpp"
#include "cli/run/line_escape.hpp"
#include "cli/run/sink.hpp"
#include "client/domain.hpp"
#include "dbus/interfaces/exec_stream.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct pollfd;

namespace bulkhead::cli {

/// How an exec came to its end, as far as the descriptors tell.
struct PumpEnd {
    /// The last record of the control stream; none when it broke off without one.
    std::optional<exec_stream::ClientEvent> event;
    /// The user left by this signal (SIGINT also for the terminal's ~.); the program was told to hang up.
    std::optional<int> leftBySignal;
    /// Our own standard output or error could not be written (a full disk); errno.
    int writeError = 0;
};

/// Where the bytes come from and go to, and what to do with the terminal.
struct PumpEnds {
    int input = 0;
    int output = 1;
    int error = 2;
    bool terminal = false;         ///< input is a terminal in raw mode
    std::function<void()> resumed; ///< with terminal: called after SIGCONT, to enter raw mode again
};

/// Copies bytes between our descriptors and those of an exec, passes signals and window sizes on, and returns when the
/// program has ended and all of its output is written. Needs nothing but its descriptors: no bus, no daemon. Holds at
/// most one buffer of 64 KiB for each direction, so a slow reader slows the guest's program down, not us.
class ExecPump {
public:
    ExecPump(client::ExecStreams& streams, Interrupts& interrupts, PumpEnds ends);
    PumpEnd run();

private:
    static constexpr std::size_t kBuffer = 64 * 1024;

    struct Buffer {
        std::vector<char> bytes = std::vector<char>(kBuffer);
        std::size_t begin = 0;
        std::size_t end = 0;
        [[nodiscard]] bool empty() const { return begin == end; }
        [[nodiscard]] std::span<const char> content() const { return {bytes.data() + begin, end - begin}; }
    };
    /// Guest to us: one of output and error.
    struct Flow {
        client::Descriptor& from;
        Sink sink;
        Buffer buffer;
        bool broken = false; ///< nobody reads our side any more
        [[nodiscard]] bool done() const { return !from.isOpen() && buffer.empty(); }
    };

    [[nodiscard]] bool isDone() const;
    void readInput();
    void writeInput();
    void endInput();
    void readFlow(Flow& flow);
    void writeFlow(Flow& flow);
    void breakFlow(Flow& flow, int errorNumber);
    void serveFlow(Flow& flow, const pollfd& source, const pollfd& sink);
    void readControl();
    void writeControl();
    void takeSignals();
    void queue(exec_stream::ClientRequestKind kind, std::uint32_t a, std::uint32_t b);
    void queueWindowSize();

    client::ExecStreams& m_streams;
    Interrupts& m_interrupts;
    PumpEnds m_ends;
    Buffer m_input;
    LineEscape m_escape;
    bool m_inputEnded = false;
    Flow m_output;
    Flow m_error;
    std::deque<exec_stream::ClientRequest> m_requests;
    std::deque<std::chrono::steady_clock::time_point> m_leaveSignals;
    PumpEnd m_end;
};

} // namespace bulkhead::cli

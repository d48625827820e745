// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/event_loop.hpp"
#include "base/unique_fd.hpp"
#include "protocol/session.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bulkhead::agent {

/// Carries what a program writes (a pipe or a pty's master) to a stream. Holds at most one block that the stream did
/// not take yet; while it holds one it does not read, so that a program whose reader is slow waits in write(2).
class OutputPump {
public:
    /// `stream` none: nobody will read; nothing is pumped, and the owner calls abandon() when the program runs.
    /// `onEnd` is called once, after end of file and after the last byte was taken by the session and the stream was
    /// finished.
    OutputPump(EventLoop& loop, protocol::Session& session, std::optional<protocol::StreamId> stream, UniqueFd source,
               std::function<void()> onEnd);
    ~OutputPump();
    OutputPump(const OutputPump&) = delete;
    OutputPump& operator=(const OutputPump&) = delete;

    void start();
    /// The session has room for the stream again.
    void onWritable();
    /// From here on "nothing to read now" is the end: for a pty whose program has ended.
    void endWhenEmpty();
    /// The stream is gone: closes the source, so that the program gets SIGPIPE (or the hang-up of a terminal).
    void abandon();
    /// The session is gone, and is not touched any more; the source is read to its end, and what comes thrown away.
    void detach();
    /// As abandon(), but the stream lives on for the input: only our direction of it is finished.
    void close();
    [[nodiscard]] bool hasEnded() const { return m_ended; }
    /// The source, for terminal requests; -1 when it is closed.
    [[nodiscard]] int sourceFd() const { return m_source.get(); }
    [[nodiscard]] std::optional<protocol::StreamId> stream() const { return m_stream; }
    /// Somebody takes what comes, if only to throw it away.
    [[nodiscard]] bool hasReader() const { return m_stream.has_value() || m_isThrownAway; }

private:
    enum class Step { Again, Wait, Blocked, Ended };
    Step step();
    /// False: the stream did not take all of the block; onWritable() follows.
    bool send();
    void pump();
    void listen(bool on);
    void end();

    EventLoop& m_loop;
    protocol::Session* m_session; ///< touched only while there is a stream
    std::optional<protocol::StreamId> m_stream;
    UniqueFd m_source;
    std::function<void()> m_onEnd;
    bool m_isThrownAway = false;
    EventLoop::WatchId m_watch = 0;
    EventLoop::TimerId m_nextTurn = 0;
    std::vector<std::byte> m_block;
    std::size_t m_sent = 0;
    bool m_pumping = false;
    bool m_endWhenEmpty = false;
    bool m_ended = false;
};

/// Carries a stream's bytes to a program's standard input. What it holds is bounded by the stream's window, because
/// bytes count as consumed only when the program's pipe has taken them.
class InputPump {
public:
    InputPump(EventLoop& loop, protocol::Session& session, std::optional<protocol::StreamId> stream, UniqueFd sink,
              bool terminal);
    ~InputPump();
    InputPump(const InputPump&) = delete;
    InputPump& operator=(const InputPump&) = delete;

    void start();
    void add(std::span<const std::byte> bytes);
    /// The host sends no more. A pipe is closed after the last byte; a terminal gets its end-of-file character.
    void finish();
    /// Drops what is queued and what will come, quietly, so that the host does not wait for a program that reads no
    /// more.
    void discard();
    /// The session is gone, and is not touched any more. What has come still goes to the program, whose input then
    /// stays open, unless the host had closed it.
    void detach();

private:
    void pump();
    void taken(std::size_t count);
    void listen(bool forWriting);
    void stopListening();
    void sendEndOfFile();

    EventLoop& m_loop;
    protocol::Session* m_session; ///< touched only while there is a stream
    std::optional<protocol::StreamId> m_stream;
    UniqueFd m_sink;
    bool m_terminal;
    EventLoop::WatchId m_watch = 0;
    std::vector<std::byte> m_queue;
    std::size_t m_done = 0;
    bool m_finished = false;
};

} // namespace bulkhead::agent

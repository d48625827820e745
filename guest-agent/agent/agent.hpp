// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/control.hpp"
#include "agent/detached.hpp"
#include "agent/event_loop.hpp"
#include "agent/exec.hpp"
#include "agent/link.hpp"
#include "agent/message_writer.hpp"
#include "agent/picture.hpp"
#include "agent/session_bridge.hpp"
#include "agent/system.hpp"
#include "protocol/message_stream.hpp"
#include "protocol/session.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace bulkhead::agent {

/// One session with the host: gives each stream its meaning, runs the programs and answers requests.
class Agent final : public protocol::SessionEvents {
public:
    /// What outlives a session.
    struct World {
        EventLoop& loop;
        System& system;
        Picture& picture;
        DetachedPrograms& detached;
        SessionBridge* bridge = nullptr; ///< none: no stream of kind session is taken
    };
    /// `token` is not kept here. `onReady` is called for each session.
    Agent(World world, const protocol::Token& token, protocol::RandomSource random, std::function<void()> onReady);
    ~Agent() override;
    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    [[nodiscard]] protocol::Session& session() { return m_session; }
    /// After SIGCHLD: tells the programs that have ended. Adds the processes to `leaders` that are not to be reaped.
    void lookForEnds(std::set<pid_t>& leaders);
    /// Removes what has ended. At the end of each round, when no exec is on the stack.
    void tidy();
    /// The grace of a shutdown that was asked for and answered.
    [[nodiscard]] std::optional<std::chrono::milliseconds> shutdownWanted() const { return m_shutdown; }
    /// The session is lost: hangs up every program, or detaches them where the session was another machine's.
    void dropAll();

    void onReady() override;
    void onSessionReset() override;
    void onStreamOpened(protocol::StreamId stream) override;
    void onData(protocol::StreamId stream, std::span<const std::byte> bytes) override;
    void onPeerFinished(protocol::StreamId stream) override;
    void onStreamReset(protocol::StreamId stream) override;
    void onWritable(protocol::StreamId stream) override;

private:
    enum class Kind { Unknown, Control, Exec, Stdio, Errors, Session };
    struct Stream {
        Kind kind = Kind::Unknown;
        protocol::MessageReader reader;
        std::uint64_t execId = 0;
        /// Standard input that came before its program; not consumed, so bounded by the window.
        std::vector<std::byte> early;
        bool peerFinished = false;
        /// The program is over; what still comes is dropped.
        bool discard = false;
    };
    struct Running {
        protocol::StreamId stream = 0; ///< the exec stream
        Exec::Streams stdio;
        std::unique_ptr<MessageWriter> writer;
        std::unique_ptr<Exec> exec;
    };

    void readMessages(protocol::StreamId id, Stream& stream, std::span<const std::byte> bytes);
    [[nodiscard]] bool handleMessage(protocol::StreamId id, Stream& stream, const std::string& message);
    [[nodiscard]] bool handleHeader(protocol::StreamId id, Stream& stream, const std::string& message);
    [[nodiscard]] bool handleExecInput(const Stream& stream, const std::string& message);
    void giveInput(protocol::StreamId id, Stream& stream, std::span<const std::byte> bytes);
    void beginExec(protocol::StreamId id, const ExecRequest& request);
    [[nodiscard]] std::optional<ExecFailed::Reason> startExec(Running& running, const ExecRequest& request);
    void report(std::uint64_t execId, const ExecEvent& event);
    void drop(std::map<std::uint64_t, Running>::iterator running);
    void retire(protocol::StreamId id);
    void breakStream(protocol::StreamId id);
    void forget(protocol::StreamId id);
    [[nodiscard]] Exec* execOf(std::uint64_t execId);
    [[nodiscard]] std::optional<protocol::StreamId> streamFor(Kind kind, std::uint64_t execId) const;

    World m_world;
    std::function<void()> m_onReady;
    std::map<protocol::StreamId, Stream> m_streams;
    std::map<std::uint64_t, Running> m_execs;
    std::set<std::uint64_t> m_over;
    std::unique_ptr<ControlStream> m_control;
    protocol::StreamId m_controlStream = 0;
    std::optional<std::chrono::milliseconds> m_shutdown;
    std::vector<std::unique_ptr<Exec>> m_dropped;
    protocol::Session m_session;
};

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "protocol/agent.pb.h"
#include "protocol/message_stream.hpp"
#include "protocol/session.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bulkhead::tests {

using namespace agent; // the messages of agent.proto

/// The host's side of the channel, for tests: a session over a descriptor that is driven by waiting for something.
class HostClient final : public protocol::SessionEvents {
public:
    struct Stream {
        std::string received;  ///< raw bytes, or the not yet cut bytes of a message stream
        std::size_t total = 0; ///< bytes that ever came
        bool finished = false;
        bool wasReset = false;
        bool consume = true; ///< false: the window is not opened again
        bool keep = true;    ///< false: only counted and given to `onBytes`
        std::function<void(std::string_view)> onBytes;
        std::string toSend;
        bool finishAfter = false;
    };
    struct Program {
        protocol::StreamId stdio = 0;
        protocol::StreamId errors = 0;
        protocol::StreamId exec = 0;
    };
    struct Ended {
        bool failed = false;
        ExecFailed::Reason reason = ExecFailed::UNKNOWN;
        std::uint32_t status = 0;
        std::uint32_t signal = 0;
        std::string output;
        std::string errors;
    };

    HostClient(UniqueFd fd, const protocol::Token& token);

    /// Begins a session (on the same descriptor: a new one) and waits until it is ready.
    bool begin(int timeoutMs = 10'000);
    /// Opens the control stream and returns the agent's Hello.
    std::optional<Hello> hello();
    std::optional<Reply> ask(Request request);

    /// Opens stdio, err (unless a terminal) and exec streams for a program.
    Program start(ExecRequest request);
    /// Waits for the next event of a program.
    std::optional<ExecEvent> nextEvent(const Program& program, int timeoutMs = 20'000);
    /// Gives `input`, closes it, waits for the end and for both outputs' FIN.
    std::optional<Ended> finish(const Program& program, const std::string& input = {}, int timeoutMs = 30'000);
    std::optional<Ended> run(ExecRequest request, const std::string& input = {}, int timeoutMs = 30'000);

    /// Opens a stream that says what it is for; 0: there are too many.
    protocol::StreamId openWith(const StreamHeader& header);
    /// The next message of a stream, without its length.
    std::optional<std::string> nextMessage(protocol::StreamId id, int timeoutMs);
    void send(protocol::StreamId stream, const std::string& bytes, bool finishAfter = false);
    template <class Message> void sendMessage(protocol::StreamId stream, const Message& message) {
        const auto framed = protocol::frameMessage(message.SerializeAsString());
        send(stream, std::string(reinterpret_cast<const char*>(framed.data()), framed.size()));
    }
    void signal(const Program& program, std::uint32_t number);
    Stream& stream(protocol::StreamId id) { return m_streams[id]; }
    protocol::Session& session() { return *m_session; }
    [[nodiscard]] bool transportEnded() const { return m_ended; }
    [[nodiscard]] int fd() const { return m_fd.get(); }

    /// Drives the session until `done` or the time is over; says which.
    bool waitUntil(const std::function<bool()>& done, int timeoutMs = 20'000);

    void onReady() override {}
    void onSessionReset() override {}
    void onStreamOpened(protocol::StreamId) override {}
    void onData(protocol::StreamId id, std::span<const std::byte> bytes) override;
    void onPeerFinished(protocol::StreamId id) override { m_streams[id].finished = true; }
    void onStreamReset(protocol::StreamId id) override { m_streams[id].wasReset = true; }
    void onWritable(protocol::StreamId id) override { push(id); }

private:
    void push(protocol::StreamId id);
    void exchange();

    UniqueFd m_fd;
    protocol::Token m_token;
    std::map<protocol::StreamId, Stream> m_streams;
    std::unique_ptr<protocol::Session> m_session;
    protocol::StreamId m_control = 0;
    std::uint64_t m_nextExecId = 1;
    bool m_ended = false;
};

/// Random bytes that are enough for tests.
void fillRandom(std::span<std::byte> buffer);

} // namespace bulkhead::tests

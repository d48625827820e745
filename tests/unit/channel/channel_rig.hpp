// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.hpp"
#include "channel/records.hpp"
#include "dbus/interfaces/exec_stream.hpp"
#include "protocol/agent.pb.h"
#include "protocol/message_stream.hpp"
#include "protocol/session.hpp"
#include "protocol/session.pb.h"

#include <QTemporaryDir>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace bulkhead::channel::test {

/// The guest's side, on the same session code as the agent. Does what the test says, also what no agent would.
class FakeGuest : private protocol::SessionEvents {
public:
    FakeGuest(UniqueFd fd, const protocol::Token& token);

    struct Program {
        agent::ExecRequest request;
        protocol::StreamId stdio = 0;
        protocol::StreamId err = 0;
        protocol::StreamId exec = 0;
        std::string input;
        bool inputEnded = false;
        bool stdioReset = false;
        bool errReset = false;
        bool outputClosed = false;
        bool execReset = false;
        std::vector<std::uint32_t> signalNumbers;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> windows;
    };

    /// Moves bytes; call it whenever the descriptor may be ready.
    void pump();
    [[nodiscard]] int fd() const { return m_fd.get(); }
    void close() { m_fd.reset(); }
    void reset(protocol::StreamId stream) { m_session.resetStream(stream); }

    void write(protocol::StreamId stream, const std::string& bytes) { m_out[stream].bytes += bytes; }
    void finish(protocol::StreamId stream) { m_out[stream].finish = true; }
    void send(protocol::StreamId stream, const google::protobuf::MessageLite& message);
    void started(const Program& program, std::uint32_t pid = 42);
    void exited(const Program& program, std::uint32_t status, std::uint32_t signal = 0);
    /// Bytes that wait for the window.
    [[nodiscard]] std::size_t waiting(protocol::StreamId stream) {
        return m_out[stream].bytes.size() - m_out[stream].done;
    }
    void sendRaw(std::span<const std::byte> bytes);

    std::map<std::uint64_t, Program> programs;
    std::vector<agent::Request> requests;
    protocol::StreamId control = 0;
    protocol::StreamId session = 0; ///< the session stream, 0: none is open
    std::vector<session::Command> commands;
    bool answersHello = true;
    bool consumesInput = true;
    bool reads = true; ///< false: nothing is read from the host
    int sessions = 0;
    agent::Reply hello;

private:
    void onReady() override { ++sessions; }
    void onSessionReset() override {}
    void onStreamOpened(protocol::StreamId) override {}
    void onData(protocol::StreamId stream, std::span<const std::byte> bytes) override;
    void onPeerFinished(protocol::StreamId stream) override;
    void onStreamReset(protocol::StreamId stream) override;
    void onWritable(protocol::StreamId) override {}
    void onMessage(protocol::StreamId stream, const std::string& message);

    enum class Kind { Unknown, Control, Exec, Stdio, Err, Session };
    struct In {
        Kind kind = Kind::Unknown;
        std::uint64_t exec = 0;
        protocol::MessageReader reader;
    };
    struct Out {
        std::string bytes;
        std::size_t done = 0;
        bool finish = false;
    };
    UniqueFd m_fd;
    protocol::Session m_session;
    std::map<protocol::StreamId, In> m_in;
    std::map<protocol::StreamId, Out> m_out;
};

struct Received {
    FromChannel record;
    std::vector<UniqueFd> fds;
};

/// The client's four descriptors, non-blocking.
struct Client {
    UniqueFd control, input, output, error;
    std::string out, err;
    bool outEnded = false;
    bool errEnded = false;
    std::deque<exec_stream::ClientEvent> events;
    bool controlEnded = false;
    /// Reads what is there.
    void readOutput(std::size_t atMost = static_cast<std::size_t>(-1));
    void readEvents();
    /// Returns how many bytes were taken.
    std::size_t writeInput(std::string_view bytes);
    void request(exec_stream::ClientRequestKind kind, std::uint32_t a, std::uint32_t b = 0);
};

/// bulkhead-channel as a child process, between a fake guest and a daemon made of a socket.
class Rig {
    /// Starts the program and returns the guest's end of its stream.
    UniqueFd spawn();
    // Before the guest, which is made last.
    QTemporaryDir m_folder;
    UniqueFd m_daemon;
    pid_t m_pid = -1;
    std::optional<int> m_status;

public:
    explicit Rig(unsigned char guestsToken = 7);
    ~Rig();

    void connectDaemon();
    void dropDaemon() { m_daemon.reset(); }
    void send(ToChannelKind kind, std::uint64_t request, std::int64_t argument = 0, const std::string& rest = {});
    /// Pumps everything until `done`; false after `seconds`.
    bool until(const std::function<bool()>& done, int seconds = 10);
    /// The next record of the daemon's connection of this kind; others are dropped.
    std::optional<Received> next(FromChannelKind kind, int seconds = 10);
    bool connectAndWaitUntilReady();
    /// Asks for a command; waits until the channel has accepted it, but not for the guest.
    std::optional<Client> accept(const agent::ExecRequest& request, std::int64_t limitMs = 0);
    /// Starts a command; waits until the guest has the request.
    std::optional<Client> exec(const agent::ExecRequest& request, std::int64_t limitMs = 0);
    std::optional<Client> exec() {
        agent::ExecRequest request;
        request.add_argv("program");
        return exec(request);
    }
    FakeGuest::Program& program() { return guest.programs.rbegin()->second; }
    /// The exit status of the process, when it has ended by itself.
    std::optional<int> exitStatus(int seconds = 10);
    [[nodiscard]] std::size_t residentBytes() const;
    [[nodiscard]] std::string procStatus() const;
    [[nodiscard]] std::string socketPath() const { return m_folder.filePath("c.sock").toStdString(); }

    static protocol::Token token(unsigned char fill);

    FakeGuest guest;
    std::deque<Received> records;
    bool daemonEnded = false;

private:
    void receive();
};

} // namespace bulkhead::channel::test

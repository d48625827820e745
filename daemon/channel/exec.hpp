// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/client_streams.hpp"
#include "channel/records.hpp"
#include "channel/validator.hpp"
#include "dbus/interfaces/exec_stream.hpp"
#include "protocol/message_stream.hpp"

#include <array>
#include <memory>
#include <optional>

namespace bulkhead::agent {
class ExecRequest;
}

namespace bulkhead::channel {

/// One command in the guest and its client: three streams on one side, four sockets on the other.
class Exec {
public:
    /// What the client gets, in the order of the contract: control, input, output, error.
    using ClientEnds = std::array<UniqueFd, 4>;
    /// The end, as the client was told.
    struct Outcome {
        exec_stream::ClientEventKind kind;
        std::uint32_t a;
        std::int32_t b;
    };
    struct Started;
    struct Options {
        std::chrono::milliseconds limit; ///< of the wall clock; 0: none
        bool guestClosesOutput;          ///< the guest understands ExecInput.close_output
    };

    /// Opens the streams and asks the guest for the program. `request` has been checked and bears its exec id.
    /// Refused: TooMany when streams or descriptors have run out, BadRequest when the request does not fit into a
    /// message.
    static tl::expected<Started, RefusedReason> start(protocol::Session& session, Poller& poller,
                                                      const agent::ExecRequest& request, const Options& options);
    ~Exec();
    Exec(const Exec&) = delete;
    Exec& operator=(const Exec&) = delete;

    [[nodiscard]] std::uint64_t id() const { return m_id; }
    [[nodiscard]] bool owns(protocol::StreamId stream) const;

    /// Events of the streams. Anything but None: the guest broke the protocol.
    [[nodiscard]] protocol::Violation onData(protocol::StreamId stream, std::span<const std::byte> bytes);
    [[nodiscard]] protocol::Violation onPeerFinished(protocol::StreamId stream);
    [[nodiscard]] protocol::Violation onStreamReset(protocol::StreamId stream);

    /// Once per turn of the loop: sends what waits and looks at the clock. An outcome means that the client has been
    /// told and the exec can be removed.
    [[nodiscard]] std::optional<Outcome> turn(TimePoint now);
    [[nodiscard]] TimePoint nextDeadline() const;
    /// The guest is gone: tells the client at once.
    void lose(LostReason reason, protocol::Violation violation);

private:
    struct Streams {
        protocol::StreamId stdio;
        std::optional<protocol::StreamId> err;
        protocol::StreamId exec;
    };
    struct Sockets {
        UniqueFd control, input, output, error;
    };
    Exec(protocol::Session& session, Poller& poller, std::uint64_t id, const Streams& streams, Sockets sockets,
         const Options& options);
    static std::optional<Streams> openStreams(protocol::Session& session, bool hasErr);

    [[nodiscard]] protocol::Violation onNews(const ExecNews& news);
    void onControl(std::uint32_t events);
    void sendSignal(std::uint32_t number);
    void tell(const Outcome& event);
    void hangUp(TimePoint now);
    void checkClock(TimePoint now);
    void abandonStreams();
    void tellOfLostReaders();
    [[nodiscard]] bool isFlushed() const;

    protocol::Session& m_session;
    const std::uint64_t m_id;
    Outbox m_commands;
    protocol::MessageReader m_reader;
    ClientInput m_input;
    ClientOutput m_output;
    std::optional<ClientOutput> m_error;
    std::optional<Outbox> m_errHeader;
    WatchedFd m_control;

    /// What the guest still has to be told of a client that closed its end.
    enum class Reader { There, Gone, GoneAndTold };
    Reader m_outputReader = Reader::There;
    Reader m_errorReader = Reader::There;
    const bool m_guestClosesOutput;

    bool m_isStarted = false;
    std::optional<Outcome> m_end;          ///< what the guest said
    TimePoint m_limit = TimePoint::max();  ///< wall clock limit
    TimePoint m_kill = TimePoint::max();   ///< after a hang-up: SIGKILL
    TimePoint m_giveUp = TimePoint::max(); ///< after SIGKILL: do not wait for the guest any longer
    bool m_isTimedOut = false;
};

struct Exec::Started {
    std::unique_ptr<Exec> exec;
    ClientEnds ends;
};

} // namespace bulkhead::channel

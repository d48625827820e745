// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/daemon_link.hpp"
#include "channel/exec_table.hpp"
#include "channel/guest_control.hpp"
#include "channel/liveness.hpp"
#include "channel/session_hub.hpp"
#include "channel/transport.hpp"
#include "channel/window_watch.hpp"

#include <optional>
#include <string>

namespace bulkhead::channel {

/// The program: one guest, one daemon, some clients, one thread.
class Channel : private protocol::SessionEvents, private DaemonEvents, private GuestControlEvents {
public:
    struct Descriptors {
        UniqueFd guest;
        UniqueFd listener;
    };
    /// Opens what it needs, but reads nothing yet: privileges are given up between this and run().
    /// Throws std::system_error when the descriptors are of no use.
    Channel(std::string instance, Descriptors descriptors, const protocol::Token& token);
    /// Until the guest is gone or the daemon says Close.
    void run();

private:
    void onReady() override;
    void onSessionReset() override;
    void onStreamOpened(protocol::StreamId stream) override;
    void onData(protocol::StreamId stream, std::span<const std::byte> bytes) override;
    void onPeerFinished(protocol::StreamId stream) override;
    void onStreamReset(protocol::StreamId stream) override;
    void onWritable(protocol::StreamId stream) override;

    void onDaemonConnected() override;
    void onDaemonRecord(const ToChannel& record, std::string_view rest) override;

    void onGuestHello(const GuestHello& hello) override;
    void onGuestStatus(const DaemonRequest& request, const GuestStatus& status) override;
    void onGuestDone(const DaemonRequest& request) override;
    void onGuestRefused(const DaemonRequest& request, RefusedReason reason, int errorNumber) override;

    void turn(TimePoint now);
    void watchGuest(TimePoint now);
    void watchWindows(TimePoint now);
    [[nodiscard]] WindowsOpen windowsOpen() const;
    [[nodiscard]] TimePoint nextDeadline() const;
    [[nodiscard]] bool isReady() const { return m_control && m_control->isReady(); }
    void openSession(const ToChannel& record);
    void startExec(const ToChannel& record, std::string_view request);
    void onExecFinished(std::uint64_t id, const Exec::Outcome& outcome);
    void refuse(std::uint64_t request, RefusedReason reason);
    void answer(const DaemonRequest& request, FromChannel record);
    void sendReady();
    /// The guest broke the protocol above the frames. Noted; acted on when the session is not on the stack.
    void note(protocol::Violation violation);
    void lose(LostReason reason, protocol::Violation violation, int errorNumber);

    std::string m_instance;
    Poller m_poller;
    protocol::Session m_session;
    ExecTable m_execs;
    SessionHub m_sessions;
    WindowWatch m_windows;
    WindowsOpen m_windowsOpen = WindowsOpen::None; ///< as the daemon was told
    std::optional<GuestControl> m_control;
    DaemonLink m_daemon;
    Transport m_transport;
    Liveness m_liveness;
    TimePoint m_lastHeard{}; ///< what m_liveness knows of
    TimePoint m_nextReset = Clock::now();
    protocol::Violation m_violation = protocol::Violation::None;
    bool m_hasToldOfWrongAnswer = false;
    bool m_isOver = false;
};

} // namespace bulkhead::channel

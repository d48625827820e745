// SPDX-License-Identifier: Apache-2.0
#include "link/channel_connection.hpp"

#include "link/host_time_zone.hpp"
#include "process/poller.hpp"
#include "protocol/session.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace bulkhead::link {
namespace {

using channel::FromChannel;
using channel::FromChannelKind;
using channel::LostReason;
using channel::RefusedReason;
using channel::ToChannel;
using channel::ToChannelKind;
using channel::WindowsState;

constexpr std::size_t kMostDescriptors = 4;

core::LinkLoss lossOf(std::uint32_t reason, std::int64_t detail) {
    switch (static_cast<LostReason>(reason)) {
    case LostReason::EndOfFile:
        return {"the guest's end of the channel closed", false};
    case LostReason::Violation:
        return {"the guest broke the channel's protocol (" +
                    std::string(protocol::nameOf(static_cast<protocol::Violation>(detail))) + ")",
                true};
    case LostReason::NoAnswer:
        return {"the guest's agent no longer answers", false};
    case LostReason::Internal:
        return {"the channel process failed", false};
    }
    return {"the channel process said something unknown", true};
}

Error refusedError(std::uint32_t reason, std::int64_t detail) {
    switch (static_cast<RefusedReason>(reason)) {
    case RefusedReason::NotReady:
        return {ErrorCode::Unavailable, "the guest's agent is not ready"};
    case RefusedReason::TooMany:
        return {ErrorCode::LimitExceeded, "too many programs run in this domain at once"};
    case RefusedReason::BadRequest:
        return {ErrorCode::InvalidArgument, "the channel refused the request"};
    case RefusedReason::GuestError:
        if (detail == EAGAIN) {
            return {ErrorCode::Busy, "the guest is busy"};
        }
        if (detail == ETIMEDOUT) {
            return {ErrorCode::TimedOut, "the guest did not write everything to its disks in time"};
        }
        return {ErrorCode::GuestFailure,
                std::string("the guest's agent failed: ") + std::strerror(static_cast<int>(detail))};
    case RefusedReason::TimedOut:
        return {ErrorCode::TimedOut, "the guest's agent did not answer in time"};
    case RefusedReason::Unsupported:
        return {ErrorCode::WrongState, "the guest's agent is too old for this; build the template anew and restart"};
    }
    return {ErrorCode::HostFailure, "the channel process said something unknown"};
}

} // namespace

ChannelConnection::ChannelConnection(UniqueFd socket, process::Poller& poller, Events events)
    : m_socket(std::move(socket))
    , m_poller(poller)
    , m_events(std::move(events)) {
    if (auto added = m_poller.add(m_socket.get(), EPOLLIN, [this](std::uint32_t) { onReadable(); }); !added) {
        throw std::runtime_error(added.error().message);
    }
}

ChannelConnection::~ChannelConnection() {
    m_poller.remove(m_socket.get());
}

Result<core::AdoptedGuest> ChannelConnection::waitHello(std::chrono::milliseconds timeout) {
    std::unique_lock lock(m_mutex);
    m_changed.wait_for(lock, timeout, [this] { return m_hasHello || m_lost.has_value(); });
    if (m_hasHello) {
        return core::AdoptedGuest{.programs = m_execs, .hasWindows = m_hasWindows};
    }
    return fail(ErrorCode::Unavailable, m_lost ? m_lost->reason : "the channel process did not answer");
}

Status ChannelConnection::waitReady(std::chrono::milliseconds timeout, std::stop_token cancel) {
    std::unique_lock lock(m_mutex);
    m_changed.wait_for(lock, cancel, timeout, [this] { return m_isReady || m_lost.has_value(); });
    if (m_lost.has_value()) {
        return fail(ErrorCode::GuestFailure, m_lost->reason);
    }
    if (m_isReady) {
        return {};
    }
    if (cancel.stop_requested()) {
        return fail(ErrorCode::Cancelled, "cancelled");
    }
    return fail(ErrorCode::TimedOut,
                "the guest's agent did not answer within " + std::to_string(timeout.count() / 1000) + " s");
}

Result<ChannelConnection::Answer> ChannelConnection::ask(ToChannel request, std::string_view payload,
                                                         std::chrono::milliseconds timeout) {
    std::unique_lock lock(m_mutex);
    if (m_lost.has_value()) {
        return fail(ErrorCode::GuestFailure, m_lost->reason);
    }
    request.request = m_nextRequest++;
    m_pending.emplace(request.request, std::nullopt);
    if (auto sent = send(request, payload); !sent) {
        m_pending.erase(request.request);
        return fail(sent.error());
    }
    m_changed.wait_for(lock, timeout, [&] { return m_pending[request.request].has_value() || m_lost.has_value(); });
    auto answer = std::move(m_pending[request.request]);
    m_pending.erase(request.request);
    if (!answer) {
        return m_lost ? fail(ErrorCode::GuestFailure, m_lost->reason)
                      : fail(ErrorCode::TimedOut, "the channel process did not answer in time");
    }
    if (answer->record.kind == FromChannelKind::Refused) {
        return fail(refusedError(answer->record.a, answer->record.b));
    }
    return std::move(*answer);
}

std::optional<core::LinkLoss> ChannelConnection::loss() const {
    const std::lock_guard lock(m_mutex);
    return m_lost;
}

void ChannelConnection::setClock() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::lock_guard lock(m_mutex);
    // Its answer finds nobody who waits and is dropped.
    const ToChannel request{.kind = ToChannelKind::SetClock,
                            .request = m_nextRequest++,
                            .argument = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
    [[maybe_unused]] const auto sent = send(request, hostTimeZone());
}

void ChannelConnection::setHostname(const std::string& name) {
    const std::lock_guard lock(m_mutex);
    // As with the clock, its answer finds nobody.
    [[maybe_unused]] const auto sent = send({.kind = ToChannelKind::SetHostname, .request = m_nextRequest++}, name);
}

void ChannelConnection::askToClose() {
    const std::lock_guard lock(m_mutex);
    // A process that cannot be told is ended by its closed control socket's owner, see ChannelLinks::close().
    [[maybe_unused]] const auto sent = send({.kind = ToChannelKind::Close}, {});
}

core::GuestUse ChannelConnection::use() const {
    const std::lock_guard lock(m_mutex);
    return {.isInUse = m_execs > 0 || m_isShowing || m_lost.has_value(), .count = m_uses};
}

unsigned ChannelConnection::runningExecs() const {
    const std::lock_guard lock(m_mutex);
    return m_execs;
}

Status ChannelConnection::send(const ToChannel& request, std::string_view payload) {
    std::array<iovec, 2> parts{};
    parts[0] = {const_cast<ToChannel*>(&request), sizeof request};
    parts[1] = {const_cast<char*>(payload.data()), payload.size()};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = payload.empty() ? 1 : 2;
    if (::sendmsg(m_socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        return fail(ErrorCode::Unavailable, std::string("cannot reach the channel process: ") + std::strerror(errno));
    }
    return {};
}

void ChannelConnection::onReadable() {
    // Bounded: one process that talks without end must not keep the others' records waiting (level-triggered: the rest
    // comes in the next round).
    for (int turn = 0; turn < 64; ++turn) {
        FromChannel record;
        iovec part{&record, sizeof record};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        const ssize_t size = ::recvmsg(m_socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        std::vector<UniqueFd> descriptors;
        if (size > 0) {
            for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
                if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
                    continue;
                }
                const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (std::size_t i = 0; i < count; ++i) {
                    int fd = -1;
                    std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
                    descriptors.emplace_back(fd);
                }
            }
        }
        if (size != sizeof record || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
            // A malformed record is none of our program's: what the guest may have made of it is not trusted again.
            loseOnce(size <= 0 ? core::LinkLoss{"the channel process ended", false}
                               : core::LinkLoss{"the channel process sent a malformed record", true});
            return;
        }
        if (!handle(record, std::move(descriptors))) {
            return; // lost: `this` may be gone
        }
    }
}

bool ChannelConnection::handle(const FromChannel& record, std::vector<UniqueFd> descriptors) {
    switch (record.kind) {
    case FromChannelKind::Hello: {
        const std::lock_guard lock(m_mutex);
        m_hasHello = true;
        m_isReady = m_isReady || record.a == 1;
        m_execs = static_cast<unsigned>(record.b);
        m_hasWindows = record.value[0] == static_cast<std::uint64_t>(WindowsState::Open);
        m_isShowing = record.value[1] != static_cast<std::uint64_t>(channel::WindowsOpen::None);
        break;
    }
    case FromChannelKind::Ready: {
        const std::lock_guard lock(m_mutex);
        m_isReady = true;
        break;
    }
    case FromChannelKind::ExecFinished: {
        const auto remaining = static_cast<unsigned>(record.value[1]);
        {
            const std::lock_guard lock(m_mutex);
            m_execs = remaining;
            ++m_uses;
        }
        m_events.execFinished(record.value[0], remaining);
        break;
    }
    case FromChannelKind::Windows: {
        const bool areOpen = record.a == static_cast<std::uint32_t>(WindowsState::Open);
        {
            const std::lock_guard lock(m_mutex);
            m_hasWindows = areOpen;
        }
        m_events.windowsChanged(areOpen);
        break;
    }
    case FromChannelKind::WindowsOpen: {
        const std::lock_guard lock(m_mutex);
        m_isShowing = record.a != static_cast<std::uint32_t>(channel::WindowsOpen::None);
        ++m_uses;
        break;
    }
    case FromChannelKind::Lost:
        loseOnce(lossOf(record.a, record.b));
        return false;
    case FromChannelKind::ExecAccepted:
    case FromChannelKind::Refused:
    case FromChannelKind::Status:
    case FromChannelKind::SessionOpened:
    case FromChannelKind::Done: {
        const std::lock_guard lock(m_mutex);
        // An answer that nobody waits for any more (it timed out) is dropped, and its descriptors are closed.
        if (const auto waiting = m_pending.find(record.request); waiting != m_pending.end()) {
            if (record.kind == FromChannelKind::ExecAccepted) {
                ++m_execs;
            }
            if (record.kind == FromChannelKind::ExecAccepted || record.kind == FromChannelKind::SessionOpened) {
                ++m_uses;
            }
            waiting->second = Answer{record, std::move(descriptors)};
        }
        break;
    }
    default:
        loseOnce({"the channel process sent an unknown record", true});
        return false;
    }
    m_changed.notify_all();
    return true;
}

void ChannelConnection::loseOnce(const core::LinkLoss& loss) {
    {
        const std::lock_guard lock(m_mutex);
        m_lost = loss;
    }
    m_changed.notify_all();
    m_events.lost(loss);
    // The very last: from here on the destructor in another thread no longer waits for us, so `this` may be gone.
    m_poller.remove(m_socket.get());
}

} // namespace bulkhead::link

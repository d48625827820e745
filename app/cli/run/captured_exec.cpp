// SPDX-License-Identifier: Apache-2.0
#include "cli/run/captured_exec.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <vector>

namespace bulkhead::cli {
namespace {

using exec_stream::ClientEvent;
using exec_stream::ClientEventKind;

constexpr std::size_t kMostError = 4096;

bool isTransient(int errorNumber) {
    return errorNumber == EAGAIN || errorNumber == EWOULDBLOCK || errorNumber == EINTR;
}

/// What has come; empty: nothing for now, or the end, which closes it.
std::string_view readFrom(client::Descriptor& from, std::vector<char>& buffer) {
    const ssize_t count = ::recv(from.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
        return {buffer.data(), static_cast<std::size_t>(count)};
    }
    if (count == 0 || !isTransient(errno)) {
        from.close();
    }
    return {};
}

void readControl(client::ExecStreams& streams, PumpEnd& end) {
    ClientEvent event;
    const ssize_t count = ::recv(streams.control.get(), &event, sizeof event, MSG_DONTWAIT | MSG_TRUNC);
    if (count < 0 && isTransient(errno)) {
        return;
    }
    if (count != static_cast<ssize_t>(sizeof event)) {
        streams.control.close();
    } else if (event.kind != ClientEventKind::Started && !end.event) {
        end.event = event;
    }
}

std::optional<int> leavingSignal(Interrupts& interrupts) {
    while (const auto signal = interrupts.next()) {
        if (*signal == SIGINT || *signal == SIGTERM || *signal == SIGHUP || *signal == SIGQUIT) {
            return signal;
        }
    }
    return std::nullopt;
}

} // namespace

CapturedEnd captureExec(client::ExecStreams& streams, Interrupts& interrupts,
                        const std::function<bool(std::string_view)>& take) {
    CapturedEnd captured;
    std::vector<char> buffer(std::size_t{64} * 1024);
    streams.input.close();
    const auto isDone = [&] {
        const bool ended = captured.end.event || !streams.control.isOpen();
        return ended && !streams.output.isOpen() && !streams.error.isOpen();
    };
    while (!isDone()) {
        // A closed one is -1, which poll() passes over; after the last record control is readable for ever.
        std::array<pollfd, 4> wait{{{interrupts.descriptor(), POLLIN, 0},
                                    {captured.end.event ? -1 : streams.control.get(), POLLIN, 0},
                                    {streams.output.get(), POLLIN, 0},
                                    {streams.error.get(), POLLIN, 0}}};
        if (::poll(wait.data(), wait.size(), -1) < 0) {
            if (errno != EINTR) {
                throw std::system_error(errno, std::generic_category(), "poll");
            }
            continue;
        }
        if (wait[0].revents != 0) {
            captured.end.leftBySignal = leavingSignal(interrupts);
        }
        if (wait[1].revents != 0) {
            readControl(streams, captured.end);
        }
        if (wait[2].revents != 0) {
            const std::string_view bytes = readFrom(streams.output, buffer);
            captured.wasStopped = !bytes.empty() && !take(bytes);
        }
        if (wait[3].revents != 0) {
            const std::string_view bytes = readFrom(streams.error, buffer);
            captured.error += bytes.substr(0, kMostError - captured.error.size());
        }
        if (captured.end.leftBySignal || captured.wasStopped) {
            streams.control.close();
            streams.output.close();
            streams.error.close();
            break;
        }
    }
    return captured;
}

} // namespace bulkhead::cli

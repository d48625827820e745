// SPDX-License-Identifier: Apache-2.0
#include "link/guest_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

// Needs sa_family_t from above.
#include <linux/vm_sockets.h>

namespace bulkhead::link {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// While the guest has no driver the request waits in its queue, and is answered when the driver comes. Short, so that
/// the end of the emulator (which answers nothing to a try under way) is seen by the next try.
constexpr milliseconds kOneTry = 1s;
constexpr milliseconds kFirstPause = 10ms;
constexpr milliseconds kLongestPause = 100ms;
/// An emulator registers its address anew while it starts: that there is none means something only when it lasts.
constexpr milliseconds kAbsent = 500ms;

bool isPassing(int error) {
    return error == ECONNRESET || error == ETIMEDOUT || error == ECONNREFUSED || error == EINTR || error == EAGAIN ||
           error == ENODEV;
}

void sleepUnlessCancelled(milliseconds time, const std::stop_token& cancel) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, cancel, time, [] { return false; });
}

/// Becomes readable when the token is stopped.
class StopDescriptor {
public:
    explicit StopDescriptor(const std::stop_token& token)
        : m_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
        , m_callback(token, [fd = m_fd.get()] { static_cast<void>(::eventfd_write(fd, 1)); }) {}
    [[nodiscard]] int get() const { return m_fd.get(); }

private:
    UniqueFd m_fd; // before the callback, which uses it
    std::stop_callback<std::function<void()>> m_callback;
};

/// 0 when connected.
int waitConnected(int fd, milliseconds atMost, const std::stop_token& cancel) {
    const StopDescriptor stop(cancel);
    std::array<pollfd, 2> waiting{{{fd, POLLOUT, 0}, {stop.get(), POLLIN, 0}}};
    const int count = ::poll(waiting.data(), waiting.size(), static_cast<int>(atMost.count()));
    if (count < 0) {
        return errno;
    }
    if (waiting[1].revents != 0) {
        return ECANCELED;
    }
    if (count == 0) {
        return ETIMEDOUT;
    }
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

} // namespace

Result<UniqueFd> connectWhenReady(const ConnectOnce& connectOnce, milliseconds timeout, const std::stop_token& cancel) {
    const auto deadline = Clock::now() + timeout;
    milliseconds pause = kFirstPause;
    std::optional<Clock::time_point> absentSince;
    while (!cancel.stop_requested()) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        if (left <= 0ms) {
            return fail(ErrorCode::TimedOut,
                        "the guest's agent did not answer within " + std::to_string(timeout.count() / 1000) + " s");
        }
        auto attempt = connectOnce(std::min(left, kOneTry), cancel);
        if (attempt.socket) {
            return std::move(attempt.socket);
        }
        if (attempt.error == ECANCELED) {
            break;
        }
        if (!isPassing(attempt.error)) {
            return failErrno("connecting to the guest over AF_VSOCK", attempt.error);
        }
        const auto now = Clock::now();
        if (attempt.error != ENODEV) {
            absentSince.reset();
        } else if (!absentSince) {
            absentSince = now;
        } else if (now - *absentSince >= kAbsent) {
            return fail(ErrorCode::GuestFailure, "no emulator has the guest's AF_VSOCK address any more");
        }
        sleepUnlessCancelled(pause, cancel);
        pause = std::min(pause * 2, kLongestPause);
    }
    return fail(ErrorCode::Cancelled, "cancelled");
}

ConnectTry connectVsockOnce(std::uint32_t cid, std::uint32_t port, milliseconds atMost, const std::stop_token& cancel) {
    UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        return {UniqueFd(), errno};
    }
    // Otherwise the kernel gives up after two seconds by itself; and it is to take its request back when we do.
    const timeval limit{.tv_sec = atMost.count() / 1000, .tv_usec = atMost.count() % 1000 * 1000};
    static_cast<void>(::setsockopt(socket.get(), AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &limit, sizeof limit));
    sockaddr_vm address{};
    address.svm_family = AF_VSOCK;
    address.svm_cid = cid;
    address.svm_port = port;
    int error = 0;
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        error = errno == EINPROGRESS ? waitConnected(socket.get(), atMost, cancel) : errno;
    }
    return error == 0 ? ConnectTry{std::move(socket), 0} : ConnectTry{UniqueFd(), error};
}

} // namespace bulkhead::link

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "channel/poller.hpp"
#include "protocol/session.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace bulkhead::channel {

/// The connected byte stream to the guest, whatever carries it (a socket of QEMU's virtio-serial port, or AF_VSOCK):
/// moves bytes between the descriptor and the session.
class Transport {
public:
    struct Ended {
        protocol::Violation violation; ///< None: end of file or an error of the descriptor
        int errorNumber;               ///< 0: end of file
    };
    /// `fd` is made non-blocking. `onEnded` is called once, from within the poller; nothing is read after it.
    Transport(Poller& poller, UniqueFd fd, protocol::Session& session, std::function<void(Ended)> onEnded);
    /// Writes what the session has, as far as the descriptor takes it; the poller does the rest.
    void flush();
    /// When the guest's last bytes were read; none yet: TimePoint{}.
    [[nodiscard]] TimePoint lastHeard() const { return m_lastHeard; }

private:
    void onEvents(std::uint32_t events);
    void end(Ended ended);

    protocol::Session& m_session;
    std::function<void(Ended)> m_onEnded;
    std::vector<std::byte> m_buffer;
    bool m_hasEnded = false;
    TimePoint m_lastHeard{};
    WatchedFd m_fd; ///< last: its handler uses the rest
};

} // namespace bulkhead::channel

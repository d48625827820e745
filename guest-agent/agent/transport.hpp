// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "base/unique_fd.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

namespace bulkhead::agent {

/// The byte stream to the host, without blocking. One thread.
class Transport {
public:
    enum class Outcome {
        Done,   ///< `count` bytes moved
        Later,  ///< nothing now; an event on fd() says when
        Absent, ///< the host is not connected at present; an event on fd() says when it is
        Ended,  ///< the stream is over for good
    };
    struct Moved {
        Outcome outcome;
        std::size_t count = 0;
    };

    virtual ~Transport() = default;
    /// For epoll, to be watched edge-triggered: a port without a host says "hung up" for as long as that lasts.
    [[nodiscard]] virtual int fd() const = 0;
    virtual Moved read(std::span<std::byte> into) = 0;
    virtual Moved write(std::span<const std::byte> from) = 0;
};

/// A connected stream socket (AF_VSOCK, tests). End of file is the end; so is a reset, as when a restored guest gets
/// another address.
std::unique_ptr<Transport> makeSocketTransport(UniqueFd socket);

/// The virtio-serial port. Reading nothing only means that no host is connected yet; the host's data can arrive
/// before its "port open" message, and then writes fail with EAGAIN until that message has come.
std::unique_ptr<Transport> makeSerialTransport(UniqueFd port);

/// Opens the virtio-serial port with this name, found through /sys/class/virtio-ports (there is no udev that would
/// make /dev/virtio-ports). None while the kernel has not announced it.
std::optional<UniqueFd> openSerialPort(std::string_view name);

} // namespace bulkhead::agent

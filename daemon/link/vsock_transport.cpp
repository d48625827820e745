// SPDX-License-Identifier: Apache-2.0
#include "link/vsock_transport.hpp"

#include "base/unique_fd.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace bulkhead::link {
namespace {

/// VHOST_VSOCK_SET_GUEST_CID; <linux/vhost.h> is not for C++.
constexpr unsigned long kSetGuestCid = _IOW(0xAF, 0x60, std::uint64_t);

} // namespace

Result<TransportWish> transportWish(std::string_view word) {
    if (word == "auto") {
        return TransportWish::Auto;
    }
    if (word == nameOf(core::Transport::Vsock)) {
        return TransportWish::Vsock;
    }
    if (word == nameOf(core::Transport::VirtioSerial)) {
        return TransportWish::VirtioSerial;
    }
    return fail(ErrorCode::InvalidArgument, "--transport must be auto, vsock or virtio-serial");
}

std::optional<std::string> VsockTransport::obstacle() const {
    const std::string device = m_options.device.string();
    const UniqueFd vhost(::open(device.c_str(), O_RDWR | O_CLOEXEC));
    if (!vhost) {
        return errno == ENOENT ? device + " does not exist" : device + " cannot be opened: " + std::strerror(errno);
    }
    struct stat status {};
    if (::fstat(vhost.get(), &status) != 0 || !S_ISCHR(status.st_mode)) {
        return device + " is not a device";
    }
    const UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) {
        return std::string("the kernel makes no AF_VSOCK socket: ") + std::strerror(errno);
    }
    return std::nullopt;
}

Result<VsockTransport::Outcome> VsockTransport::choose() {
    using core::Transport;
    if (m_options.wish == TransportWish::VirtioSerial) {
        return Outcome{Transport::VirtioSerial, "bulkheadd was started with --transport=virtio-serial"};
    }
    const auto problem = obstacle();
    if (!problem) {
        return Outcome{Transport::Vsock, m_options.device.string() + " can be opened"};
    }
    if (m_options.wish == TransportWish::Vsock) {
        return fail(ErrorCode::Unavailable,
                    "bulkheadd was started with --transport=vsock, but " + *problem + "; try: " + std::string(kRemedy));
    }
    return Outcome{Transport::VirtioSerial, *problem + " (for vsock: " + std::string(kRemedy) + ")"};
}

bool VsockTransport::isCidFree(std::uint32_t cid) {
    const UniqueFd vhost(::open(m_options.device.c_str(), O_RDWR | O_CLOEXEC));
    if (!vhost) {
        return true; // the emulator's start will say what is wrong
    }
    // Taken and given back at once.
    std::uint64_t wanted = cid;
    return ::ioctl(vhost.get(), kSetGuestCid, &wanted) == 0 || errno != EADDRINUSE;
}

} // namespace bulkhead::link

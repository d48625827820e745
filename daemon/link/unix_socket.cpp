// SPDX-License-Identifier: Apache-2.0
#include "link/unix_socket.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace bulkhead::link {
namespace {

Result<sockaddr_un> addressOf(const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string text = path.string();
    if (text.size() >= sizeof address.sun_path) {
        return fail(ErrorCode::HostFailure, "the socket path " + text + " is too long");
    }
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
    return address;
}

} // namespace

Result<UniqueFd> listenSeqPacket(const std::filesystem::path& path) {
    const auto address = addressOf(path);
    if (!address) {
        return fail(address.error());
    }
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        return failErrno("socket", errno);
    }
    std::error_code ignored; // a stale socket of a process that is gone; absence is the normal case
    std::filesystem::remove(path, ignored);
    // bind(2) makes the file with the mode of the descriptor (Linux), so that nobody else can connect in between.
    if (::fchmod(socket.get(), 0600) != 0 ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
        ::listen(socket.get(), 4) != 0) {
        return failErrno("listening on " + path.string(), errno);
    }
    return socket;
}

Result<UniqueFd> connectUnix(const std::filesystem::path& path, int type) {
    const auto address = addressOf(path);
    if (!address) {
        return fail(address.error());
    }
    UniqueFd socket(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        return failErrno("socket", errno);
    }
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
        const int why = errno;
        if (why == ENOENT || why == ECONNREFUSED) {
            return fail(ErrorCode::NotFound, "nobody listens on " + path.string());
        }
        return failErrno("connecting to " + path.string(), why);
    }
    return socket;
}

} // namespace bulkhead::link

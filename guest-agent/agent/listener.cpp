// SPDX-License-Identifier: Apache-2.0
#include "agent/listener.hpp"

#include "agent/small_file.hpp"

#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Needs sa_family_t from above.
#include <linux/vm_sockets.h>

namespace bulkhead::agent {
namespace {

/// Connections that the kernel holds for us. Few: whatever waits here has proved nothing.
constexpr int kBacklog = 8;
constexpr const char* kVsockDevice = "0x0013";

Result<UniqueFd> listenAt(int family, const sockaddr* address, socklen_t size) {
    UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
        return failErrno("make the channel's socket", errno);
    }
    if (::bind(socket.get(), address, size) != 0 || ::listen(socket.get(), kBacklog) != 0) {
        return failErrno("listen for the host", errno);
    }
    return socket;
}

bool comesFromHost(int fd) {
    sockaddr_vm peer{};
    socklen_t size = sizeof peer;
    return ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && peer.svm_family == AF_VSOCK &&
           peer.svm_cid == VMADDR_CID_HOST;
}

} // namespace

Result<Listener> listenVsock(std::uint32_t port) {
    sockaddr_vm address{};
    address.svm_family = AF_VSOCK;
    address.svm_cid = VMADDR_CID_ANY;
    address.svm_port = port;
    auto socket = listenAt(AF_VSOCK, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (!socket) {
        return fail(socket.error());
    }
    return Listener{std::move(*socket), comesFromHost};
}

Result<Listener> listenUnix(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        return fail(ErrorCode::InvalidArgument, "The socket path is too long");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    auto socket = listenAt(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (!socket) {
        return fail(socket.error());
    }
    return Listener{std::move(*socket), [](int) { return true; }};
}

bool hasVsock() {
    const std::string base = "/sys/bus/virtio/devices";
    DIR* const folder = ::opendir(base.c_str());
    if (folder == nullptr) {
        return false;
    }
    bool found = false;
    while (const dirent* entry = ::readdir(folder)) {
        const std::string name = static_cast<const char*>(entry->d_name);
        if (name.starts_with('.')) {
            continue;
        }
        const auto text = readSmallFile(base + "/" + name + "/device", 64);
        const std::string kind = text ? text->substr(0, text->find('\n')) : std::string();
        found = found || kind == kVsockDevice;
    }
    ::closedir(folder);
    return found;
}

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#include "agent/transport.hpp"

#include "agent/small_file.hpp"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::agent {
namespace {

class SocketTransport final : public Transport {
public:
    explicit SocketTransport(UniqueFd socket)
        : m_fd(std::move(socket)) {
        ::fcntl(m_fd.get(), F_SETFL, ::fcntl(m_fd.get(), F_GETFL) | O_NONBLOCK);
    }
    [[nodiscard]] int fd() const override { return m_fd.get(); }
    Moved read(std::span<std::byte> into) override {
        const ssize_t count = ::read(m_fd.get(), into.data(), into.size());
        if (count > 0) {
            return {Outcome::Done, static_cast<std::size_t>(count)};
        }
        return {count < 0 && (errno == EAGAIN || errno == EINTR) ? Outcome::Later : Outcome::Ended};
    }
    Moved write(std::span<const std::byte> from) override {
        const ssize_t count = ::send(m_fd.get(), from.data(), from.size(), MSG_NOSIGNAL);
        if (count >= 0) {
            return {Outcome::Done, static_cast<std::size_t>(count)};
        }
        return {errno == EAGAIN || errno == EINTR ? Outcome::Later : Outcome::Ended};
    }

private:
    UniqueFd m_fd;
};

class SerialTransport final : public Transport {
public:
    explicit SerialTransport(UniqueFd port)
        : m_fd(std::move(port)) {}
    [[nodiscard]] int fd() const override { return m_fd.get(); }
    Moved read(std::span<std::byte> into) override {
        const ssize_t count = ::read(m_fd.get(), into.data(), into.size());
        if (count > 0) {
            return {Outcome::Done, static_cast<std::size_t>(count)};
        }
        if (count == 0) {
            return {Outcome::Absent};
        }
        // ENODEV: the port was unplugged, which our machines never do.
        return {errno == ENODEV ? Outcome::Ended : Outcome::Later};
    }
    Moved write(std::span<const std::byte> from) override {
        const ssize_t count = ::write(m_fd.get(), from.data(), from.size());
        if (count >= 0) {
            return {Outcome::Done, static_cast<std::size_t>(count)};
        }
        return {errno == ENODEV ? Outcome::Ended : Outcome::Later};
    }

private:
    UniqueFd m_fd;
};

} // namespace

std::unique_ptr<Transport> makeSocketTransport(UniqueFd socket) {
    return std::make_unique<SocketTransport>(std::move(socket));
}

std::unique_ptr<Transport> makeSerialTransport(UniqueFd port) {
    return std::make_unique<SerialTransport>(std::move(port));
}

std::optional<UniqueFd> openSerialPort(std::string_view name) {
    const std::string base = "/sys/class/virtio-ports";
    DIR* folder = ::opendir(base.c_str());
    if (folder == nullptr) {
        return std::nullopt;
    }
    std::optional<UniqueFd> port;
    while (const dirent* entry = ::readdir(folder)) {
        const std::string device = static_cast<const char*>(entry->d_name);
        if (device.starts_with('.')) {
            continue;
        }
        const auto found = readSmallFile(base + "/" + device + "/name", 256);
        if (!found || found->substr(0, found->find('\n')) != name) {
            continue;
        }
        UniqueFd fd(::open(("/dev/" + device).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        if (fd) {
            port = std::move(fd);
        }
        break;
    }
    ::closedir(folder);
    return port;
}

} // namespace bulkhead::agent

// SPDX-License-Identifier: Apache-2.0
#include "cli/run/sink.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>

namespace bulkhead::cli {

Sink::Sink(int fd)
    : m_fd(fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) {
        return;
    }
    if (S_ISSOCK(status.st_mode)) {
        m_kind = Kind::Socket;
    } else if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
        // A second opening of the same pipe or terminal has flags of its own. (A file must not be opened again: the
        // new opening would begin at its start.)
        const std::string path = "/proc/self/fd/" + std::to_string(fd);
        m_own = client::Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
        m_kind = m_own.isOpen() ? Kind::Reopened : Kind::Shared;
    }
}

std::ptrdiff_t Sink::write(std::span<const char> bytes) {
    std::ptrdiff_t count = 0;
    if (m_kind == Kind::Socket) {
        count = ::send(m_fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (m_kind == Kind::Shared) {
        // What poll() promises room for; only the terminal of another user comes this way (after su).
        count = ::write(m_fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    } else {
        count = ::write(descriptor(), bytes.data(), bytes.size());
    }
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return 0;
    }
    return count;
}

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"

#include <cstddef>
#include <span>

namespace bulkhead::cli {

/// Writes to a descriptor that we were given (standard output or error) without ever blocking on a slow reader and
/// without making it non-blocking: that flag would be seen by every program that shares the terminal or pipe.
class Sink {
public:
    /// `fd` stays the caller's.
    explicit Sink(int fd);

    /// For poll(): writable when write() would take something.
    [[nodiscard]] int descriptor() const { return m_own.isOpen() ? m_own.get() : m_fd; }
    /// Whether poll() tells of a reader that has gone; files never do.
    [[nodiscard]] bool canBreak() const { return m_kind != Kind::File; }
    /// Bytes taken (0: try again after poll()), or -1 with errno.
    [[nodiscard]] std::ptrdiff_t write(std::span<const char> bytes);

private:
    enum class Kind { File, Socket, Reopened, Shared };
    int m_fd;
    Kind m_kind = Kind::File;
    client::Descriptor m_own;
};

} // namespace bulkhead::cli

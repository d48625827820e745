// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/domain.hpp"

namespace bulkhead::cli {

/// Raw mode of the terminal on a descriptor for as long as the object lives. Also put back by exit() and when the
/// program dies of a fault. One at a time.
class RawTerminal {
public:
    /// Throws std::system_error if `fd` is no terminal or refuses.
    explicit RawTerminal(int fd);
    ~RawTerminal();
    RawTerminal(const RawTerminal&) = delete;
    RawTerminal& operator=(const RawTerminal&) = delete;

    /// Raw again, after the shell took the terminal back while we were stopped. False, with errno: it refuses.
    bool enter() noexcept;

private:
    int m_fd;
};

/// The window's size, 24 rows of 80 when the terminal does not know.
client::TerminalSize terminalSizeOf(int fd);

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/descriptor.hpp"

#include <initializer_list>
#include <optional>
#include <vector>

namespace bulkhead::cli {

/// Turns signals into bytes on a pipe, so that an event loop and a poll() loop can both take them where it suits them.
/// One object at a time in a process (signal handlers are the process's); it puts the former handlers back.
class Interrupts {
public:
    explicit Interrupts(std::initializer_list<int> numbers);
    ~Interrupts();
    Interrupts(const Interrupts&) = delete;
    Interrupts& operator=(const Interrupts&) = delete;

    /// Readable when a signal has come.
    [[nodiscard]] int descriptor() const { return m_read.get(); }
    /// The next signal that has come, none when there is none.
    [[nodiscard]] std::optional<int> next();
    /// Makes `signal` come again, for whoever asks next.
    void putBack(int signal);

private:
    client::Descriptor m_read;
    client::Descriptor m_write;
    struct Former;
    std::vector<Former> m_former;
};

} // namespace bulkhead::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupts.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <system_error>

namespace bulkhead::cli {
namespace {

/// The only thing that a handler can reach. An int that is lock-free, as handlers need.
std::atomic<int> g_writeEnd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void onSignal(int number) {
    const int savedErrno = errno;
    const auto byte = static_cast<unsigned char>(number);
    // A full pipe means that thousands wait already; one more says nothing new.
    [[maybe_unused]] const ssize_t written = ::write(g_writeEnd.load(), &byte, 1);
    errno = savedErrno;
}

} // namespace

struct Interrupts::Former {
    int number;
    struct sigaction action;
};

Interrupts::Interrupts(std::initializer_list<int> numbers) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        throw std::system_error(errno, std::generic_category(), "pipe2");
    }
    m_read = client::Descriptor(ends[0]);
    m_write = client::Descriptor(ends[1]);
    g_writeEnd = ends[1];
    for (const int number : numbers) {
        struct sigaction action = {};
        action.sa_handler = onSignal;
        sigemptyset(&action.sa_mask);
        // No SA_RESTART: a write that blocks on a slow terminal must let go when Ctrl-C comes.
        Former former{number, {}};
        ::sigaction(number, nullptr, &former.action);
        // nohup and background jobs of plain shells start us with signals ignored; that stays so.
        if (former.action.sa_handler == SIG_IGN && number != SIGWINCH && number != SIGCONT) {
            continue;
        }
        ::sigaction(number, &action, nullptr);
        m_former.push_back(former);
    }
}

Interrupts::~Interrupts() {
    for (const Former& former : m_former) {
        ::sigaction(former.number, &former.action, nullptr);
    }
    g_writeEnd = -1;
}

void Interrupts::putBack(int signal) {
    onSignal(signal);
}

std::optional<int> Interrupts::next() {
    unsigned char byte = 0;
    return ::read(m_read.get(), &byte, 1) == 1 ? std::optional<int>(byte) : std::nullopt;
}

} // namespace bulkhead::cli

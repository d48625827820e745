// SPDX-License-Identifier: Apache-2.0
#include "cli/run/terminal_mode.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sys/ioctl.h>
#include <system_error>
#include <termios.h>

namespace bulkhead::cli {
namespace {

// Handlers and exit functions reach nothing but these.
termios g_saved{};
std::atomic<int> g_terminal{-1};

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/// Waits for what is still being shown, and any signal (a changed window, the shell's bg) interrupts that.
bool setMode(int fd, const termios& mode) noexcept {
    while (::tcsetattr(fd, TCSADRAIN, &mode) != 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

void restore() {
    const int fd = g_terminal;
    if (fd >= 0 && setMode(fd, g_saved)) {
        g_terminal = -1;
    }
}

void onFault(int number) {
    restore();
    // SA_RESETHAND has put the default back: this ends us as it should, with the core that belongs to it.
    ::raise(number);
}

} // namespace

RawTerminal::RawTerminal(int fd)
    : m_fd(fd) {
    if (::tcgetattr(fd, &g_saved) != 0) {
        throw std::system_error(errno, std::generic_category(), "tcgetattr");
    }
    static const bool registered = std::atexit(restore) == 0;
    static_cast<void>(registered);
    for (const int number : kFaults) {
        struct sigaction action = {};
        action.sa_handler = onFault;
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigemptyset(&action.sa_mask);
        ::sigaction(number, &action, nullptr);
    }
    g_terminal = fd;
    if (!enter()) {
        const int why = errno;
        g_terminal = -1;
        throw std::system_error(why, std::generic_category(), "tcsetattr");
    }
}

RawTerminal::~RawTerminal() {
    restore();
    g_terminal = -1; // the descriptor may be another file's from here on
}

bool RawTerminal::enter() noexcept {
    termios raw = g_saved;
    ::cfmakeraw(&raw);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    return setMode(m_fd, raw);
}

client::TerminalSize terminalSizeOf(int fd) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
        return {24, 80};
    }
    return {size.ws_row, size.ws_col};
}

} // namespace bulkhead::cli

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

void restore() {
    const int fd = g_terminal.exchange(-1);
    if (fd >= 0) {
        ::tcsetattr(fd, TCSADRAIN, &g_saved);
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
    enter();
}

RawTerminal::~RawTerminal() {
    restore();
}

void RawTerminal::enter() {
    termios raw = g_saved;
    ::cfmakeraw(&raw);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (::tcsetattr(m_fd, TCSADRAIN, &raw) != 0) {
        throw std::system_error(errno, std::generic_category(), "tcsetattr");
    }
}

client::TerminalSize terminalSizeOf(int fd) {
    winsize size{};
    if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
        return {24, 80};
    }
    return {size.ws_row, size.ws_col};
}

} // namespace bulkhead::cli

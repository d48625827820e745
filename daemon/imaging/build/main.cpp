// SPDX-License-Identifier: Apache-2.0
// bulkhead-build: makes a template's files as an unprivileged user. Started by bulkheadd, or by hand.
#include "base/escaping.hpp"
#include "build/builder.hpp"
#include "build/options.hpp"

#include <csignal>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <unistd.h>

namespace bulkhead::imaging::build {
namespace {

/// Turns TERM and INT into a cancel. The signals are blocked in all threads, so that only this one takes them.
class CancelOnSignal {
public:
    CancelOnSignal() {
        ::sigemptyset(&m_signals);
        for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) {
            ::sigaddset(&m_signals, number);
        }
        ::pthread_sigmask(SIG_BLOCK, &m_signals, nullptr);
        m_thread = std::thread([this] {
            int number = 0;
            ::sigwait(&m_signals, &number);
            m_source.request_stop();
        });
    }
    ~CancelOnSignal() {
        ::pthread_kill(m_thread.native_handle(), SIGUSR2);
        m_thread.join();
    }
    CancelOnSignal(const CancelOnSignal&) = delete;
    CancelOnSignal& operator=(const CancelOnSignal&) = delete;
    [[nodiscard]] std::stop_token token() const { return m_source.get_token(); }

private:
    sigset_t m_signals{};
    std::stop_source m_source;
    std::thread m_thread;
};

void printLastLines(const std::string& log) {
    constexpr std::size_t kLines = 20;
    std::deque<std::string> last;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        last.push_back(line);
        if (last.size() > kLines) {
            last.pop_front();
        }
    }
    for (const std::string& line : last) {
        std::cerr << "  | " << escapeUntrusted(line) << "\n";
    }
}

int run(std::span<char* const> arguments, int progressFd) {
    if (arguments.empty() || std::string_view(arguments[0]) == "--help") {
        std::cerr << usageText();
        return arguments.empty() ? 2 : 0;
    }
    auto options = parseOptions(arguments);
    if (!options) {
        std::cerr << "bulkhead-build: " << options.error().message << "\n" << usageText();
        return 2;
    }
    if (::geteuid() == 0) {
        std::cerr << "bulkhead-build: run this as an unprivileged user with subuid and subgid ranges; packages' "
                     "scripts must not run as root\n";
        return 2;
    }
    const CancelOnSignal cancel;
    Builder builder(std::move(*options), Progress(progressFd), cancel.token());
    if (const auto done = builder.build(); !done) {
        if (done.error().code != ErrorCode::Cancelled) {
            printLastLines(builder.log());
        }
        // Last: of a long text the daemon shows the end.
        std::cerr << "bulkhead-build: " << nameOf(done.error().code) << ": " << done.error().message << "\n";
        return 1;
    }
    return 0;
}

} // namespace
} // namespace bulkhead::imaging::build

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    // Before anything else is opened and takes the number.
    constexpr int kProgressDescriptor = 3;
    const bool listened = ::fcntl(kProgressDescriptor, F_GETFD) >= 0;
    try {
        return bulkhead::imaging::build::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1),
                                             listened ? kProgressDescriptor : -1);
    } catch (const std::exception& fault) {
        std::cerr << "bulkhead-build: " << fault.what() << "\n";
        return 1;
    }
}

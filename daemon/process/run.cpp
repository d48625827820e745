// SPDX-License-Identifier: Apache-2.0
#include "process/run.hpp"

#include "base/escaping.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace bulkhead::process {

namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
    UniqueFd reader;
    UniqueFd writer;
};

Result<Pipe> makePipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return failErrno("make a pipe", errno);
    }
    Pipe made{UniqueFd(ends[0]), UniqueFd(ends[1])};
    // Our end only: what the child gets must block as programs expect.
    ::fcntl(made.reader.get(), F_SETFL, O_NONBLOCK);
    return made;
}

/// Keeps the last bytes of a stream.
class Tail {
public:
    explicit Tail(std::size_t limit)
        : m_limit(limit) {}
    void append(std::string_view bytes) {
        m_text.append(bytes);
        // Cut rarely, so that a long stream costs O(n).
        if (m_text.size() > 2 * m_limit + 4096) {
            cut();
        }
    }
    bool cut() {
        if (m_text.size() > m_limit) {
            m_text.erase(0, m_text.size() - m_limit);
            m_wasCut = true;
        }
        return m_wasCut;
    }
    [[nodiscard]] std::string take() { return std::move(m_text); }

private:
    std::size_t m_limit;
    std::string m_text;
    bool m_wasCut = false;
};

constexpr std::size_t kMaxLine = 4096;

/// Cuts a stream into lines; the part of a line beyond the limit is dropped.
class Lines {
public:
    explicit Lines(const std::function<void(std::string_view)>& sink)
        : m_sink(sink) {}
    void append(std::string_view bytes) {
        for (const char c : bytes) {
            if (c == '\n') {
                flush();
            } else if (m_line.size() < kMaxLine) {
                m_line += c;
            }
        }
    }
    void flush() {
        if (!m_line.empty() && m_sink) {
            m_sink(m_line);
        }
        m_line.clear();
    }

private:
    const std::function<void(std::string_view)>& m_sink;
    std::string m_line;
};

/// Reads what is there now. Closes `fd` at the end of the stream.
template <class Sink> void drain(UniqueFd& fd, Sink&& sink) {
    std::array<char, 16384> buffer{};
    while (fd) {
        const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got > 0) {
            sink(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
        } else if (got < 0 && errno == EINTR) {
            continue;
        } else if (got < 0 && errno == EAGAIN) {
            return;
        } else {
            fd.reset();
        }
    }
}

/// One read per turn of the loop, so that a child that writes without end cannot keep us from looking at the clock.
template <class Sink> void readOnce(UniqueFd& fd, Sink&& sink) {
    std::array<char, 65536> buffer{};
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got > 0) {
        sink(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        fd.reset();
    }
}

int millisecondsUntil(Clock::time_point when) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

} // namespace

std::string tailForMessage(std::string_view output, std::size_t maxBytes) {
    while (!output.empty() && (output.back() == '\n' || output.back() == ' ')) {
        output.remove_suffix(1);
    }
    if (output.size() > maxBytes) {
        output.remove_prefix(output.size() - maxBytes);
        // Begin at a whole line, if there is one.
        if (const auto lineEnd = output.find('\n'); lineEnd != std::string_view::npos) {
            output.remove_prefix(lineEnd + 1);
        }
    }
    std::string text;
    while (!output.empty()) {
        const auto lineEnd = std::min(output.find('\n'), output.size());
        if (lineEnd > 0) {
            text += (text.empty() ? "" : " | ") + escapeUntrusted(output.substr(0, lineEnd), maxBytes);
        }
        output.remove_prefix(std::min(lineEnd + 1, output.size()));
    }
    return text;
}

Result<RunResult> run(const ProcessSpec& spec, const RunOptions& options) {
    auto output = makePipe();
    auto error = makePipe();
    auto progress = makePipe();
    const UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    for (const Result<Pipe>* made : {&output, &error, &progress}) {
        if (!*made) {
            return fail(made->error().in("cannot start " + spec.program.string()));
        }
    }
    if (!wake) {
        return failErrno("cannot start " + spec.program.string() + ": make an event", errno);
    }
    if (options.cancel.stop_requested()) {
        return fail(ErrorCode::Cancelled, spec.program.filename().string() + " was cancelled");
    }

    ProcessSpec actual = spec;
    actual.descriptors.push_back({STDOUT_FILENO, output->writer.get()});
    actual.descriptors.push_back({STDERR_FILENO, error->writer.get()});
    if (options.progressDescriptor >= 0) {
        actual.descriptors.push_back({options.progressDescriptor, progress->writer.get()});
    }
    auto child = spawn(actual);
    if (!child) {
        return fail(child.error());
    }
    output->writer.reset();
    error->writer.reset();
    progress->writer.reset();

    const std::stop_callback onCancel(options.cancel, [&wake] {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(wake.get(), &one, sizeof(one));
    });

    Tail keptOutput(options.maxOutput);
    Tail keptError(options.maxOutput);
    Lines lines(options.onProgressLine);
    const auto toOutput = [&](std::string_view bytes) { keptOutput.append(bytes); };
    const auto toError = [&](std::string_view bytes) { keptError.append(bytes); };
    const auto toLines = [&](std::string_view bytes) { lines.append(bytes); };

    enum class Ending { None, TimedOut, Cancelled };
    Ending ending = Ending::None;
    Clock::time_point deadline = Clock::now() + options.timeout;
    bool isKilled = false;
    while (true) {
        // poll(2) skips entries with a negative descriptor: streams that have ended, and the wake-up once heard.
        std::array<pollfd, 5> entries{{{child->pidfd.get(), POLLIN, 0},
                                       {output->reader.get(), POLLIN, 0},
                                       {error->reader.get(), POLLIN, 0},
                                       {progress->reader.get(), POLLIN, 0},
                                       {ending == Ending::None ? wake.get() : -1, POLLIN, 0}}};
        const int ready = ::poll(entries.data(), entries.size(), isKilled ? -1 : millisecondsUntil(deadline));
        if (ready < 0 && errno != EINTR) {
            return failErrno("cannot wait for " + spec.program.string(), errno);
        }
        if (ready > 0) {
            if (entries[1].revents != 0) {
                readOnce(output->reader, toOutput);
            }
            if (entries[2].revents != 0) {
                readOnce(error->reader, toError);
            }
            if (entries[3].revents != 0) {
                readOnce(progress->reader, toLines);
            }
            if (entries[0].revents != 0) {
                break;
            }
        }
        const bool cancelled = ending == Ending::None && options.cancel.stop_requested();
        if (cancelled || (!isKilled && Clock::now() >= deadline)) {
            if (ending == Ending::None) {
                ending = cancelled ? Ending::Cancelled : Ending::TimedOut;
                ::kill(-child->pid, SIGTERM);
                deadline = Clock::now() + options.killGrace;
            } else {
                ::kill(-child->pid, SIGKILL);
                isKilled = true;
            }
        }
    }
    // The leader has ended but is not reaped, so the group's number is still ours: what it left behind goes with it.
    ::kill(-child->pid, SIGKILL);
    drain(output->reader, toOutput);
    drain(error->reader, toError);
    drain(progress->reader, toLines);
    lines.flush();
    auto status = reap(*child);
    if (!status) {
        return fail(status.error());
    }
    const std::string name = spec.program.filename().string();
    if (ending == Ending::Cancelled) {
        return fail(ErrorCode::Cancelled, name + " was cancelled");
    }
    if (ending == Ending::TimedOut) {
        return fail(ErrorCode::TimedOut,
                    name + " did not end within " + std::to_string(options.timeout.count()) + " ms and was killed");
    }
    const bool outputCut = keptOutput.cut();
    const bool errorCut = keptError.cut();
    return RunResult{status->value_or(ExitStatus{}), keptOutput.take(), keptError.take(), outputCut || errorCut};
}

Result<RunResult> runChecked(const ProcessSpec& spec, const RunOptions& options) {
    auto result = run(spec, options);
    if (result && !result->status.isSuccess()) {
        const std::string tail = tailForMessage(result->error.empty() ? result->output : result->error);
        return fail(ErrorCode::HostFailure, spec.program.filename().string() + " failed (" + result->status.text() +
                                                ")" + (tail.empty() ? "" : ": " + tail));
    }
    return result;
}

} // namespace bulkhead::process

// SPDX-License-Identifier: Apache-2.0
#include "memory/memory_capture.hpp"

#include "memory/file_io.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace bulkhead::memory {

namespace {

using Clock = std::chrono::steady_clock;

Result<UniqueFd> openForHelper(const std::filesystem::path& image, int flags) {
    UniqueFd fd(::open(image.c_str(), flags | O_CLOEXEC | O_NOFOLLOW));
    if (!fd && errno == ENOENT) {
        return fail(ErrorCode::NotFound, "no memory image " + image.string());
    }
    if (!fd) {
        return failErrno("cannot open memory image " + image.string(), errno);
    }
    return fd;
}

Status checkSpec(const CaptureSpec& spec) {
    if (spec.emulator <= 0 || spec.ram == 0 || spec.ram % kPage != 0 || spec.ram > kMostRam) {
        return fail(ErrorCode::InvalidArgument, "cannot capture " + std::to_string(spec.ram) +
                                                    " bytes of memory of process " + std::to_string(spec.emulator));
    }
    if (spec.mappedImage && !spec.parent) {
        return fail(ErrorCode::InvalidArgument, "an emulator started from image " + spec.mappedImage->string() +
                                                    " can only be captured against an image");
    }
    if (spec.parent && !isDigest(spec.parent->digest)) {
        return fail(ErrorCode::InvalidArgument, "no valid digest for memory image " + spec.parent->file.string());
    }
    return {};
}

int millisecondsUntil(Clock::time_point when) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

} // namespace

MemoryCapture::MemoryCapture(Running running, UniqueFd cancelled, std::filesystem::path output, CaptureLimits limits)
    : m_running(std::move(running))
    , m_cancelled(std::move(cancelled))
    , m_output(std::move(output))
    , m_limits(limits) {}

MemoryCapture::MemoryCapture(MemoryCapture&& other) noexcept
    : m_running(std::exchange(other.m_running, std::nullopt))
    , m_cancelled(std::move(other.m_cancelled))
    , m_output(std::exchange(other.m_output, {}))
    , m_limits(other.m_limits) {}

MemoryCapture::~MemoryCapture() {
    end();
    if (!m_output.empty()) {
        ::unlink(m_output.c_str());
    }
}

Result<MemoryCapture> MemoryCapture::start(const CaptureSpec& spec, const CaptureLimits& limits) {
    if (auto good = checkSpec(spec); !good) {
        return fail(good.error());
    }
    const std::string emulator = "emulator " + std::to_string(spec.emulator);
    process::ProcessSpec helper;
    helper.program = spec.helper;
    helper.arguments = {"--pid",       std::to_string(spec.emulator),
                        "--ram-bytes", std::to_string(spec.ram),
                        "--max-bytes", std::to_string(spec.maxPrivate == 0 ? spec.ram : spec.maxPrivate)};

    UniqueFd ownPidfd;
    if (spec.emulatorPidfd < 0) {
        ownPidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, spec.emulator, 0U)));
        if (!ownPidfd) {
            return errno == ESRCH ? fail(ErrorCode::NotFound, emulator + " has ended")
                                  : failErrno("cannot open a descriptor of " + emulator, errno);
        }
    }
    helper.descriptors.push_back({kProcessFd, spec.emulatorPidfd < 0 ? ownPidfd.get() : spec.emulatorPidfd});

    UniqueFd parent;
    if (spec.parent) {
        auto opened = openForHelper(spec.parent->file, O_RDONLY | O_NONBLOCK);
        if (!opened) {
            return fail(opened.error());
        }
        parent = std::move(*opened);
        helper.arguments.insert(helper.arguments.end(), {"--parent", spec.parent->digest});
        helper.descriptors.push_back({kParentFd, parent.get()});
    }
    UniqueFd mapped;
    if (spec.mappedImage) {
        auto opened = openForHelper(*spec.mappedImage, O_PATH);
        if (!opened) {
            return fail(opened.error());
        }
        mapped = std::move(*opened);
        helper.arguments.emplace_back("--mapped-file");
        helper.descriptors.push_back({kMappedFd, mapped.get()});
    }

    // One socket for both directions: writing to a helper that has ended is then an error, not a signal.
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return failErrno("cannot make a socket for the capture of " + emulator, errno);
    }
    UniqueFd ours(ends[0]);
    UniqueFd cancelled(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!cancelled) {
        return failErrno("cannot make an event for the capture of " + emulator, errno);
    }
    const UniqueFd theirs(ends[1]);
    helper.descriptors.push_back({STDIN_FILENO, theirs.get()});
    helper.descriptors.push_back({STDOUT_FILENO, theirs.get()});

    const UniqueFd output(::open(spec.output.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!output) {
        return errno == EEXIST ? fail(ErrorCode::AlreadyExists, spec.output.string() + " exists already")
                               : failErrno("cannot make " + spec.output.string(), errno);
    }
    helper.descriptors.push_back({kOutputFd, output.get()});
    auto child = process::spawn(helper);
    if (!child) {
        ::unlink(spec.output.c_str());
        return fail(child.error());
    }
    return MemoryCapture({std::move(*child), std::move(ours), emulator}, std::move(cancelled), spec.output, limits);
}

Result<std::string> MemoryCapture::ask(std::string_view command, std::chrono::milliseconds limit) {
    if (!m_running) {
        return fail(ErrorCode::WrongState, "the capture has ended");
    }
    const std::string what = "cannot capture the memory of " + m_running->emulatorName;
    const auto deadline = Clock::now() + limit;
    const std::string line = std::string(command) + '\n';
    // A line fits into the socket's buffer, so this does not block.
    if (::send(m_running->link.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE) {
        return failErrno(what, errno);
    }
    std::string answer;
    while (!answer.ends_with('\n')) {
        std::array<pollfd, 2> waiting{{{m_running->link.get(), POLLIN, 0}, {m_cancelled.get(), POLLIN, 0}}};
        const int ready = ::poll(waiting.data(), waiting.size(), millisecondsUntil(deadline));
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready < 0) {
            return failErrno(what, errno);
        }
        if (waiting[1].revents != 0) {
            return fail(ErrorCode::Cancelled, "the capture of " + m_running->emulatorName + " was cancelled");
        }
        if (ready == 0) {
            return fail(ErrorCode::TimedOut, what + ": no end of \"" + std::string(command) + "\" in " +
                                                 std::to_string(limit.count()) + " ms");
        }
        std::array<char, kMaxLine> bytes{};
        const ssize_t got = ::recv(m_running->link.get(), bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return fail(ErrorCode::HostFailure, what + ": the helper ended during \"" + std::string(command) + "\"");
        }
        answer.append(bytes.data(), static_cast<std::size_t>(got));
        if (answer.size() > kMaxLine || answer.find('\n') < answer.size() - 1) {
            return fail(ErrorCode::HostFailure, what + ": the helper said more than one line");
        }
    }
    answer.pop_back();
    return answer;
}

Result<PreparedCapture> MemoryCapture::prepare() {
    const auto line = ask(kPrepare, m_limits.prepare);
    auto answer = line ? decodePrepared(*line) : fail(line.error());
    if (!answer) {
        end();
    }
    return answer;
}

Result<CapturedPages> MemoryCapture::capture() {
    const auto line = ask(kCapture, m_limits.capture);
    auto answer = line ? decodeCaptured(*line) : fail(line.error());
    if (!answer) {
        end();
    }
    return answer;
}

Result<FinishedCapture> MemoryCapture::finish() {
    const auto line = ask(kFinish, m_limits.finish);
    auto answer = line ? decodeFinished(*line) : fail(line.error());
    if (answer) {
        m_output.clear();
    }
    end();
    return answer;
}

void MemoryCapture::cancel() {
    const std::uint64_t one = 1;
    // It can only fail when it has been done more often than anybody can count.
    [[maybe_unused]] const auto written = ::write(m_cancelled.get(), &one, sizeof one);
}

void MemoryCapture::end() {
    if (!m_running) {
        return;
    }
    ::syscall(SYS_pidfd_send_signal, m_running->child.pidfd.get(), SIGKILL, nullptr, 0U);
    pollfd waiting{m_running->child.pidfd.get(), POLLIN, 0};
    while (::poll(&waiting, 1, -1) < 0 && errno == EINTR) {
    }
    // Whatever it ended with: what counts are its answers.
    [[maybe_unused]] const auto status = process::reap(m_running->child);
    m_running.reset();
}

} // namespace bulkhead::memory

// SPDX-License-Identifier: Apache-2.0
// bulkhead-memcap: see memory/capture_lines.hpp for its command line, descriptors and lines.
#include "memcap/capturer.hpp"
#include "memcap/hardening.hpp"
#include "memcap/options.hpp"
#include "memcap/session.hpp"

#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace bulkhead;
using namespace bulkhead::memcap;

constexpr int kLastFd = memory::kMappedFd;

Result<Capturer> openEverything(const Options& options) {
    CaptureTask task{options.ram, options.maxPrivate, std::string(memory::zeroParent()), std::nullopt};
    ParentImage parent;
    if (options.parent) {
        task.parent = *options.parent;
        auto opened = ParentImage::open(UniqueFd(memory::kParentFd), options.ram);
        if (!opened) {
            return fail(opened.error());
        }
        parent = std::move(*opened);
    }
    if (options.hasMappedFile) {
        auto mapped = mappedFileOf(memory::kMappedFd);
        if (!mapped) {
            return fail(mapped.error());
        }
        task.mapped = std::move(*mapped);
    }
    auto emulator = Emulator::open(options.pid, UniqueFd(memory::kProcessFd));
    if (!emulator) {
        return fail(emulator.error());
    }
    return Capturer(std::move(*emulator), std::move(parent), UniqueFd(memory::kOutputFd), std::move(task));
}

int runMemcap(std::span<const char* const> arguments) {
    const auto options = parseOptions(arguments);
    if (!options) {
        answerError(STDOUT_FILENO, options.error());
        return 2;
    }
    if (auto closed = closeInherited(kLastFd); !closed) {
        answerError(STDOUT_FILENO, closed.error());
        return 1;
    }
    // The library of the digest opens things at its first use.
    [[maybe_unused]] const imaging::Digest warmUp;
    auto capturer = openEverything(*options);
    if (!capturer) {
        answerError(STDOUT_FILENO, capturer.error());
        return 1;
    }
    hurry();
    if (auto given = giveUpPrivileges(options->pid, options->ram); !given) {
        answerError(STDOUT_FILENO, given.error());
        return 1;
    }
    return runSession(*capturer, STDIN_FILENO, STDOUT_FILENO);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2 || ::fcntl(memory::kProcessFd, F_GETFD) < 0 || ::fcntl(memory::kOutputFd, F_GETFD) < 0) {
        std::fputs("usage: bulkhead-memcap --pid N --ram-bytes N [--max-bytes N] [--parent DIGEST] [--mapped-file] "
                   "3<PIDFD 4>OUTPUT 5<PARENT 6<MAPPED (bulkheadd starts it)\n",
                   stderr);
        return 2;
    }
    try {
        return runMemcap(std::span<const char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
    } catch (const std::exception& error) {
        answerError(STDOUT_FILENO, {ErrorCode::HostFailure, error.what()});
        return 1;
    }
}

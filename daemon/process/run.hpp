// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "process/process_spec.hpp"
#include "process/spawn.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace bulkhead::process {

struct RunOptions {
    std::chrono::milliseconds timeout{std::chrono::minutes(1)};
    /// From the polite TERM to KILL, for the whole process group.
    std::chrono::milliseconds killGrace{std::chrono::seconds(3)};
    /// What is kept of each of stdout and stderr: the last so many bytes.
    std::size_t maxOutput = 64 * 1024;
    std::stop_token cancel;
    /// The child's descriptor for progress lines, and who hears each line (without its end, at most 4 KiB of it).
    /// Called from the calling thread.
    int progressDescriptor = -1;
    std::function<void(std::string_view line)> onProgressLine;
};

struct RunResult {
    ExitStatus status;
    std::string output; ///< raw bytes; escape before showing
    std::string error;  ///< raw bytes; escape before showing
    bool outputWasCut = false;
};

/// Runs a program to its end. When it returns, the child is reaped and what it left in its process group is killed. A
/// program that ends with a failure is a RunResult, not an Error. Errors: TimedOut, Cancelled, and those of spawn().
Result<RunResult> run(const ProcessSpec& spec, const RunOptions& options = {});

/// run(), with any exit but 0 turned into HostFailure that has the last lines of stderr, escaped.
Result<RunResult> runChecked(const ProcessSpec& spec, const RunOptions& options = {});

/// The last lines of a tool's output in one line, escaped, at most `maxBytes`.
std::string tailForMessage(std::string_view output, std::size_t maxBytes = 600);

} // namespace bulkhead::process

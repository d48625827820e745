// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memcap/capturer.hpp"

namespace bulkhead::memcap {

/// Reads commands from `in` and answers on `out` until the capture is finished, aborted or failed; see
/// memory/capture_lines.hpp. Returns the program's exit status.
int runSession(Capturer& capturer, int in, int out);

/// One `error` line.
void answerError(int out, const Error& error);

} // namespace bulkhead::memcap

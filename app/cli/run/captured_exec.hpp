// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/interrupts.hpp"
#include "cli/run/exec_pump.hpp"
#include "client/domain.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace bulkhead::cli {

struct CapturedEnd {
    PumpEnd end;
    std::string error;       ///< the beginning of what it wrote to standard error, a guest's text
    bool wasStopped = false; ///< `take` wanted no more
};

/// Gives a program's standard output to `take`, piece by piece, until the program has ended; false stops it. It gets no
/// input. Leaving it in any way hangs the program up. One leaving signal of ours ends it (end.leftBySignal). Blocks; no
/// event loop runs meanwhile.
CapturedEnd captureExec(client::ExecStreams& streams, Interrupts& interrupts,
                        const std::function<bool(std::string_view)>& take);

} // namespace bulkhead::cli

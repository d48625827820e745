// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace bulkhead::cli {

/// What a user types at a raw terminal, with the escapes that ssh has: at the beginning of a line `~.` leaves, and `~~`
/// stands for one `~`. Everything else passes as it is; a `~` that may begin an escape waits for the next key.
class LineEscape {
public:
    struct Result {
        std::string bytes;  ///< for the guest
        bool leave = false; ///< `~.` was typed; what came behind it is dropped
    };
    Result take(std::span<const char> typed);

private:
    enum class State { LineStart, Tilde, InLine };
    State m_state = State::LineStart;
};

} // namespace bulkhead::cli

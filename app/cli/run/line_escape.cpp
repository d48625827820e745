// SPDX-License-Identifier: Apache-2.0
#include "cli/run/line_escape.hpp"

namespace bulkhead::cli {

LineEscape::Result LineEscape::take(std::span<const char> typed) {
    constexpr char kEscape = '~';
    Result result;
    for (const char key : typed) {
        if (m_state == State::LineStart && key == kEscape) {
            m_state = State::Tilde;
            continue;
        }
        if (m_state == State::Tilde) {
            if (key == '.') {
                result.leave = true;
                return result;
            }
            result.bytes += kEscape;
            if (key == kEscape) {
                m_state = State::InLine;
                continue;
            }
        }
        result.bytes += key;
        m_state = key == '\r' || key == '\n' ? State::LineStart : State::InLine;
    }
    return result;
}

} // namespace bulkhead::cli

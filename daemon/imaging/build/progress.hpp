// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace bulkhead::imaging::build {

/// Tells whoever started the program how far it is: `PHASE word fraction text` lines.
class Progress {
public:
    /// `fd` is not owned; -1: nobody listens. A listener that went away is not an error.
    explicit Progress(int fd)
        : m_fd(fd) {}
    /// `word` names the phase for programs ([a-z]+), `fraction` is of the whole (0 to 1), `text` is for people.
    void phase(std::string_view word, double fraction, std::string_view text) const;
    /// Passes on a line of a hook, if it has the same form.
    void forward(std::string_view line) const;

private:
    int m_fd;
};

} // namespace bulkhead::imaging::build

// SPDX-License-Identifier: Apache-2.0
#include "build/progress.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace bulkhead::imaging::build {

void Progress::phase(std::string_view word, double fraction, std::string_view text) const {
    forward(fmt::format("PHASE {} {:.2f} {}", word, fraction, text));
}

void Progress::forward(std::string_view line) const {
    if (m_fd < 0 || !line.starts_with("PHASE ")) {
        return;
    }
    const std::string whole = std::string(line) + "\n";
    [[maybe_unused]] const auto written = ::write(m_fd, whole.data(), whole.size());
}

} // namespace bulkhead::imaging::build

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "e2e/e2e_support.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

/// What the benchmarks share. A figure is printed as "name: value unit (ratio)"; packaging/test collects these lines.
namespace bulkhead::bench {

inline double secondsOf(const std::function<void()>& act) {
    const auto begin = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Throws when the command fails.
inline e2e::Outcome must(const QStringList& command, const QByteArray& input = {}) {
    auto outcome = e2e::run(command, input);
    if (outcome.status != 0) {
        throw std::runtime_error(command.join(' ').toStdString() + ": " + outcome.text().toStdString());
    }
    return outcome;
}

inline void print(const char* name, double value, const char* unit, const std::string& ratio = {}) {
    std::printf("%s: %.3f %s%s\n", name, value, unit, ratio.empty() ? "" : (" (" + ratio + ")").c_str());
    std::fflush(stdout);
}

inline std::string ratioTo(double value, double other, const char* what) {
    char text[120];
    std::snprintf(text, sizeof text, "%.2f of %s", value / other, what);
    return text;
}

} // namespace bulkhead::bench

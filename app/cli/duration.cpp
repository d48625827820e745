// SPDX-License-Identifier: Apache-2.0
#include "cli/duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace bulkhead::cli {

std::optional<std::chrono::milliseconds> parseDuration(std::string_view text) {
    // From large to small, each at most once, as people write them.
    constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{
        {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
    constexpr std::int64_t kMost = std::int64_t{3650} * 86'400'000;

    std::int64_t total = 0;
    std::size_t nextUnit = 0;
    bool plainNumber = false;
    do {
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        if (error != std::errc() || text.empty() || text.front() == '-' || number > kMost) {
            return std::nullopt;
        }
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        std::size_t unitLength = 0;
        while (unitLength < text.size() && (text[unitLength] < '0' || text[unitLength] > '9')) {
            ++unitLength;
        }
        const std::string_view unit = text.substr(0, unitLength);
        text.remove_prefix(unitLength);
        if (unit.empty()) {
            plainNumber = true;
            if (nextUnit != 0) {
                return std::nullopt;
            }
            total = number * 1000;
            break;
        }
        while (nextUnit < kUnits.size() && kUnits[nextUnit].first != unit) {
            ++nextUnit;
        }
        if (nextUnit == kUnits.size() || number > kMost / kUnits[nextUnit].second) {
            return std::nullopt;
        }
        total += number * kUnits[nextUnit].second;
        ++nextUnit;
    } while (!text.empty());
    if ((plainNumber && !text.empty()) || total <= 0 || total > kMost) {
        return std::nullopt;
    }
    return std::chrono::milliseconds(total);
}

} // namespace bulkhead::cli

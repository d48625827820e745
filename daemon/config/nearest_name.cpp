// SPDX-License-Identifier: Apache-2.0
#include "config/nearest_name.hpp"

#include <algorithm>
#include <numeric>

namespace bulkhead::config {

namespace {

/// Edits (insert, delete, replace) from one word to the other.
std::size_t editDistance(std::string_view from, std::string_view to) {
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= from.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= to.size(); ++j) {
            const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row.back();
}

} // namespace

std::optional<std::string> nearestName(std::string_view text, const std::vector<std::string>& names) {
    constexpr std::size_t kLongestWord = 64; // nobody mistypes a word of that length for one of ours
    if (text.size() > kLongestWord) {
        return std::nullopt;
    }
    std::optional<std::string> best;
    std::size_t bestDistance = std::max<std::size_t>(1, text.size() / 3) + 1;
    for (const std::string& name : names) {
        const std::size_t distance = editDistance(text, name);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = name;
        }
    }
    return best;
}

} // namespace bulkhead::config

// SPDX-License-Identifier: Apache-2.0
#include "cli/output/table.hpp"

#include "client/terminal_text.hpp"

#include <algorithm>

namespace bulkhead::cli {
namespace {

std::string padded(const std::string& text, std::size_t width) {
    const std::size_t taken = client::textWidth(text);
    return text + std::string(width > taken ? width - taken : 0, ' ');
}

} // namespace

std::string tableText(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::vector<std::string>> cells{header};
    for (const auto& row : rows) {
        std::vector<std::string> safe;
        for (const std::string& cell : row) {
            safe.push_back(cell.empty() ? "-" : client::terminalSafe(cell));
        }
        safe.resize(header.size(), "-");
        cells.push_back(std::move(safe));
    }
    std::vector<std::size_t> widths(header.size(), 0);
    for (const auto& row : cells) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], client::textWidth(row[i]));
        }
    }
    std::string out;
    for (const auto& row : cells) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            out += i + 1 == row.size() ? row[i] : padded(row[i], widths[i] + 2);
        }
        out += '\n';
    }
    return out;
}

std::string keyValueText(const KeyValues& pairs) {
    std::size_t width = 0;
    for (const auto& [key, value] : pairs) {
        if (!value.empty()) {
            width = std::max(width, key.size());
        }
    }
    std::string out;
    for (const auto& [key, value] : pairs) {
        if (!value.empty()) {
            out += padded(key + ":", width + 3) + client::terminalSafe(value) + "\n";
        }
    }
    return out;
}

} // namespace bulkhead::cli

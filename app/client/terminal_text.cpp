// SPDX-License-Identifier: Apache-2.0
#include "client/terminal_text.hpp"

#include <QString>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace bulkhead::client {
namespace {

/// Code points that a terminal obeys, reorders by or does not show.
constexpr std::array<std::pair<char32_t, char32_t>, 12> kUnsafe{{{0x00, 0x1F},
                                                                 {0x7F, 0x9F},
                                                                 {0xAD, 0xAD},
                                                                 {0x61C, 0x61C},
                                                                 {0x180E, 0x180E},
                                                                 {0x200B, 0x200F},
                                                                 {0x2028, 0x202E},
                                                                 {0x2060, 0x206F},
                                                                 {0xFE00, 0xFE0F},
                                                                 {0xFEFF, 0xFEFF},
                                                                 {0xFFF0, 0xFFFB},
                                                                 {0xE0000, 0xE0FFF}}};

bool isUnsafe(char32_t c) {
    return std::any_of(kUnsafe.begin(), kUnsafe.end(),
                       [c](const auto& range) { return c >= range.first && c <= range.second; });
}

/// Length of the well-formed sequence at the start of `text` and its code point; length 0 when it is not one.
std::pair<std::size_t, char32_t> decode(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = at(0);
    if (lead < 0x80) {
        return {1, lead};
    }
    const std::size_t length = lead >= 0xF0 && lead < 0xF8   ? 4U
                               : lead >= 0xE0 && lead < 0xF0 ? 3U
                               : lead >= 0xC0 && lead < 0xE0 ? 2U
                                                             : 0U;
    if (length == 0 || text.size() < length) {
        return {0, 0};
    }
    char32_t value = lead & (0x7FU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((at(i) & 0xC0U) != 0x80U) {
            return {0, 0};
        }
        value = (value << 6U) | (at(i) & 0x3FU);
    }
    constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
    return value < kLeast[length] || value > 0x10FFFF || surrogate ? std::pair<std::size_t, char32_t>{0, 0}
                                                                   : std::pair{length, value};
}

std::string escaped(char32_t value, bool isByte) {
    std::array<char, 16> out{};
    std::snprintf(out.data(), out.size(), isByte ? "\\x%02x" : "\\u{%04x}", static_cast<unsigned>(value));
    return out.data();
}

bool isContinuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

} // namespace

std::string terminalSafe(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto [length, value] = decode(text);
        if (length == 0) {
            out += escaped(static_cast<unsigned char>(text[0]), true);
            text.remove_prefix(1);
            continue;
        }
        if (isUnsafe(value)) {
            out += escaped(value, value < 0x100);
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length);
    }
    return out;
}

std::string terminalSafe(const QString& text) {
    return terminalSafe(text.toStdString());
}

std::size_t textWidth(std::string_view safeText) {
    return static_cast<std::size_t>(
        std::count_if(safeText.begin(), safeText.end(), [](char c) { return !isContinuation(c); }));
}

std::string cutToWidth(std::string_view safeText, std::size_t columns) {
    if (textWidth(safeText) <= columns) {
        return std::string(safeText);
    }
    std::string out;
    std::size_t width = 0;
    for (const char c : safeText) {
        if (!isContinuation(c) && ++width >= columns) {
            break;
        }
        out += c;
    }
    return columns == 0 ? std::string() : out + "…";
}

} // namespace bulkhead::client

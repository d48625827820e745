// SPDX-License-Identifier: Apache-2.0
#include "base/escaping.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace bulkhead {
namespace {

struct Decoded {
    char32_t codePoint;
    std::size_t length;
};

std::optional<Decoded> decodeUtf8(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t first = byte(0);
    if (first < 0x80) {
        return Decoded{first, 1};
    }
    std::size_t length = 0;
    char32_t value = 0;
    if ((first & 0xE0) == 0xC0) {
        length = 2;
        value = first & 0x1FU;
    } else if ((first & 0xF0) == 0xE0) {
        length = 3;
        value = first & 0x0FU;
    } else if ((first & 0xF8) == 0xF0) {
        length = 4;
        value = first & 0x07U;
    } else {
        return std::nullopt;
    }
    if (text.size() < length) {
        return std::nullopt;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) {
            return std::nullopt;
        }
        value = (value << 6U) | (byte(i) & 0x3FU);
    }
    constexpr std::array<char32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
    if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        return std::nullopt;
    }
    return Decoded{value, length};
}

bool isHidden(char32_t c) {
    return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0xAD || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF ||
           (c >= 0xFFF0 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE0FFF);
}

std::string hex(char32_t value, std::string_view prefix, std::string_view suffix, int minimumDigits) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string digits;
    for (; value != 0 || static_cast<int>(digits.size()) < minimumDigits; value >>= 4U) {
        digits.insert(digits.begin(), kDigits[value & 0xFU]);
    }
    return std::string(prefix) + digits + std::string(suffix);
}

/// What stands for one character (nullopt: one byte that begins none) in the result; `original`: its own bytes.
using Replace = std::string (*)(const std::optional<Decoded>& decoded, std::string_view original);

std::string escaped(const std::optional<Decoded>& decoded, std::string_view original) {
    if (!decoded) {
        return hex(static_cast<std::uint8_t>(original[0]), "\\x", "", 2);
    }
    if (decoded->codePoint == U'\\') {
        return "\\\\";
    }
    if (isHidden(decoded->codePoint)) {
        return decoded->codePoint < 0x100 ? hex(decoded->codePoint, "\\x", "", 2)
                                          : hex(decoded->codePoint, "\\u{", "}", 4);
    }
    return std::string(original);
}

std::string cleaned(const std::optional<Decoded>& decoded, std::string_view original) {
    if (decoded && (decoded->codePoint < 0x20 || (decoded->codePoint >= 0x7F && decoded->codePoint <= 0x9F))) {
        return " ";
    }
    return !decoded || isHidden(decoded->codePoint) ? "\uFFFD" : std::string(original);
}

std::string replaceEach(std::string_view text, std::size_t maxBytes, Replace replace) {
    constexpr std::string_view kCut = "…";
    std::string out;
    std::size_t cutAt = 0; // the longest prefix of whole characters behind which "…" still fits
    while (!text.empty()) {
        if (out.size() + kCut.size() <= maxBytes) {
            cutAt = out.size();
        }
        const auto decoded = decodeUtf8(text);
        const std::size_t used = decoded ? decoded->length : 1;
        const std::string piece = replace(decoded, text.substr(0, used));
        if (out.size() + piece.size() > maxBytes) {
            out.resize(cutAt);
            out += kCut;
            return out;
        }
        out += piece;
        text.remove_prefix(used);
    }
    return out;
}

} // namespace

std::string escapeUntrusted(std::string_view text, std::size_t maxBytes) {
    return replaceEach(text, maxBytes, escaped);
}

std::string cleanUntrusted(std::string_view text, std::size_t maxBytes) {
    return replaceEach(text, maxBytes, cleaned);
}

bool isValidUtf8(std::string_view text) {
    while (!text.empty()) {
        const auto decoded = decodeUtf8(text);
        if (!decoded) {
            return false;
        }
        text.remove_prefix(decoded->length);
    }
    return true;
}

} // namespace bulkhead

// SPDX-License-Identifier: Apache-2.0
#include "session/text.hpp"

#include <cstdint>

namespace bulkhead::session {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Character {
    std::uint32_t code = 0;
    std::size_t length = 0; ///< 0: no character begins here
};

Character characterAt(std::string_view text) {
    const auto byteAt = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byteAt(0);
    if (lead < 0x80) {
        return {lead, 1};
    }
    std::size_t length = 0;
    std::uint32_t code = 0;
    std::uint32_t least = 0;
    if ((lead & 0xE0U) == 0xC0) {
        length = 2, code = lead & 0x1FU, least = 0x80;
    } else if ((lead & 0xF0U) == 0xE0) {
        length = 3, code = lead & 0x0FU, least = 0x800;
    } else if ((lead & 0xF8U) == 0xF0) {
        length = 4, code = lead & 0x07U, least = 0x10000;
    } else {
        return {};
    }
    if (text.size() < length) {
        return {};
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byteAt(i) & 0xC0U) != 0x80) {
            return {};
        }
        code = (code << 6U) | (byteAt(i) & 0x3FU);
    }
    const bool isSurrogate = code >= 0xD800 && code <= 0xDFFF;
    return code < least || code > 0x10FFFF || isSurrogate ? Character{} : Character{code, length};
}

bool isControl(std::uint32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029;
}

} // namespace

std::string cleanText(std::string_view text, std::size_t most) {
    std::string clean;
    while (!text.empty()) {
        const Character character = characterAt(text);
        const std::string_view piece = character.length == 0       ? kReplacement
                                       : isControl(character.code) ? std::string_view(" ")
                                                                   : text.substr(0, character.length);
        if (clean.size() + piece.size() > most) {
            break;
        }
        clean += piece;
        text.remove_prefix(character.length == 0 ? 1 : character.length);
    }
    return clean;
}

std::string cleanLatin1(std::string_view text, std::size_t most) {
    std::string utf8;
    for (const char c : text.substr(0, most)) {
        const auto code = static_cast<unsigned char>(c);
        if (code < 0x80) {
            utf8 += c;
        } else {
            utf8 += static_cast<char>(0xC0U | (code >> 6U));
            utf8 += static_cast<char>(0x80U | (code & 0x3FU));
        }
    }
    return cleanText(utf8, most);
}

} // namespace bulkhead::session

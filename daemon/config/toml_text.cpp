// SPDX-License-Identifier: Apache-2.0
#include "config/toml_text.hpp"

namespace bulkhead::config {

std::string tomlQuoted(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string quoted = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            quoted += "\\u00";
            quoted += kDigits[byte >> 4U];
            quoted += kDigits[byte & 0xfU];
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

std::string exactBytes(Bytes size) {
    if (size != 0 && size % kGiB == 0) {
        return std::to_string(size / kGiB) + "GiB";
    }
    if (size != 0 && size % kMiB == 0) {
        return std::to_string(size / kMiB) + "MiB";
    }
    return std::to_string(size);
}

} // namespace bulkhead::config

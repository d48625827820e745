// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include "base/escaping.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

namespace bulkhead {

Result<Bytes> parseBytes(std::string_view text) {
    const std::string shown = escapeUntrusted(text, 40);
    const auto bad = [&] {
        return fail(ErrorCode::InvalidArgument,
                    "\"" + shown + "\" is not a size; write 512MiB, 2GiB or a number of bytes");
    };
    Bytes number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{}) {
        return bad();
    }
    Bytes unit = 0;
    const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
    if (suffix.empty() || suffix == "B") {
        unit = 1;
    } else if (suffix == "KiB") {
        unit = kKiB;
    } else if (suffix == "MiB") {
        unit = kMiB;
    } else if (suffix == "GiB") {
        unit = kGiB;
    } else {
        return bad();
    }
    if (number > std::numeric_limits<Bytes>::max() / unit) {
        return bad();
    }
    return number * unit;
}

std::string formatBytes(Bytes size) {
    constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(size);
    std::size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    std::array<char, 32> buffer{};
    const bool whole = unit == 0 || value >= 100 || value == static_cast<double>(static_cast<std::uint64_t>(value));
    std::snprintf(buffer.data(), buffer.size(), whole ? "%.0f %s" : "%.1f %s", value, kUnits.at(unit));
    return buffer.data();
}

} // namespace bulkhead

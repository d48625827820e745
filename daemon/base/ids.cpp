// SPDX-License-Identifier: Apache-2.0
#include "base/ids.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <sys/random.h>
#include <system_error>

namespace bulkhead {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

bool isDash(std::size_t index) {
    return index == 8 || index == 13 || index == 18 || index == 23;
}

std::optional<std::string> uuidText(std::string_view text) {
    if (text.size() != 36) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (isDash(i) ? text[i] != '-' : kHexDigits.find(text[i]) == std::string_view::npos) {
            return std::nullopt;
        }
    }
    return std::string(text);
}

} // namespace

template <class Tag> std::optional<Id<Tag>> Id<Tag>::parse(std::string_view text) {
    auto checked = uuidText(text);
    if (!checked) {
        return std::nullopt;
    }
    Id id;
    id.m_text = std::move(*checked);
    return id;
}

template <class Tag> std::string Id<Tag>::compact() const {
    std::string digits;
    for (const char c : m_text) {
        if (c != '-') {
            digits += c;
        }
    }
    return digits;
}

template <class Tag> std::optional<Id<Tag>> Id<Tag>::parseCompact(std::string_view text) {
    if (text.size() != 32) {
        return std::nullopt;
    }
    std::string dashed;
    for (const char c : text) {
        if (isDash(dashed.size())) {
            dashed += '-';
        }
        dashed += c;
    }
    return parse(dashed);
}

template class Id<DomainTag>;
template class Id<InstanceTag>;
template class Id<JobTag>;
template class Id<SnapshotTag>;

std::string randomUuidText() {
    std::array<std::uint8_t, 16> bytes{};
    if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0FU) | 0x40U);
    bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3FU) | 0x80U);
    std::string text;
    for (const std::uint8_t byte : bytes) {
        if (isDash(text.size())) {
            text += '-';
        }
        text += kHexDigits[byte >> 4U];
        text += kHexDigits[byte & 0xFU];
    }
    return text;
}

} // namespace bulkhead

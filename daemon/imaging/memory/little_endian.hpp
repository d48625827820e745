// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bulkhead::memory {

/// Appends an unsigned number, little-endian.
template <class Number> void putNumber(std::string& bytes, Number number) {
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
        bytes.push_back(static_cast<char>((number >> (8 * i)) & 0xffU));
    }
}

/// Takes one from the front. The caller has made sure that the bytes are there.
template <class Number> Number takeNumber(std::string_view& bytes) {
    Number number = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
        number |= static_cast<Number>(static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i));
    }
    bytes.remove_prefix(sizeof(Number));
    return number;
}

} // namespace bulkhead::memory

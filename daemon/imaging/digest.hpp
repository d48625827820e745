// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace bulkhead::imaging {

/// BLAKE2b-256, fed piece by piece.
class Digest {
public:
    Digest();
    ~Digest();
    Digest(Digest&&) noexcept;
    Digest& operator=(Digest&&) noexcept;

    void add(std::string_view bytes);
    /// Eight bytes, little-endian.
    void addNumber(std::uint64_t number);
    /// The length and then the text, so that no two lists of texts look the same.
    void addText(std::string_view text);
    /// 64 lower-case hexadecimal digits. The last call.
    std::string finish();

private:
    struct State;
    std::unique_ptr<State> m_state;
};

/// The digest of a file's bytes, as b2sum -l 256 gives it.
Result<std::string> digestOfFile(const std::filesystem::path& file);

} // namespace bulkhead::imaging
